#include "config.h"

#include "requests/precedence.h"

#include "requests/key_map.h"

#include <glib.h>
#include <string.h>

enum {
    NONE = UINT16_MAX,
    ALONE_ENOUGH = 1,
    LOSSES_NOISE = 2,         /* number of requests that lack an event for other reasons */
    LEARNED_EVENTS_MAX = 4096 /* maximum number of events of a request from which the module learns */
};

/* An order that holds in this share of requests is a rule. Logs have some records with wrong times. */
static const double rule_share = 0.99;

/* The share for the first and last events of programs, of which the log may lack more than a few. */
static const double call_share = 0.9;

/*
 * The order of the events of one program ("this") and another program ("the other"), in the requests in which both have
 * events.
 */
typedef struct program_pair {
    uint32_t both;
    uint32_t before; /* number of requests in which the other program has an event before this program's first event */
    uint32_t after;  /* number of requests in which the other program has an event after this program's last event */
    double gap_ns;   /* sum of the times from the other program's last earlier event to this program's first event, over
                        the requests that `before` counts */
} program_pair;

struct precedence {
    key_map events; /* kind + 1 to index + 1 */
    uint16_t role_count;
    uint32_t both[PRECEDENCE_EVENTS_MAX][PRECEDENCE_EVENTS_MAX]; /* on the diagonal, the requests with the event */
    uint32_t before[PRECEDENCE_EVENTS_MAX]
                   [PRECEDENCE_EVENTS_MAX]; /* number of requests in which the first index precedes the second */
    program_pair pairs[PRECEDENCE_ROLES_MAX][PRECEDENCE_ROLES_MAX];
    uint16_t role_of[PRECEDENCE_EVENTS_MAX]; /* NONE: unknown */
    bool unused[PRECEDENCE_ROLES_MAX];       /* roles that were joined to other roles */
    /* precedence_settle sets the following members. */
    uint16_t caller[PRECEDENCE_ROLES_MAX];
    float certain[PRECEDENCE_EVENTS_MAX]
                 [PRECEDENCE_EVENTS_MAX]; /* certainty that the first index causes the second; 0: it does not */
    bool expects[PRECEDENCE_EVENTS_MAX][PRECEDENCE_EVENTS_MAX]; /* a request with the first has the second */
    bool has_losses;                                            /* some events are expected */
};

precedence *precedence_new(void)
{
    precedence *p = g_new0(precedence, 1);
    memset(p->caller, 0xff, sizeof p->caller);
    memset(p->role_of, 0xff, sizeof p->role_of);
    return p;
}

void precedence_free(precedence *p)
{
    if (p == NULL)
        return;
    key_map_free(&p->events);
    g_free(p);
}

/* Returns the index of an event, or NONE. */
static uint16_t find_event(const precedence *p, const request_event *e)
{
    const uint64_t *index = key_map_find(&p->events, request_event_kind(e) + 1);
    return index != NULL ? (uint16_t)(*index - 1) : NONE;
}

/* Like find_event, but gives a new event the next index, if one is left. */
static uint16_t add_event(precedence *p, const request_event *e)
{
    if (p->events.count == PRECEDENCE_EVENTS_MAX)
        return find_event(p, e);
    uint64_t *index = key_map_add(&p->events, request_event_kind(e) + 1);
    *index = *index != 0 ? *index : p->events.count;
    return (uint16_t)(*index - 1);
}

/* ---- roles ---- */

static void pair_add(program_pair *to, const program_pair *more)
{
    to->both += more->both;
    to->before += more->before;
    to->after += more->after;
    to->gap_ns += more->gap_ns;
}

/* Joins two roles to one role. */
static void join_roles(precedence *p, uint16_t to, uint16_t from)
{
    for (size_t i = 0; i < PRECEDENCE_EVENTS_MAX; i++)
        if (p->role_of[i] == from)
            p->role_of[i] = to;
    for (size_t i = 0; i < p->role_count; i++) {
        pair_add(&p->pairs[to][i], &p->pairs[from][i]);
        pair_add(&p->pairs[i][to], &p->pairs[i][from]);
    }
    p->unused[from] = true;
}

