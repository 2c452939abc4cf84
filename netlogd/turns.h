/*
 * Turns: which client's work is done next.
 *
 * All work that a client causes is counted in units (record/work.h), about a nanosecond each. A client that has little
 * to do is served at once, when its bytes arrive. A client that has more to do than the budget of a turn, or that has
 * had more than its share, waits in a queue. The queue runs when no other client is to be served at once, and the event
 * loop looks for new bytes after each TURNS_BUDGET units.
 *
 * The order is that of fair queueing by start tags (Goyal, Vin and Cheng, 1996). A client begins at its tag or at a
 * virtual clock, whichever is later, and each unit of its work moves its tag by one. The waiting client with the
 * earliest tag is next, and the clock moves to that tag. Two rules are added:
 * - The clock also moves by the work that is done at once, and by an eighth of the other work, divided by the number of
 *   clients. Otherwise, clients that come for the first time, one after the other, could keep others from their turns.
 * - A client that is known to have more to do than is done at once is ranked as if its tag were a turn later.
 *
 * Two bounds follow, which tests/unit/turns.c checks:
 * - A client that has had less than its share is served at once, or within about three turns.
 * - A client waits for no more than about twenty turns of each client that waits beside it.
 *
 * One thread. The caller owns each `turn`, which is a part of what it schedules.
 */
#ifndef NETLOGD_TURNS_H
#define NETLOGD_TURNS_H

#include <event2/event.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TURNS_BUDGET = 1000000,  /* units of work in a turn, about: the last piece of it may exceed them */
    TURNS_READ_WORK = 3000,  /* units that a read costs, besides its bytes */
    TURNS_AT_ONCE = 4000000, /* units that are served at once before a turn comes in any case */
};

/* One client's part in it. {0} with run and user is a client that does not wait and has had nothing. */
typedef struct turn {
    void (*run)(void *user); /* does one turn's work */
    void *user;
    uint64_t work;  /* units so far */
    uint64_t tag;   /* units of the virtual clock: where its next work begins, or later */
    uint64_t rank;  /* among those that wait: the lowest is next */
    uint64_t order; /* among clients of the same rank */
    size_t place;   /* in the queue, from 1; 0: it does not wait */
} turn;

typedef struct turns turns;

/* Creates a queue whose turns run in base at that priority; before(user) is called before them. Exits without memory.
 */
turns *turns_new(struct event_base *base, int priority, void (*before)(void *user), void *user);
void turns_free(turns *t); /* NULL is allowed */

/* Whether a client whose bytes have arrived may be served at once; otherwise it is to wait. */
bool turns_may_begin(const turns *t, const turn *client);

/* The units of work that a client that is served at once may cause. */
uint64_t turns_budget_at_once(const turns *t);

/* Charges the client. */
void turns_charge(turns *t, turn *client, uint64_t work);

/* Puts the client into the queue, unless it is there: its run is called once. more: it has more to do than what it may
 * do at once; others come before it, which may have little to do. */
void turns_wait(turns *t, turn *client, bool more);

/* Takes the client off the queue, if it is there. */
void turns_leave(turns *t, turn *client);

static inline bool turns_is_waiting(const turn *client)
{
    return client->place > 0;
}

/* Returns the maximum of the units of work of one turn so far. */
uint64_t turns_work_max(const turns *t);

/* Notes that no client has anything to be read: what each has had no longer counts. */
void turns_idle(turns *t);

#endif
