/*
 * Recovers the events that killed processes of this user have not delivered. Every few seconds, a separate process
 * delivers these events to their destinations (netlogger/recover.h).
 *
 * The process is separate for two reasons. An unresponsive destination must not delay clients. Also, the process that
 * serves clients is confined (confined.h), so it cannot write to the destinations of killed programs. The recovering
 * process reports over a socket, and ends when the other end is closed. The module owns the process. Only the server's
 * thread may call it.
 */
#ifndef NETLOGD_RECOVERY_H
#define NETLOGD_RECOVERY_H

#include <netlogger.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct recovery recovery;

enum { RECOVERY_PATIENCE_MS = 3000 }; /* maximum time to wait at the end for a recovery in progress */

/*
 * Starts a process that recovers every interval_s seconds. If `confined` is true, blocks the system calls that the
 * process never needs. Call this function before creating sockets and threads: the new process would inherit the
 * sockets, and the locks that other threads hold. On failure, reports the error and returns NULL.
 */
recovery *recovery_start(unsigned interval_s, bool confined);

/*
 * Between recovery_watch and recovery_unwatch, the module writes an event to netlogd's own log for each log that was
 * recovered or could not be recovered. Both functions need the server's event loop. `r` may be NULL.
 */
void recovery_watch(recovery *r);
void recovery_unwatch(recovery *r);

/*
 * recovery_end requests the end of recovery without waiting, because a recovery in progress may be sending records to
 * this server. Afterwards, recovery_is_over returns whether recovery has ended, or whether patience_ms milliseconds
 * have passed since any call of recovery_end. `r` may be NULL.
 */
void recovery_end(recovery *r, int64_t patience_ms);
bool recovery_is_over(const recovery *r);

/*
 * Ends the recovery and frees `r`. After recovery_end, first waits until recovery_is_over. The next netlogd repeats an
 * interrupted recovery. `r` may be NULL.
 */
void recovery_free(recovery *r);

#endif