/* The first and the last event of one place in a request. */
typedef struct program_visit {
    uint32_t place;
    uint16_t role; /* NONE: there are too many roles */
    int64_t first_ns, last_ns;
} program_visit;

/* Assigns one role to all events of a visit. */
static void learn_role(precedence *p, program_visit *visit, uint16_t event)
{
    uint16_t *role = event == NONE ? &visit->role : &p->role_of[event];
    if (visit->role == NONE && *role == NONE && p->role_count < PRECEDENCE_ROLES_MAX)
        *role = p->role_count++;
    if (*role == NONE)
        *role = visit->role;
    if (visit->role != NONE && visit->role != *role)
        join_roles(p, *role, visit->role);
    visit->role = *role;
}

/* Sets visit_of for each event to the number of its visit; UINT8_MAX: there are too many visits. */
static size_t find_visits(precedence *p, const request_event *events, size_t count,
                          program_visit visits[PRECEDENCE_ROLES_MAX], uint8_t *visit_of)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t v = 0;
        while (v < found && visits[v].place != events[i].place)
            v++;
        visit_of[i] = v < PRECEDENCE_ROLES_MAX ? (uint8_t)v : UINT8_MAX;
        if (v == PRECEDENCE_ROLES_MAX)
            continue;
        if (v == found)
            visits[found++] = (program_visit){events[i].place, NONE, events[i].time_ns, 0};
        visits[v].last_ns = events[i].time_ns;
        learn_role(p, &visits[v], add_event(p, &events[i]));
    }
    return found;
}

static void learn_visits(precedence *p, const request_event *events, size_t count)
{
    program_visit visits[PRECEDENCE_ROLES_MAX];
    uint8_t visit_of[LEARNED_EVENTS_MAX];
    size_t found = find_visits(p, events, count, visits, visit_of);
    for (size_t v = 0; v < found; v++) {
        int64_t latest_ns[PRECEDENCE_ROLES_MAX];
        for (size_t w = 0; w < found; w++)
            latest_ns[w] = INT64_MIN;
        for (size_t i = 0; i < count && events[i].time_ns <= visits[v].first_ns; i++)
            if (visit_of[i] != UINT8_MAX)
                latest_ns[visit_of[i]] = events[i].time_ns;
        for (size_t w = 0; w < found; w++) {
            uint16_t role = visits[v].role, other = visits[w].role;
            if (role == NONE || other == NONE || role == other)
                continue;
            program_pair *pair = &p->pairs[role][other];
            pair->both++;
            if (latest_ns[w] != INT64_MIN) {
                pair->before++;
                pair->gap_ns += (double)(visits[v].first_ns - latest_ns[w]);
            }
            pair->after += visits[w].last_ns >= visits[v].last_ns;
        }
    }
}

void precedence_learn(precedence *p, const request_event *events, size_t count)
{
    uint16_t order[PRECEDENCE_EVENTS_MAX];
    bool seen[PRECEDENCE_EVENTS_MAX] = {false};
    size_t kinds = 0;
    if (count > LEARNED_EVENTS_MAX)
        return;
    for (size_t i = 0; i < count; i++) { /* the first occurrence of each kind */
        uint16_t kind = add_event(p, &events[i]);
        if (kind == NONE || seen[kind])
            continue;
        seen[kind] = true;
        p->both[kind][kind]++;
        for (size_t k = 0; k < kinds; k++) {
            p->both[order[k]][kind]++;
            p->both[kind][order[k]]++;
            p->before[order[k]][kind]++;
        }
        order[kinds++] = kind;
    }
    learn_visits(p, events, count);
}

/* Returns whether program w can call program v. If `ends` is true, w must also end after v. */
static bool can_call(const program_pair *pair, bool ends)
{
    double both = pair->both;
    return pair->both >= ALONE_ENOUGH && pair->before >= call_share * both &&
           (!ends || pair->after >= call_share * both);
}

