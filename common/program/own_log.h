/* The logs to which programs write records. */
#ifndef NETLOGGER_PROGRAM_OWN_LOG_H
#define NETLOGGER_PROGRAM_OWN_LOG_H

#include <netlogger.h>

/*
 * Like nl_open, for programs that report failures of opening and closing themselves. If `reports` is true, the program
 * prints a message when the destination cannot be reached and the log tries again. Set `reports` if the program may run
 * for a long time before it flushes.
 */
nl_log *program_open_log(const char *prog, const char *url, bool reports);

/*
 * Like nl_close, but if the log's events are safe and remain in its spool, prints a message that names the spool. The
 * caller reports failures itself. The program may have only one log.
 */
nl_status program_close_log(nl_log *log);

#endif
