/*
 * Reports messages about a log's destination to the program's user, on standard error or through the program's handler
 * (nl_set_message_handler). The module owns the handler and the identity of standard error. After the program has
 * closed standard error, the module prints nothing, because the descriptor may belong to another file. All functions
 * are thread-safe.
 */
#ifndef NETLOGGER_LOG_REPORT_H
#define NETLOGGER_LOG_REPORT_H

#include <netlogger.h>

#include "transport/url.h"

/* Stores the identity of standard error. Call this function when a log is opened. */
void nl_report_begin(void);

/* Reports a message about url, whose options it omits. `url` is NULL if the message itself names its object. */
void nl_report(nl_message_kind kind, const nl_url *url, const char *format, ...) NL_PRINTF(3, 4);

#endif
