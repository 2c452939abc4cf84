/*
 * Runs a daemon in the background. daemon_detach forks. The parent waits until the child calls daemon_ready or exits.
 * Then, the parent exits with status 0 or with the child's status, so that the user sees problems at the start. Call
 * daemon_detach before starting threads.
 */
#ifndef NETLOGGER_SERVICE_DAEMON_H
#define NETLOGGER_SERVICE_DAEMON_H

#include <stdbool.h>

/*
 * Continues in a new process and session. If keep_streams is true, daemon_ready does not redirect the standard
 * streams.
 */
void daemon_detach(bool keep_streams);

/*
 * Lets the parent exit, and redirects the standard streams to /dev/null. Does nothing in a process that is not
 * detached.
 */
void daemon_ready(void);

/* Returns whether the standard streams are or will be redirected. */
bool daemon_has_no_streams(void);

#endif
