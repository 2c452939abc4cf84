/*
 * Chooses the client whose work is done next.
 *
 * All work that a client causes is counted in units (reader/decoder_work.h) of about a nanosecond. A client with little
 * work is served at once when its bytes arrive. A client waits in a queue if it has more work than the budget of a
 * turn, or if it has already received more than its share of work. The queue runs when no client can be served at once,
 * and the event loop checks for new bytes after each TURNS_BUDGET units.
 *
 * The order is start-time fair queueing (Goyal, Vin and Cheng, 1996). A client begins at its tag or at a virtual clock,
 * whichever is later, and each unit of its work increases its tag by one. The waiting client with the earliest tag is
 * next, and the clock moves to that tag. Two rules are added:
 * - The clock also moves by the work that is done at once, and by an eighth of the work in turns, divided by the number
 *   of clients. Otherwise, a series of new clients could prevent other clients from getting turns.
 * - If a client is known to have more work than can be done at once, its rank is its tag plus one turn.
 *
 * Two bounds follow, which tests/unit/turns.c checks:
 * - A client that has received less than its share of work is served at once, or within about three turns.
 * - A client waits for at most about twenty turns of each other waiting client.
 *
 * The module owns the queue and the clock. The caller owns each `turn`, which is a part of the client. Only the
 * server's thread may call this module.
 */
#ifndef NETLOGD_TURNS_H
#define NETLOGD_TURNS_H

#include <event2/event.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TURNS_BUDGET = 1000000,  /* units of work in a turn; the last item of a turn may exceed this limit */
    TURNS_READ_WORK = 3000,  /* units of work of a read, not counting the work for its bytes */
    TURNS_AT_ONCE = 4000000, /* maximum units of work at once of all clients between two turns */
};

/*
 * The state of a client. Set `run` and `user`, and initialize the other members with zeros; the client is then not
 * waiting.
 */
typedef struct turn {
    void (*run)(void *user); /* does the work of one turn */
    void *user;
    uint64_t work;  /* units of work so far */
    uint64_t tag;   /* minimum value of the virtual clock at the start of the client's next turn */
    uint64_t rank;  /* among waiting clients, the client with the lowest rank is next */
    uint64_t order; /* decides between clients of the same rank */
    size_t place;   /* place in the queue, from 1; 0: the client is not waiting */
} turn;

/* Starts with an empty queue. Turns run in `base` with this priority. Calls `before` before the turns. */
void turns_start(struct event_base *base, int priority, void (*before)(void));
void turns_free(void);

/* Returns whether a client whose bytes have arrived may be served at once. Otherwise, the client must wait. */
bool turns_may_begin(const turn *client);

/* Returns the maximum units of work of a client that is served at once. */
uint64_t turns_budget_at_once(void);

/* Adds units of work to the client's work, and increases its tag. */
void turns_charge(turn *client, uint64_t work);

/*
 * Adds the client to the queue, unless it is already there. The queue calls the client's run once. If `more` is true,
 * the client has more work than can be done at once, and comes after clients that may have little work.
 */
void turns_wait(turn *client, bool more);

/* Removes the client from the queue, if it is there. */
void turns_leave(turn *client);

static inline bool turns_is_waiting(const turn *client)
{
    return client->place > 0;
}

/* Returns the largest work, in units, that one call of turns_charge has added during a turn. */
uint64_t turns_work_max(void);

/* Forgets the past work of all clients. Call it when no client has bytes to read. */
void turns_idle(void);

#endif