static void choose_callers(precedence *p)
{
    guint roles = p->role_count;
    for (guint v = 0; v < roles; v++) {
        p->caller[v] = NONE;
        if (p->unused[v])
            continue;
        for (int ends = 1; ends >= 0 && p->caller[v] == NONE; ends--) {
            double best_ns = 0;
            for (guint w = 0; w < roles; w++) {
                const program_pair *pair = &p->pairs[v][w], *reverse = &p->pairs[w][v];
                double gap_ns = pair->before > 0 ? pair->gap_ns / pair->before : 0;
                /* Two roles whose first events have the same time would call each other. */
                if (w == v || p->unused[w] || !can_call(pair, ends) || (can_call(reverse, ends) && w > v))
                    continue;
                if (p->caller[v] == NONE || gap_ns < best_ns) {
                    p->caller[v] = (uint16_t)w;
                    best_ns = gap_ns;
                }
            }
        }
    }
}

static bool is_before(const precedence *p, guint first, guint second)
{
    return p->both[first][second] >= ALONE_ENOUGH && p->before[first][second] >= rule_share * p->both[first][second];
}

static bool are_joined(const precedence *p, guint a, guint b)
{
    uint16_t x = p->role_of[a], y = p->role_of[b];
    return x != NONE && y != NONE && x != y && (p->caller[x] == y || p->caller[y] == x);
}

/* For an event and a role: whether the role has an event that always precedes that event. */
typedef bool heard_table[PRECEDENCE_EVENTS_MAX][PRECEDENCE_ROLES_MAX];

static void find_heard(const precedence *p, heard_table heard)
{
    guint kinds = (guint)p->events.count;
    for (guint a = 0; a < kinds; a++)
        for (guint b = 0; b < kinds; b++)
            if (p->role_of[a] != NONE && is_before(p, a, b))
                heard[b][p->role_of[a]] = true;
}

/*
 * Returns whether `cause` may have caused `effect`. If an earlier event of the effect's program already depends on the
 * cause's program, only causes that always come after that event are new.
 */
static bool is_news(const precedence *p, heard_table heard, guint cause, guint effect)
{
    guint kinds = (guint)p->events.count;
    for (guint own = 0; own < kinds; own++)
        if (own != effect && p->role_of[own] == p->role_of[effect] && is_before(p, own, effect) &&
            heard[own][p->role_of[cause]] && !is_before(p, own, cause))
            return false;
    return true;
}

/* Returns whether requests with event a have event b too, unless its record was lost, see precedence_count_missing. */
static bool goes_with(const precedence *p, guint a, guint b)
{
    uint32_t with_a = p->both[a][a], with_b = p->both[b][b], both = p->both[a][b];
    uint32_t without_b = with_a - both, without_a = with_b - both;
    return both >= call_share * with_a && without_b > 0 && without_b <= 2 * without_a + LOSSES_NOISE &&
           without_a > LOSSES_NOISE;
}

void precedence_settle(precedence *p)
{
    heard_table heard = {{false}};
    choose_callers(p);
    find_heard(p, heard);
    guint kinds = (guint)p->events.count;
    for (guint a = 0; a < kinds; a++)
        for (guint b = 0; b < kinds; b++) {
            bool causes = are_joined(p, a, b) && is_before(p, a, b) && is_news(p, heard, a, b);
            p->certain[a][b] = causes ? (float)p->before[a][b] / (float)p->both[a][b] : 0;
            p->expects[a][b] = a != b && goes_with(p, a, b);
            p->has_losses = p->has_losses || p->expects[a][b];
        }
}

uint32_t precedence_count_missing(const precedence *p, const request_event *events, size_t count)
{
    bool seen[PRECEDENCE_EVENTS_MAX] = {false}, missing[PRECEDENCE_EVENTS_MAX] = {false};
    uint32_t found = 0;
    if (!p->has_losses)
        return 0;
    for (size_t i = 0; i < count; i++) {
        uint16_t kind = find_event(p, &events[i]);
        if (kind != NONE)
            seen[kind] = true;
    }
    guint kinds = (guint)p->events.count;
    for (guint a = 0; a < kinds; a++)
        for (guint b = 0; seen[a] && b < kinds; b++)
            missing[b] = missing[b] || (p->expects[a][b] && !seen[b]);
    for (guint b = 0; b < kinds; b++)
        found += missing[b];
    return found;
}

double precedence_holds(const precedence *p, const request_event *cause, const request_event *effect)
{
    uint16_t first = find_event(p, cause), second = find_event(p, effect);
    return first == NONE || second == NONE ? 0 : p->certain[first][second];
}
