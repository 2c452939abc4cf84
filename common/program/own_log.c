#include "config.h"

#include "program/own_log.h"

#include "program/program.h"

static bool prints_retries;

static void print_retry(void *unused, nl_message_kind kind, const char *message)
{
    (void)unused;
    if (kind == NL_MESSAGE_RETRY && prints_retries)
        program_error("%s", message);
}

nl_log *program_open_log(const char *prog, const char *url, bool reports)
{
    prints_retries = reports;
    nl_set_message_handler(print_retry, NULL);
    return nl_open(prog, url);
}
