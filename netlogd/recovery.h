/*
 * What processes of this user leave behind when they are killed is brought to where it was going, every few seconds, in
 * a thread of its own: a destination that is away must not hold up clients. netlogger/recover.h has the rest.
 */
#ifndef NETLOGD_RECOVERY_H
#define NETLOGD_RECOVERY_H

#include <netlogger.h>

typedef struct recovery recovery;

/* Begins; every interval_s seconds. log gets an event for each log that is recovered, and may be NULL. */
recovery *recovery_start(unsigned interval_s, nl_log *log);

/*
 * Ends it, and waits for that, but not for long: one that waits for a destination ends with the process. NULL is
 * allowed.
 */
void recovery_stop(recovery *r);

#endif
