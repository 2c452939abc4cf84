/* The order in which netlogd serves its clients, in units of work. All tests except one use no clock. */
#include "turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    CLIENTS_MAX = 1000,
    PIECE_MAX =
        4000000, /* units of a block; a turn ends with a whole block, so it can exceed its budget by this amount */
    SEEDS = 30,
    VISITORS = 50,
    PRIORITIES = 3,
};

typedef struct world world;

typedef struct client {
    turn turn;
    world *world;
    uint64_t to_do;
    bool rest;           /* it has begun, and has more work */
    uint64_t piece;      /* minimum units per step */
    uint64_t waits_from; /* the units of all work when its wait began */
    uint64_t waited_max; /* units of other clients' work during one wait */
    size_t served_at;    /* number of clients served before, during its last wait */
    bool busy;           /* always has more work */
} client;

struct world {
    struct event_base *base;
    uint64_t random;
    uint64_t work; /* units of all clients */
    unsigned before_count;
    size_t served;
    struct event *always;
    size_t count;
    client clients[CLIENTS_MAX];
};

static uint64_t pick(world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % below;
}

static world *current;

static void note_turn(void)
{
    current->before_count++;
    event_base_loopbreak(current->base);
}

static void wait_for_turn(client *c)
{
    if (!turns_is_waiting(&c->turn))
        c->waits_from = c->world->work;
    turns_wait(&c->turn, c->rest);
}

static void do_work(client *c, bool at_once)
{
    world *w = c->world;
    uint64_t budget = at_once ? turns_budget_at_once() : TURNS_BUDGET, done = TURNS_READ_WORK;
    while (c->to_do > 0 && done + (at_once ? c->piece : 0) <= budget) {
        uint64_t piece = c->piece < c->to_do ? c->piece : c->to_do;
        done += piece;
        c->to_do -= piece;
    }
    w->work += done;
    turns_charge(&c->turn, done);
    if (c->busy)
        c->to_do += 10 * TURNS_BUDGET;
    c->rest = c->to_do > 0;
    if (c->rest)
        wait_for_turn(c);
}

static void turns_run(void *user)
{
    client *c = user;
    uint64_t waited = c->world->work - c->waits_from;
    c->waited_max = waited > c->waited_max ? waited : c->waited_max;
    c->served_at = c->world->served++;
    do_work(c, !c->rest);
}

/* Gives the client more work, as if its bytes had arrived. */
static void arrive(client *c, uint64_t work)
{
    c->to_do += work;
    if (turns_is_waiting(&c->turn))
        return;
    if (turns_may_begin(&c->turn))
        do_work(c, true);
    else
        wait_for_turn(c);
}

static void turns_begin(client *c, uint64_t piece, bool busy)
{
    world *w = c->world;
    *c = (client){.world = w, .piece = piece, .busy = busy};
    c->turn = (turn){.run = turns_run, .user = c};
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    if (w == NULL || (w->base = event_base_new()) == NULL)
        return -1;
    event_base_priority_init(w->base, PRIORITIES);
    turns_start(w->base, PRIORITIES - 1, note_turn);
    current = w;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        w->clients[i].world = w;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    turns_free();
    event_base_free(w->base);
    free(w);
    return 0;
}

static void run_turn(world *w)
{
    unsigned before = w->before_count;
    while (w->before_count == before)
        event_base_loop(w->base, EVLOOP_ONCE);
}

static void start_world(void **state, unsigned seed)
{
    if (seed > 1) {
        tear_down(state);
        set_up(state);
    }
    world *w = *state;
    w->random = seed * UINT64_C(0x9e3779b97f4a7c15);
}

/* A client that has had much work waits for only a few turns of each other client. */
static void test_no_client_starves(void **state)
{
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        start_world(state, seed);
        world *w = *state;
        w->count = 2 + pick(w, 60);
        for (size_t i = 0; i < w->count; i++)
            turns_begin(&w->clients[i], 1 + pick(w, i % 8 == 0 ? PIECE_MAX : 30000), i % 3 == 0);
        /* The first client alone does a second's work before the others arrive. */
        client *first = &w->clients[0];
        arrive(first, 1);
        for (int i = 0; i < 1000; i++)
            run_turn(w);
        uint64_t bound = 20 * (w->count + 1) * (uint64_t)(TURNS_BUDGET + PIECE_MAX);
        for (int step = 0; step < 5000; step++) {
            for (size_t i = pick(w, 5); i < w->count; i += 1 + pick(w, 5))
                arrive(&w->clients[i], w->clients[i].busy ? 1 : pick(w, 200000));
            if (turns_is_waiting(&first->turn))
                run_turn(w);
            for (size_t i = 0; i < w->count; i++) {
                const client *c = &w->clients[i];
                uint64_t waits = turns_is_waiting(&c->turn) ? w->work - c->waits_from : c->waited_max;
                if (waits > bound)
                    fail_msg("seed %u: client %zu of %zu waits while others do %llu units", seed, i, w->count,
                             (unsigned long long)waits);
            }
        }
        assert_true(first->waited_max > 0);
    }
}

/*
 * Clients that arrive, are served once and leave do not delay the waiting clients, although each new client has had
 * less work than any other client.
 */
