/*
 * Waiting until nobody uses a thing any more that threads use without a lock.
 *
 * A user enters, looks the thing up, uses it, and leaves. Who takes it away makes it impossible to find, waits for the
 * grace (everyone who had entered before has left), and frees it. Entering and leaving is an atomic addition on a cache
 * line that few threads share; safe in signal handlers.
 */
#ifndef NETLOGGER_LOG_GRACE_H
#define NETLOGGER_LOG_GRACE_H

#include <netlogger.h>

enum { NL_GRACE_STRIPES = 16 };

/* This thread's stripe of counters: threads take them in turn. */
unsigned nl_grace_stripe(void);

/* Enters. False, with nothing to leave, when this thread is inside already. */
bool nl_grace_enter(void);
void nl_grace_leave(void);

/* Whether this thread is inside. */
bool nl_grace_is_inside(void);

/* Waits for all who are inside. Not from inside. */
void nl_grace_wait(void);

/* In the child after fork: only this thread is left. */
void nl_grace_after_fork(void);

#endif
