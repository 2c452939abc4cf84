#include "config.h"

#include "program/own_log.h"

#include "program/program.h"

#include <stdlib.h>

static bool prints_retries;
static bool keeps_left; /* store messages in `left`; atomic */
/* The latest message about undelivered events. A thread of the log sets it before nl_close ends the thread. */
static char *left;

static void on_message(void *unused, nl_message_kind kind, const char *message)
{
    (void)unused;
    if (kind == NL_MESSAGE_RETRY && prints_retries)
        program_error("%s", message);
    if (kind == NL_MESSAGE_CLOSE && __atomic_load_n(&keeps_left, __ATOMIC_ACQUIRE)) {
        free(left);
        left = program_copy(message);
    }
}

nl_log *program_open_log(const char *prog, const char *url, bool reports)
{
    prints_retries = reports;
    nl_set_message_handler(on_message, NULL);
    return nl_open(prog, url);
}

nl_status program_close_log(nl_log *log)
{
    __atomic_store_n(&keeps_left, true, __ATOMIC_RELEASE);
    nl_status status = nl_close(log);
    __atomic_store_n(&keeps_left, false, __ATOMIC_RELEASE);
    if (status == NL_OK && left != NULL)
        program_error("%s", left);
    free(left);
    left = NULL;
    return status;
}
