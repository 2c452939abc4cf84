/*
 * Commands change logs and markers at run time.
 */
#include <netlogger.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const char commands[] = "level Debug\nevent Cache.* off\n", wrong[] = "level Loud\n";
    nl_log *log = nl_open("example", "memory:control");
    if (nl_control(log, commands, strlen(commands)) != NL_OK)
        return 1;
    NL_EVENT(log, NL_DEBUG, "Cache.State", "FREE", 17); /* disabled by name */
    NL_EVENT(log, NL_DEBUG, "Started", "BY", "hand");

    /* Check commands from another program before passing them on. */
    if (nl_control_check(wrong, strlen(wrong)) != NL_FAILED)
        return 1;
    fprintf(stderr, "refused: %s\n", nl_error_message());
    return nl_close(log) == NL_OK ? 0 : 1;
}
