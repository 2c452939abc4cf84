/* Logging: opening a log, writing events, closing it. */
#include <netlogger.h>
#include <stdio.h>
#include <string.h>

/* A program's own function with a format, as it would have for printf. */
static nl_status logging_say(nl_log *log, const char *event, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    nl_status status = nl_vwrite(log, NL_USAGE, event, format, arguments);
    va_end(arguments);
    return status;
}

/* What is expensive to find out is found out only when somebody wants to know. */
static void say_how_full(nl_log *log)
{
    if (nl_is_on(log, NL_DEBUG))
        nl_write(log, NL_DEBUG, "Cache.State", "FREE=%d", 17);
}

/* A collector that is away must not hold up this program, but what is urgent may wait a tenth of a second for room. */
static void choose_what_gives_way(nl_log *log)
{
    nl_set_policy(log, NL_POLICY_LEVEL, NL_NS_PER_SECOND / 10, NL_WARNING);
    nl_set_idle(log, NL_NS_PER_SECOND); /* a daemon, which logs seldom */
}

int main(void)
{
    const char packet[] = {'a', 0, 'b'};
    nl_log *log = nl_open("example", "file:logging.log?append=no");
    if (log == NULL) { /* it may be used all the same: then nothing is logged */
        fprintf(stderr, "example (NetLogger %s): %s\n", nl_version(), nl_error_message());
        nl_error_clear();
    }
    choose_what_gives_way(log);
    nl_set_level(log, NL_USAGE);
    say_how_full(log);
    nl_write(log, NL_USAGE, "File.Opened", "FILE=%s SIZE=%ld", "a b", 4096L);
    NL_EVENT(log, NL_USAGE, "Packet", "DATA", NL_BYTES(packet, sizeof packet), "SECONDS", 0.25);
    logging_say(log, "Answer", "STATUS=%d", 200);
    if (nl_flush(log) != NL_OK) /* all is in the file now, before this goes on */
        fprintf(stderr, "example: %s\n", nl_error_message());
    if (nl_close(log) != NL_OK) {
        fprintf(stderr, "example: %s\n", nl_error_message());
        return 1;
    }
    return 0;
}
