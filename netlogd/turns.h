/*
 * Turns: which client's work is done next.
 *
 * All work that a client causes is counted in units (record/work.h), about a nanosecond each. A client that wants
 * little is served at once, when its bytes arrive. A client that has more to do than the budget of a turn, or that owes
 * for turns before, waits in a queue. The queue runs when no other client is to be served at once, one turn at a time,
 * and the event loop looks for new bytes between any two turns. A client's debt grows by the work of its turns and is
 * paid off by an allowance over time. Of the clients that wait, those with the least debt are first, and in turn among
 * equals. So the work of one client, or of a thousand, delays a client that wants little by about one turn.
 *
 * One thread. The caller owns each `turn`, which is a part of what it schedules.
 */
#ifndef NETLOGD_TURNS_H
#define NETLOGD_TURNS_H

#include <event2/event.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    TURNS_BUDGET = 1000000, /* units of work in a turn, about: the last piece of it may exceed them */
    TURNS_LEVELS = 32,
};

/* One client's part in it. {0} with run and user is a client that does not wait and owes nothing. */
typedef struct turn {
    void (*run)(void *user); /* does one turn's work */
    void *user;
    uint64_t work;             /* units so far */
    struct turn *next, **link; /* link is NULL while it does not wait */
    double debt;               /* units, at: */
    int64_t debt_ns;
} turn;

typedef struct turns turns;

/* Creates a queue whose turns run in base at that priority; before(user) is called before each. Exits without memory.
 */
turns *turns_new(struct event_base *base, int priority, void (*before)(void *user), void *user);
void turns_free(turns *t); /* NULL is allowed */

/* Whether a client whose bytes have arrived may be served at once; otherwise it is to wait. */
bool turns_may_begin(const turns *t, turn *client);

/* The units of work that a client that is served at once may cause. */
uint64_t turns_budget_at_once(const turns *t);

/* Charges the client. at_once: it did not wait. */
void turns_charge(turns *t, turn *client, uint64_t work, bool at_once);

/* Puts the client into the queue, unless it is there: its run is called once. */
void turns_wait(turns *t, turn *client);

/* Takes the client off the queue, if it is there. */
void turns_leave(turns *t, turn *client);

static inline bool turns_is_waiting(const turn *client)
{
    return client->link != NULL;
}

/* Returns the maximum of the units of work of one turn so far. */
uint64_t turns_work_max(const turns *t);

/* Notes that no client has anything to be read. */
void turns_idle(turns *t);

#endif
