/* The logs to which programs write records. */
#ifndef NETLOGGER_PROGRAM_OWN_LOG_H
#define NETLOGGER_PROGRAM_OWN_LOG_H

#include <netlogger.h>

/*
 * As nl_open, for programs that report failures of opening and closing themselves. reports: while the destination
 * cannot be reached, the program prints that the log tries again; set it if the program may run long before it flushes.
 */
nl_log *program_open_log(const char *prog, const char *url, bool reports);

#endif
