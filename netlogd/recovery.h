/*
 * What processes of this user leave behind when they are killed is brought to where it was going, every few seconds.
 * netlogger/recover.h has the rest.
 *
 * A process of its own does this: a destination that is away must not hold up clients, and this process may write
 * wherever killed programs logged to, which the process that serves clients may not (confined.h). The two are joined by
 * a socket. The recovering process reports there, and ends when the other end is closed.
 */
#ifndef NETLOGD_RECOVERY_H
#define NETLOGD_RECOVERY_H

#include <netlogger.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct recovery recovery;

enum { RECOVERY_PATIENCE_MS = 3000 }; /* that one under way is worth at the end */

/* Begins; every interval_s seconds. confined: without the system calls that it never needs. Call it before there are
 * threads and sockets, which the process would inherit. NULL after it was reported that there can be none: all else
 * goes on. */
recovery *recovery_start(unsigned interval_s, bool confined);

/* From now on log, which may be NULL, gets an event for each log that is recovered. */
void recovery_report_to(recovery *r, nl_log *log);

/*
 * Asks it to end, without waiting: the recovery that is under way may be bringing records to this very server, which
 * takes them meanwhile. recovery_is_over says whether nothing is under way any longer, or has been for so long that it
 * is not waited for: patience_ms since recovery_end was called; of several times the earliest counts. Both are of one
 * thread; NULL is allowed.
 */
void recovery_end(recovery *r, int64_t patience_ms);
bool recovery_is_over(recovery *r);

/* Ends it. After recovery_end, waits until it is over. The next recovery does again what was under way. NULL is
 * allowed. */
void recovery_free(recovery *r);

#endif
