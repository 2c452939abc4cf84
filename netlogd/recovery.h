/*
 * What processes of this user leave behind when they are killed is brought to where it was going, every few seconds, in
 * a thread of its own: a destination that is away must not hold up clients. netlogger/recover.h has the rest.
 */
#ifndef NETLOGD_RECOVERY_H
#define NETLOGD_RECOVERY_H

#include <netlogger.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct recovery recovery;

enum { RECOVERY_PATIENCE_MS = 3000 }; /* that one under way is worth at the end */

/*
 * Begins; every interval_s seconds. log gets an event for each log that is recovered, and may be NULL. NULL after it
 * was reported that there can be none: all else goes on.
 */
recovery *recovery_start(unsigned interval_s, nl_log *log);

/*
 * Asks it to end, without waiting: the recovery that is under way may be bringing records to this very server, which
 * takes them meanwhile. recovery_is_over says whether nothing is under way any longer, or has been for so long that it
 * is not waited for: patience_ms since recovery_end was called; of several times the earliest counts. Who waits for a
 * destination then ends with the process. Both are of one thread; NULL is allowed.
 */
void recovery_end(recovery *r, int64_t patience_ms);
bool recovery_is_over(recovery *r);

/* After recovery_end, waits until it is over, and frees it. NULL is allowed. */
void recovery_free(recovery *r);

#endif
