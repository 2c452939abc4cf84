/*
 * Running in the background. daemon_detach forks. The parent waits until the child calls daemon_ready or ends, and
 * exits with 0 or the child's status, so that the user sees problems at the start. Call both functions before starting
 * threads.
 */
#ifndef NETLOGGER_SERVICE_DAEMON_H
#define NETLOGGER_SERVICE_DAEMON_H

#include <stdbool.h>

/* Continues in a new process and session. keep_streams: do not redirect the standard streams later. */
void daemon_detach(bool keep_streams);

/* Lets the parent exit, and redirects the standard streams to /dev/null. Does nothing in a process that is not
 * detached. */
void daemon_ready(void);

/* Returns whether the standard streams are or will be redirected. */
bool daemon_has_no_streams(void);

#endif
