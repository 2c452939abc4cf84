/*
 * Recovery of the events that killed processes of this user left behind: every few seconds, a process delivers them to
 * their destinations (netlogger/recover.h).
 *
 * A separate process does this for two reasons. An unresponsive destination must not delay clients. And the process
 * that serves clients is confined (confined.h), so it cannot write to the destinations of killed programs. The
 * recovering process reports over a socket, and ends when the other end is closed. The module owns the process. The
 * server's thread only.
 */
#ifndef NETLOGD_RECOVERY_H
#define NETLOGD_RECOVERY_H

#include <netlogger.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct recovery recovery;

enum { RECOVERY_PATIENCE_MS = 3000 }; /* maximum wait at the end for a recovery in progress */

/*
 * Starts a recovery every interval_s seconds. confined: block the system calls that the process never needs. Call it
 * before creating threads and sockets, which the process would inherit. Returns NULL after reporting an error.
 */
recovery *recovery_start(unsigned interval_s, bool confined);

/*
 * Between recovery_watch, which needs the server's event loop, and recovery_unwatch, writes an event to netlogd's own
 * log for each recovered log. NULL is allowed.
 */
void recovery_watch(recovery *r);
void recovery_unwatch(recovery *r);

/*
 * Requests the end of recovery, without waiting: a recovery in progress may be sending records to this server.
 * Afterwards, recovery_is_over returns whether it has ended, or patience_ms have passed since the first call of
 * recovery_end. NULL is allowed.
 */
void recovery_end(recovery *r, int64_t patience_ms);
bool recovery_is_over(const recovery *r);

/* Ends the recovery; after recovery_end, waits until it is over. The next start repeats an
 * interrupted recovery. NULL is allowed. */
void recovery_free(recovery *r);

#endif
