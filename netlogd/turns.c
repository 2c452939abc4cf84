#include "config.h"

#include "turns.h"

#include "base/monotonic.h"
#include "program/program.h"

#include <stdlib.h>

enum {
    AT_ONCE_BUDGET = 100000,          /* units of work of a client that is served at once while others wait */
    AT_ONCE_TOTAL = 4 * TURNS_BUDGET, /* units served at once before clients get no more than that */
    ALLOWANCE_SHARE = 8,              /* a client's debt is paid off by this part of the time */
    DEBT_MAX = 250000000,             /* units */
    DEBT_FREE = TURNS_BUDGET / 4,     /* units of debt with which a client is served at once */
};

struct turns {
    struct event *event; /* active while clients wait */
    void (*before)(void *user);
    void *user;
    struct {
        turn *first, **end;
    } levels[TURNS_LEVELS];  /* by the binary logarithm of the debt */
    uint32_t filled;         /* a bit for each level where clients wait */
    uint64_t at_once;        /* units served at once since no client had anything to be read */
    uint64_t work, work_max; /* units of the present turn, and the maximum of all turns */
};

/* Has on_turn called after the loop has looked for new bytes, which event_active would not. */
static void wake(turns *t)
{
    static const struct timeval now = {0};
    event_add(t->event, &now);
}

/* Takes the first client of the lowest level off the queue. */
static turn *take_first(turns *t)
{
    int level = __builtin_ctz(t->filled);
    turn *first = t->levels[level].first;
    turns_leave(t, first);
    return first;
}

static void on_turn(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    turns *t = user;
    t->before(t->user);
    if (t->filled == 0)
        return;
    turn *client = take_first(t);
    t->work = 0;
    client->run(client->user);
    t->work_max = t->work > t->work_max ? t->work : t->work_max;
    if (t->filled != 0)
        wake(t);
}

turns *turns_new(struct event_base *base, int priority, void (*before)(void *user), void *user)
{
    turns *t = calloc(1, sizeof *t);
    if (t == NULL || (t->event = event_new(base, -1, 0, on_turn, t)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    event_priority_set(t->event, priority);
    t->before = before;
    t->user = user;
    for (int i = 0; i < TURNS_LEVELS; i++)
        t->levels[i].end = &t->levels[i].first;
    return t;
}

void turns_free(turns *t)
{
    if (t == NULL)
        return;
    event_free(t->event);
    free(t);
}

/* Pays off the debt by what the time since the last call allows. */
static void pay_off(turn *client)
{
    int64_t now_ns = nl_monotonic_ns();
    client->debt -= (double)(now_ns - client->debt_ns) / ALLOWANCE_SHARE;
    client->debt = client->debt > 0 ? client->debt : 0;
    client->debt_ns = now_ns;
}

bool turns_may_begin(const turns *t, turn *client)
{
    (void)t;
    if (client->debt > DEBT_FREE)
        pay_off(client);
    return client->debt <= DEBT_FREE;
}

uint64_t turns_budget_at_once(const turns *t)
{
    return t->filled == 0 && t->at_once < AT_ONCE_TOTAL ? TURNS_BUDGET : AT_ONCE_BUDGET;
}

void turns_charge(turns *t, turn *client, uint64_t work, bool at_once)
{
    if (client->debt > 0)
        pay_off(client);
    else
        client->debt_ns = nl_monotonic_ns();
    client->work += work;
    client->debt += (double)work;
    client->debt = client->debt < DEBT_MAX ? client->debt : DEBT_MAX;
    *(at_once ? &t->at_once : &t->work) += work;
}

void turns_wait(turns *t, turn *client)
{
    if (turns_is_waiting(client))
        return;
    pay_off(client);
    int level = client->debt < 1 ? 0 : 64 - __builtin_clzll((uint64_t)client->debt);
    if (t->filled == 0)
        wake(t);
    client->next = NULL;
    client->link = t->levels[level].end;
    *client->link = client;
    t->levels[level].end = &client->next;
    t->filled |= UINT32_C(1) << level;
}

void turns_leave(turns *t, turn *client)
{
    if (!turns_is_waiting(client))
        return;
    *client->link = client->next;
    if (client->next != NULL)
        client->next->link = client->link;
    for (int i = 0; i < TURNS_LEVELS; i++) {
        if (t->levels[i].end == &client->next)
            t->levels[i].end = client->link;
        if (t->levels[i].first == NULL)
            t->filled &= ~(UINT32_C(1) << i);
    }
    client->next = NULL;
    client->link = NULL;
}

void turns_idle(turns *t)
{
    t->at_once = 0;
}

uint64_t turns_work_max(const turns *t)
{
    return t->work_max;
}
