/*
 * Messages about a log's destination for the program's user: to standard error, or to the program's handler
 * (nl_set_message_handler). The module owns the handler and the identity of standard error: after the program has
 * closed standard error, it prints nothing, because the descriptor may belong to another file. All functions are
 * thread-safe.
 */
#ifndef NETLOGGER_LOG_REPORT_H
#define NETLOGGER_LOG_REPORT_H

#include <netlogger.h>

#include "transport/url.h"

/* Stores the identity of standard error. Call it when a log is opened. */
void nl_report_begin(void);

/* Reports a message about url, without its options. NULL: the message itself names its object. */
void nl_report(nl_message_kind kind, const nl_url *url, const char *format, ...) NL_PRINTF(3, 4);

#endif
