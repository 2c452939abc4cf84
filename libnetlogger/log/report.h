/*
 * Lines about a log's destination for the person who runs the program: to standard error, or to the program's handler
 * (nl_set_message_handler). The module owns the handler and the identity of standard error: it prints nothing once the
 * program has closed that descriptor, because its number may belong to another file. All functions are thread-safe.
 */
#ifndef NETLOGGER_LOG_REPORT_H
#define NETLOGGER_LOG_REPORT_H

#include <netlogger.h>

#include "transport/url.h"

/* Notes which file standard error is. Call it when a log is opened. */
void nl_report_begin(void);

/* Reports a message about url, whose options it omits. NULL: the message itself names its object. */
void nl_report(nl_message_kind kind, const nl_url *url, const char *format, ...) NL_PRINTF(3, 4);

#endif
