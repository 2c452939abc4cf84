#include "config.h"

#include "turns.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE_BUDGET = 100000, /* maximum units of work at once of a client that is served while other clients wait */
    AT_ONCE_LATER =
        250000,      /* a client is served at once if its tag is at most this much later than the next client's tag */
    SHARE_MS = 10,   /* maximum time between turns */
    CLOCK_SHARE = 8, /* the clock moves by the work in turns, divided by this number */
};

static struct {
    struct event *event; /* active while clients wait */
    struct event *share; /* timer that serves waiting clients between clients that are served at once */
    bool ran;            /* a turn ran since the latest share event */
    void (*before)(void);
    turn **heap; /* heap of waiting clients, the next client first; heap[0] is not used */
    size_t count, capacity;
    uint64_t clock;  /* virtual time, in units of work */
    uint64_t latest; /* the latest tag */
    uint64_t order;  /* order number of the next client that begins to wait */
    uint64_t
        at_once; /* units of work that were done at once since the latest turn, or since no client had bytes to read */
    uint64_t work; /* units of work of all clients */
    bool in_turn;
    uint64_t work_max; /* the largest number of units that one call of turns_charge has added (see turns_work_max) */
} all;

/* Makes the loop check for new bytes before it calls on_turn. event_active would make the loop call on_turn first. */
static void wake(void)
{
    static const struct timeval now = {0};
    event_add(all.event, &now);
}

static bool is_before(const turn *a, const turn *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->order < b->order);
}

static void set_place(size_t place, turn *client)
{
    all.heap[place] = client;
    client->place = place;
}

/* Moves the client up or down in the heap, from the free index `place`, until the heap is in order. */
static void sift(size_t place, turn *client)
{
    for (; place > 1 && is_before(client, all.heap[place / 2]); place /= 2)
        set_place(place, all.heap[place / 2]);
    for (size_t child; (child = 2 * place) <= all.count; place = child) {
        if (child < all.count && is_before(all.heap[child + 1], all.heap[child]))
            child++;
        if (!is_before(all.heap[child], client))
            break;
        set_place(place, all.heap[child]);
    }
    set_place(place, client);
}

static void run_next(void)
{
    turn *client = all.heap[1];
    turns_leave(client);
    all.clock = all.clock > client->tag ? all.clock : client->tag;
    all.in_turn = true;
    client->run(client->user);
    all.in_turn = false;
}

static void on_turn(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    all.before();
    all.ran = true;
    all.at_once = 0;
    for (uint64_t end = all.work + TURNS_BUDGET, before = all.work - 1;
         all.count > 0 && all.work < end && all.work != before;) {
        before = all.work;
        run_next();
    }
    if (all.count > 0)
        wake();
}

static void on_share(evutil_socket_t fd, short what, void *user)
{
    if (!all.ran)
        on_turn(fd, what, user);
    all.ran = false;
    if (all.count > 0)
        event_add(all.share, &(struct timeval){.tv_usec = SHARE_MS * 1000});
}

void turns_start(struct event_base *base, int priority, void (*before)(void))
{
    all.event = nl_memory_check(event_new(base, -1, 0, on_turn, NULL));
    all.share = nl_memory_check(event_new(base, -1, 0, on_share, NULL));
    event_priority_set(all.event, priority);
    all.before = before;
}

void turns_free(void)
{
    event_free(all.event);
    event_free(all.share);
    free(all.heap);
    memset(&all, 0, sizeof all);
}

/* Returns the tag that the client would have if it began now. */
static uint64_t find_tag(const turn *client)
{
    return client->tag > all.clock ? client->tag : all.clock;
}

bool turns_may_begin(const turn *client)
{
    return all.at_once < TURNS_AT_ONCE && (all.count == 0 || find_tag(client) <= all.heap[1]->rank + AT_ONCE_LATER);
}

uint64_t turns_budget_at_once(void)
{
    return all.count == 0 ? TURNS_BUDGET : AT_ONCE_BUDGET;
}

void turns_charge(turn *client, uint64_t work)
{
    client->work += work;
    all.work += work;
    if (!all.in_turn)
        all.at_once += work;
    else if (work > all.work_max)
        all.work_max = work;
    if (turns_is_waiting(client)) /* at the end of the program, when no turns run */
        return;
    client->tag = (all.in_turn ? client->tag : find_tag(client)) + work;
    all.clock += work / (all.count + 1) / (all.in_turn ? CLOCK_SHARE : 1);
    all.latest = all.latest > client->tag ? all.latest : client->tag;
}

void turns_wait(turn *client, bool more)
{
    if (turns_is_waiting(client))
        return;
    if (all.count + 1 >= all.capacity) {
        all.capacity = all.capacity == 0 ? 64 : 2 * all.capacity;
        all.heap = nl_memory_check(realloc(all.heap, all.capacity * sizeof(turn *)));
    }
    if (all.count == 0) {
        wake();
        if (!event_pending(all.share, EV_TIMEOUT, NULL)) {
            all.ran = false;
            event_add(all.share, &(struct timeval){.tv_usec = SHARE_MS * 1000});
        }
    }
    client->tag = find_tag(client);
    client->rank = client->tag + (more ? TURNS_BUDGET : 0);
    client->order = all.order++;
    sift(++all.count, client);
}

void turns_leave(turn *client)
{
    if (!turns_is_waiting(client))
        return;
    turn *last = all.heap[all.count--];
    if (last != client)
        sift(client->place, last);
    client->place = 0;
}

void turns_idle(void)
{
    all.at_once = 0;
    all.clock = all.clock > all.latest ? all.clock : all.latest;
}

uint64_t turns_work_max(void)
{
    return all.work_max;
}