static void check_visits(void **state, bool at_once)
{
    world *w = *state;
    w->random = 1;
    w->count = 20;
    for (size_t i = 0; i < w->count; i++) {
        turns_begin(&w->clients[i], 20000, true);
        arrive(&w->clients[i], 1);
    }
    uint64_t bound = 20 * (w->count + VISITORS + 1) * (uint64_t)TURNS_BUDGET;
    for (int visit = 0; visit < 100000; visit++) {
        client *visitor = &w->clients[w->count + (size_t)visit % VISITORS];
        turns_leave(&visitor->turn);
        turns_begin(visitor, 20000, false);
        if (at_once) {
            arrive(visitor, 60000);
        } else {
            visitor->to_do = TURNS_BUDGET;
            visitor->rest = visit % 2 == 0;
            wait_for_turn(visitor);
        }
        if (visit % VISITORS == 0)
            run_turn(w);
        for (size_t i = 0; i < w->count; i++)
            if (w->work - w->clients[i].waits_from > bound)
                fail_msg("client %zu waits", i);
    }
}

static void test_new_clients_at_once(void **state)
{
    check_visits(state, true);
}

static void test_new_clients_that_wait(void **state)
{
    check_visits(state, false);
}

/* Clients that always have work get equal shares, for any size of their pieces. */
static void test_equal_shares(void **state)
{
    world *w = *state;
    w->random = 1;
    w->count = 50;
    for (size_t i = 0; i < w->count; i++) {
        turns_begin(&w->clients[i], i < 5 ? PIECE_MAX : 1000 * (i + 1), true);
        arrive(&w->clients[i], 1);
    }
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < 20000; i++)
        run_turn(w);
    for (size_t i = 0; i < w->count; i++) {
        uint64_t work = w->clients[i].turn.work;
        least = work < least ? work : least;
        most = work > most ? work : most;
    }
    assert_true(least > 100 * (uint64_t)PIECE_MAX);
    assert_true(most - least <= 3 * (uint64_t)(PIECE_MAX + TURNS_BUDGET));
}

/* A client that uses less than its share waits for two turns at most, among any number of busy clients. */
static void test_a_modest_client_is_next(void **state)
{
    world *w = *state;
    w->random = 1;
    w->count = CLIENTS_MAX;
    client *modest = &w->clients[0];
    turns_begin(modest, 10000, false);
    for (size_t i = 1; i < w->count; i++) {
        turns_begin(&w->clients[i], 1 + pick(w, 30000), true);
        arrive(&w->clients[i], 1);
    }
    for (int step = 0; step < 20000; step++) {
        if (step % 50 == 0) /* 50 turns are 10 million units of work; the client's share of these is 10,000 */
            arrive(modest, 5000);
        run_turn(w);
        assert_true(!turns_is_waiting(&modest->turn) || w->work - modest->waits_from <= 3 * (uint64_t)TURNS_BUDGET);
    }
    assert_true(modest->waited_max <= 3 * (uint64_t)TURNS_BUDGET);
    assert_true(modest->turn.work >= 5000 * (20000 / 50 - 1));
}

/* For any number of served clients, a turn comes after a bounded amount of work. Each read costs units. */
static void test_turns_come_between(void **state)
{
    world *w = *state;
    w->random = 1;
    w->count = CLIENTS_MAX;
    for (size_t i = 0; i < w->count; i++)
        turns_begin(&w->clients[i], 2, false);
    for (size_t i = 0; w->work < 2 * (uint64_t)TURNS_AT_ONCE && !turns_is_waiting(&w->clients[i % w->count].turn); i++)
        arrive(&w->clients[(i + 1) % w->count], 2);
    assert_in_range(w->work, TURNS_AT_ONCE, TURNS_AT_ONCE + TURNS_BUDGET);
    run_turn(w);
    assert_true(turns_may_begin(&w->clients[0].turn));
}

static void be_active(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    world *w = user;
    event_add(w->always, &(struct timeval){0});
}

/* Turns come at the default priority, although other work is always pending. */
static void test_turns_come_beside_others(void **state)
{
    world *w = *state;
    w->random = 1;
    turns_begin(&w->clients[0], 20000, true);
    w->clients[0].to_do = 1;
    wait_for_turn(&w->clients[0]);
    w->always = event_new(w->base, -1, 0, be_active, w);
    assert_non_null(w->always);
    be_active(-1, 0, w);
    alarm(60); /* without turns, the loop does not end */
    while (w->before_count < 5)
        event_base_loop(w->base, 0);
    alarm(0);
    event_free(w->always);
}

static int compare_ranks(const void *a, const void *b)
{
    const turn *first = &(*(client *const *)a)->turn, *second = &(*(client *const *)b)->turn;
    if (first->rank != second->rank)
        return first->rank < second->rank ? -1 : 1;
    return first->order < second->order ? -1 : 1;
}

/* When a client leaves, the others are served in the order of their ranks, and equal ranks in the order of arrival. */
static void test_order(void **state)
{
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        start_world(state, seed);
        world *w = *state;
        client *waiting[CLIENTS_MAX];
        size_t count = 0;
        w->count = 1 + pick(w, 300);
        for (size_t i = 0; i < w->count; i++) {
            client *c = &w->clients[i];
            turns_begin(c, 1, false);
            c->turn.tag = pick(w, 50);
            c->to_do = 1;
            c->rest = pick(w, 2) == 1;
            wait_for_turn(c);
            turns_leave(&w->clients[pick(w, i + 1)].turn);
        }
        for (size_t i = 0; i < w->count; i++)
            if (turns_is_waiting(&w->clients[i].turn))
                waiting[count++] = &w->clients[i];
        qsort(waiting, count, sizeof *waiting, compare_ranks);
        while (w->served < count)
            run_turn(w);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(waiting[i]->served_at, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_client_starves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_new_clients_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_new_clients_that_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_equal_shares, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_modest_client_is_next, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_turns_come_between, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_turns_come_beside_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
