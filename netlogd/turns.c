#include "config.h"

#include "turns.h"

#include "program/program.h"

#include <stdlib.h>

enum {
    AT_ONCE_BUDGET = 100000, /* units of work of a client that is served at once while others wait */
    AT_ONCE_LATER = 250000,  /* a client whose tag is at most so much later than the next one's is served at once */
    SHARE_MS = 10,           /* between turns at most, whatever else there is to do */
    CLOCK_SHARE = 8,         /* the part of the work in turns that moves the clock */
};

struct turns {
    struct event *event; /* active while clients wait */
    struct event *share; /* comes at the priority of clients that are served at once, while clients wait */
    bool ran;            /* a turn, since the share came */
    void (*before)(void *user);
    void *user;
    turn **heap; /* the clients that wait, the next one first; heap[0] is not used */
    size_t count, capacity;
    uint64_t clock;   /* virtual time, in units */
    uint64_t latest;  /* the latest tag */
    uint64_t order;   /* of the client that will wait next */
    uint64_t at_once; /* units served at once since the latest turn, or since no client had anything to be read */
    uint64_t work;    /* units of all clients */
    bool in_turn;
    uint64_t work_max; /* units of one turn */
};

/* Has on_turn called after the loop has looked for new bytes, which event_active would not. */
static void wake(turns *t)
{
    static const struct timeval now = {0};
    event_add(t->event, &now);
}

static bool is_before(const turn *a, const turn *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->order < b->order);
}

static void set_place(turns *t, size_t place, turn *client)
{
    t->heap[place] = client;
    client->place = place;
}

/* Puts the client where it belongs, at that free place or above or below it. */
static void sift(turns *t, size_t place, turn *client)
{
    for (; place > 1 && is_before(client, t->heap[place / 2]); place /= 2)
        set_place(t, place, t->heap[place / 2]);
    for (size_t child; (child = 2 * place) <= t->count; place = child) {
        if (child < t->count && is_before(t->heap[child + 1], t->heap[child]))
            child++;
        if (!is_before(t->heap[child], client))
            break;
        set_place(t, place, t->heap[child]);
    }
    set_place(t, place, client);
}

static void run_next(turns *t)
{
    turn *client = t->heap[1];
    turns_leave(t, client);
    t->clock = t->clock > client->tag ? t->clock : client->tag;
    t->in_turn = true;
    client->run(client->user);
    t->in_turn = false;
}

static void on_turn(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    turns *t = user;
    t->before(t->user);
    t->ran = true;
    t->at_once = 0;
    for (uint64_t end = t->work + TURNS_BUDGET, before = t->work - 1;
         t->count > 0 && t->work < end && t->work != before;) {
        before = t->work;
        run_next(t);
    }
    if (t->count > 0)
        wake(t);
}

static void on_share(evutil_socket_t fd, short what, void *user)
{
    turns *t = user;
    if (!t->ran)
        on_turn(fd, what, t);
    t->ran = false;
    if (t->count > 0)
        event_add(t->share, &(struct timeval){.tv_usec = SHARE_MS * 1000});
}

turns *turns_new(struct event_base *base, int priority, void (*before)(void *user), void *user)
{
    turns *t = calloc(1, sizeof *t);
    if (t == NULL || (t->event = event_new(base, -1, 0, on_turn, t)) == NULL ||
        (t->share = event_new(base, -1, 0, on_share, t)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    event_priority_set(t->event, priority);
    t->before = before;
    t->user = user;
    return t;
}

void turns_free(turns *t)
{
    if (t == NULL)
        return;
    event_free(t->event);
    event_free(t->share);
    free(t->heap);
    free(t);
}

/* The tag with which the client would begin now. */
static uint64_t find_tag(const turns *t, const turn *client)
{
    return client->tag > t->clock ? client->tag : t->clock;
}

bool turns_may_begin(const turns *t, const turn *client)
{
    return t->at_once < TURNS_AT_ONCE && (t->count == 0 || find_tag(t, client) <= t->heap[1]->rank + AT_ONCE_LATER);
}

uint64_t turns_budget_at_once(const turns *t)
{
    return t->count == 0 ? TURNS_BUDGET : AT_ONCE_BUDGET;
}

void turns_charge(turns *t, turn *client, uint64_t work)
{
    client->work += work;
    t->work += work;
    if (!t->in_turn)
        t->at_once += work;
    else if (work > t->work_max)
        t->work_max = work;
    if (turns_is_waiting(client)) /* when netlogd ends, there are no turns any more */
        return;
    client->tag = (t->in_turn ? client->tag : find_tag(t, client)) + work;
    t->clock += work / (t->count + 1) / (t->in_turn ? CLOCK_SHARE : 1);
    t->latest = t->latest > client->tag ? t->latest : client->tag;
}

void turns_wait(turns *t, turn *client, bool more)
{
    if (turns_is_waiting(client))
        return;
    if (t->count + 1 >= t->capacity) {
        t->capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
        t->heap = realloc(t->heap, t->capacity * sizeof(turn *));
        if (t->heap == NULL)
            program_fail(PROGRAM_PROBLEM, "out of memory");
    }
    if (t->count == 0) {
        wake(t);
        if (!event_pending(t->share, EV_TIMEOUT, NULL)) {
            t->ran = false;
            event_add(t->share, &(struct timeval){.tv_usec = SHARE_MS * 1000});
        }
    }
    client->tag = find_tag(t, client);
    client->rank = client->tag + (more ? TURNS_BUDGET : 0);
    client->order = t->order++;
    sift(t, ++t->count, client);
}

void turns_leave(turns *t, turn *client)
{
    if (!turns_is_waiting(client))
        return;
    turn *last = t->heap[t->count--];
    if (last != client)
        sift(t, client->place, last);
    client->place = 0;
}

void turns_idle(turns *t)
{
    t->at_once = 0;
    t->clock = t->clock > t->latest ? t->clock : t->latest;
}

uint64_t turns_work_max(const turns *t)
{
    return t->work_max;
}
