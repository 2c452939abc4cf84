/*
 * Grace periods: wait until no thread uses an object that threads use without a lock.
 *
 * A thread that uses an object enters, finds the object, uses it, and leaves. To free an object, make it unreachable,
 * wait for the grace period, and free it. The grace period ends when every thread that had entered has left. Entering
 * and leaving each take one atomic addition to a cache line that few threads share. Signal handlers may enter and
 * leave.
 */
#ifndef NETLOGGER_LOG_GRACE_H
#define NETLOGGER_LOG_GRACE_H

#include <netlogger.h>

enum { NL_GRACE_STRIPES = 16 };

/* Returns the index of the counters that this thread uses. */
unsigned nl_grace_stripe(void);

/*
 * Begins a protected section. Returns false if this thread is already in such a section; the caller must then not call
 * nl_grace_leave.
 */
bool nl_grace_enter(void);
void nl_grace_leave(void);

/* Returns whether this thread is in a protected section. */
bool nl_grace_is_inside(void);

/*
 * Waits until each thread that has called nl_grace_enter has called nl_grace_leave. A thread must not call this
 * function between its own calls of nl_grace_enter and nl_grace_leave.
 */
void nl_grace_wait(void);

/* Call this function after fork in the child, which has only this thread. */
void nl_grace_after_fork(void);

#endif
