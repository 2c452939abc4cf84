/*
 * Going into the background. daemon_detach forks; the parent waits until the child calls daemon_ready or ends, and
 * exits with 0 or the child's status: problems at the start are printed on the terminal and show in the exit status.
 * Call both in the main thread, before others are started.
 */
#ifndef NETLOGGER_SERVICE_DAEMON_H
#define NETLOGGER_SERVICE_DAEMON_H

#include <stdbool.h>

/* Continues in a new process and session. keep_streams: standard output is in use, and stays. */
void daemon_detach(bool keep_streams);

/* Lets the parent exit, and redirects the standard streams to /dev/null unless they are kept. Does nothing in a process
 * that is not detached. */
void daemon_ready(void);

/* Whether the standard streams are or will be redirected: daemon_detach was called without keep_streams. */
bool daemon_has_no_streams(void);

#endif
