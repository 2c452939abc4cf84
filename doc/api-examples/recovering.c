/* Delivers the events of this user's killed programs to their destinations. */
#include <netlogger.h>
#include <inttypes.h>
#include <stdio.h>

static void print(void *user, const nl_recovered *what)
{
    fprintf(user, "%s (%d): %" PRIu64 " records for %s %s\n", what->prog, what->process, what->records, what->url,
            what->message);
}

int main(void)
{
    nl_recover_options look = {.list_only = true};
    if (nl_recover(&look, print, stdout) != NL_OK || nl_recover(NULL, print, stdout) != NL_OK) {
        fprintf(stderr, "recovering: %s\n", nl_error_message());
        return 1;
    }
    return 0;
}
