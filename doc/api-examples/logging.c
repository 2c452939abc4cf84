/* Logging: opening a log, writing events, closing it. */
#include <netlogger.h>
#include <stdio.h>

/* A wrapper function that takes a format, like printf. */
static nl_status write_info(nl_log *log, const char *event, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    nl_status status = nl_vwrite(log, NL_USAGE, event, format, arguments);
    va_end(arguments);
    return status;
}

/* Computes the values only if the event will be written. */
static void write_cache_state(nl_log *log)
{
    if (nl_is_on(log, NL_DEBUG))
        nl_write(log, NL_DEBUG, "Cache.State", "FREE=%d", 17);
}

/* Receives the messages that the library would otherwise print. */
static void print_message(void *user, nl_message_kind kind, const char *message)
{
    fprintf(stderr, "%s: %s%s\n", (const char *)user, kind == NL_MESSAGE_RETRY ? "warning: " : "", message);
}

int main(void)
{
    static char name[] = "example";
    const char packet[] = {'a', 0, 'b'};
    nl_set_message_handler(print_message, name);
    nl_log *log = nl_open(name, "file:logging.log?append=no"); /* NULL is a valid log, which writes nothing */
    nl_set_policy(log, NL_POLICY_LEVEL, NL_NS_PER_SECOND / 10, NL_WARNING); /* warnings wait at most 0.1 s for space */
    nl_set_idle(log, NL_NS_PER_SECOND);                                     /* for a daemon that logs rarely */
    nl_set_level(log, NL_USAGE);
    write_cache_state(log);
    nl_write(log, NL_USAGE, "File.Opened", "FILE=%s SIZE=%ld", "a b", 4096L);
    NL_EVENT(log, NL_USAGE, "Packet", "DATA", NL_BYTES(packet, sizeof packet), "SECONDS", 0.25);
    write_info(log, "Answer", "STATUS=%d", 200);
    if (nl_flush(log) != NL_OK) { /* NL_OK: all events are in the file */
        fprintf(stderr, "NetLogger %s: %s\n", nl_version(), nl_error_message());
        nl_error_clear();
    }
    return log != NULL && nl_close(log) == NL_OK ? 0 : 1;
}
