/*
 * Turns: the choice of the client whose work is done next.
 *
 * All work that a client causes is counted in units (reader/decoder_work.h) of about a nanosecond. A client with little
 * work is served at once, when its bytes arrive. A client with more work than the budget of a turn, or that has had
 * more than its share, waits in a queue. The queue runs when no client can be served at once, and the event loop checks
 * for new bytes after each TURNS_BUDGET units.
 *
 * The order is start-time fair queueing (Goyal, Vin and Cheng, 1996). A client begins at its tag or at a virtual clock,
 * whichever is later, and each unit of its work moves its tag by one. The waiting client with the earliest tag is next,
 * and the clock moves to that tag. Two rules are added:
 * - The clock also moves by the work that is done at once, and by an eighth of the other work, divided by the number of
 * clients. Otherwise, a series of new clients could keep others from their turns.
 * - A client that is known to have more work than can be done at once is ranked as if its tag were a turn later.
 *
 * Two bounds follow, which tests/unit/turns.c checks:
 * - A client that has had less than its share is served at once, or within about three turns.
 * - A client waits for no more than about twenty turns of each client that waits beside it.
 *
 * The module owns the queue and the clock; the caller owns each `turn`, which is a part of the client. The server's
 * thread only.
 */
#ifndef NETLOGD_TURNS_H
#define NETLOGD_TURNS_H

#include <event2/event.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TURNS_BUDGET = 1000000,  /* units of work in a turn; the last piece of work may exceed them */
    TURNS_READ_WORK = 3000,  /* units that a read costs, besides its bytes */
    TURNS_AT_ONCE = 4000000, /* units that are served at once before a turn must come */
};

/* A client's state. {0} with run and user set is a client that does not wait and has had no work done. */
typedef struct turn {
    void (*run)(void *user); /* does one turn's work */
    void *user;
    uint64_t work;  /* units so far */
    uint64_t tag;   /* earliest position of its next work on the virtual clock */
    uint64_t rank;  /* among waiting clients: the lowest is next */
    uint64_t order; /* among clients of the same rank */
    size_t place;   /* in the queue, from 1; 0: not waiting */
} turn;

/* Starts an empty queue, whose turns run in base at a priority. before is called before the turns. */
void turns_start(struct event_base *base, int priority, void (*before)(void));
void turns_free(void);

/* Returns whether a client whose bytes have arrived may be served at once; otherwise it must wait. */
bool turns_may_begin(const turn *client);

/* Returns the maximum units of work of a client that is served at once. */
uint64_t turns_budget_at_once(void);

/* Charges the client. */
void turns_charge(turn *client, uint64_t work);

/*
 * Puts the client into the queue, unless the queue has it. Its run is called once. more: it has more work than can be
 * done at once, so that clients that may have little work come first.
 */
void turns_wait(turn *client, bool more);

/* Removes the client from the queue, if the queue has it. */
void turns_leave(turn *client);

static inline bool turns_is_waiting(const turn *client)
{
    return client->place > 0;
}

/* Returns the maximum of the units of work of one turn so far. */
uint64_t turns_work_max(void);

/* Notes that no client has bytes to read: the work that each client has had no longer counts. */
void turns_idle(void);

#endif
