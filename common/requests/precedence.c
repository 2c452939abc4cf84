#include "config.h"

#include "requests/precedence.h"

#include "requests/key_map.h"
#include "requests/program_families.h"
#include "requests/whole_spans.h"

#include <glib.h>
#include <math.h>
#include <string.h>

enum {
    NONE = UINT16_MAX,
    ALONE_ENOUGH = 1,
    LOSSES_NOISE = 2,  /* maximum number of requests that lack an event by chance, without a lost record */
    CROSSINGS_MIN = 3, /* minimum number of requests in which two spans cross, to prove that they run side by side */
    LEARNED_EVENTS_MAX = 4096 /* maximum number of events of a request from which the module learns */
};

/*
 * An order that holds in this share of requests is a rule. The share is below 1, because some records have wrong times.
 */
static const double rule_share = 0.99;

/*
 * Like rule_share, for the first and last events of programs. This share is lower, because programs lose the records of
 * these events more often than other records.
 */
static const double call_share = 0.9;

/*
 * The order of the events of one role ("this program") and another role. Counts the visits (see program_visit) of this
 * program in the requests in which both programs have events.
 */
typedef struct program_pair {
    uint32_t both;
    uint32_t before;    /* number of these visits that follow an event of the other program */
    uint32_t inside;    /* number of these visits that are within a visit of the other program */
    uint32_t after;     /* number of these visits that begin after the other program's last event */
    double gap, square; /* sum of the gaps, and sum of their squares; a gap is the time in seconds from the other
                           program's last earlier event to a visit that `before` counts */
} program_pair;

struct precedence {
    const event_names *names; /* NULL: names do not show which events begin and end spans */
    program_families *families;
    whole_spans *whole;
    key_map events; /* maps program_families_kind + 1 to the event's index + 1 */
    uint16_t role_count;
    /*
     * precedence_learn_kinds sets `together` to the number of requests with both events. On the diagonal, `together` is
     * the number of requests with the event.
     */
    uint32_t together[PRECEDENCE_EVENTS_MAX][PRECEDENCE_EVENTS_MAX];
    uint32_t equal[PRECEDENCE_EVENTS_MAX]
                  [PRECEDENCE_EVENTS_MAX]; /* number of these requests that have equal numbers of both events */
    uint32_t both[PRECEDENCE_EVENTS_MAX][PRECEDENCE_EVENTS_MAX]; /* number of requests with both events, among the
                                                                    requests that were passed to precedence_learn */
    uint32_t before[PRECEDENCE_EVENTS_MAX]
                   [PRECEDENCE_EVENTS_MAX]; /* number of requests in which the first event precedes the second */
    program_pair pairs[PRECEDENCE_ROLES_MAX][PRECEDENCE_ROLES_MAX];
    uint16_t role_of[PRECEDENCE_EVENTS_MAX]; /* NONE: unknown */
    bool unused[PRECEDENCE_ROLES_MAX];       /* the role was joined to another role */
    /*
     * For each role: `repeated` counts the visits that follow visits of the same request on other hosts. `overlapping`
     * counts the visits among them that begin before the visits on other hosts have ended.
     */
    uint32_t repeated[PRECEDENCE_ROLES_MAX], overlapping[PRECEDENCE_ROLES_MAX];
    /*
     * For the first events of two spans of one thread: number of requests in which the first span contains the second.
     */
    uint32_t nested[PRECEDENCE_EVENTS_MAX][PRECEDENCE_EVENTS_MAX];
    /* Number of requests in which the second span begins within the first and ends after it. */
    uint32_t crossed[PRECEDENCE_EVENTS_MAX][PRECEDENCE_EVENTS_MAX];
    bool has_crossed;
    /* precedence_settle sets the following members. */
    uint16_t caller[PRECEDENCE_ROLES_MAX];
    uint16_t former[PRECEDENCE_ROLES_MAX]; /* the role that the caller calls before this role (see choose_former_roles),
                                              or NONE */
    float certain[PRECEDENCE_EVENTS_MAX]
                 [PRECEDENCE_EVENTS_MAX]; /* certainty that the first event causes the second, or 0 */
    float skipping[PRECEDENCE_EVENTS_MAX][PRECEDENCE_EVENTS_MAX]; /* like `certain`, for requests without an event that
                                                                     causes the second by `certain` */
    bool expects[PRECEDENCE_EVENTS_MAX]
                [PRECEDENCE_EVENTS_MAX]; /* if a request has the first event and lacks the second, a record was lost */
    bool has_losses;                     /* some element of `expects` is true */
    /* Numbers of requests, for each event, with the evidence of precedence_learn_replies. */
    uint32_t calling[PRECEDENCE_EVENTS_MAX], replying[PRECEDENCE_EVENTS_MAX], early[PRECEDENCE_EVENTS_MAX];
    float replies[PRECEDENCE_EVENTS_MAX]; /* certainty that the caller logs the event for each reply, or 0 */
    bool has_replies;                     /* some element of `replies` is not 0 */
};

precedence *precedence_new(const event_names *names)
{
    precedence *p = g_new0(precedence, 1);
    p->names = names;
    p->families = program_families_new();
    p->whole = whole_spans_new(p->families);
    memset(p->caller, 0xff, sizeof p->caller);
    memset(p->former, 0xff, sizeof p->former);
    memset(p->role_of, 0xff, sizeof p->role_of);
    return p;
}

void precedence_free(precedence *p)
{
    if (p == NULL)
        return;
    key_map_free(&p->events);
    whole_spans_free(p->whole);
    program_families_free(p->families);
    g_free(p);
}

/* Returns the index of an event's kind, or NONE. */
static uint16_t find_event(const precedence *p, const request_event *e)
{
    const uint64_t *index = key_map_find(&p->events, program_families_kind(p->families, e) + 1);
    return index != NULL ? (uint16_t)(*index - 1) : NONE;
}

/* Like find_event, but adds a new kind, if there is space. */
static uint16_t add_event(precedence *p, const request_event *e)
{
    if (p->events.count == PRECEDENCE_EVENTS_MAX)
        return find_event(p, e);
    uint64_t *index = key_map_add(&p->events, program_families_kind(p->families, e) + 1);
    *index = *index != 0 ? *index : p->events.count;
    return (uint16_t)(*index - 1);
}

void precedence_learn_programs(precedence *p, const request_event *events, size_t count)
{
    program_families_learn(p->families, events, count);
}

/* ---- lost records ---- */

/* Counts a request's events of each kind. Returns the number of different kinds, which it stores in `kinds`. */
static size_t count_kinds(const precedence *p, const request_event *events, size_t count,
                          uint32_t counts[PRECEDENCE_EVENTS_MAX], uint16_t kinds[PRECEDENCE_EVENTS_MAX])
{
    size_t found = 0;
    memset(counts, 0, PRECEDENCE_EVENTS_MAX * sizeof *counts);
    for (size_t i = 0; i < count; i++) {
        uint16_t kind = find_event(p, &events[i]);
        if (kind != NONE && counts[kind]++ == 0)
            kinds[found++] = kind;
    }
    return found;
}

void precedence_learn_kinds(precedence *p, const request_event *events, size_t count)
{
    uint32_t counts[PRECEDENCE_EVENTS_MAX];
    uint16_t kinds[PRECEDENCE_EVENTS_MAX];
    for (size_t i = 0; i < count; i++)
        add_event(p, &events[i]);
    size_t found = count_kinds(p, events, count, counts, kinds);
    for (size_t i = 0; i < found; i++)
        for (size_t k = 0; k < found; k++) {
            p->together[kinds[i]][kinds[k]]++;
            p->equal[kinds[i]][kinds[k]] += counts[kinds[i]] == counts[kinds[k]];
        }
}

/*
 * Returns whether records of event b were lost in the requests that have event a and lack event b (see
 * precedence_count_missing).
 */
static bool goes_with(const precedence *p, guint a, guint b)
{
    uint32_t with_a = p->together[a][a], with_b = p->together[b][b], both = p->together[a][b];
    uint32_t without_b = with_a - both, without_a = with_b - both;
    return both >= call_share * with_a && without_b > 0 && without_b <= 2 * without_a + LOSSES_NOISE &&
           without_a > LOSSES_NOISE;
}

bool precedence_settle_kinds(precedence *p)
{
    guint kinds = (guint)p->events.count;
    for (guint a = 0; a < kinds; a++)
        for (guint b = 0; b < kinds; b++) {
            p->expects[a][b] = a != b && goes_with(p, a, b);
            p->has_losses = p->has_losses || p->expects[a][b];
        }
    return p->has_losses;
}

/* Returns whether a request that has event a lacks event b. `counts` contains its numbers of events of each kind. */
static bool lacks_event(const precedence *p, guint a, guint b, const uint32_t *counts)
{
    if (!p->expects[a][b])
        return false;
    bool as_many = p->equal[a][b] >= call_share * p->together[a][b];
    return counts[b] < (as_many ? counts[a] : 1);
}

uint32_t precedence_count_missing(const precedence *p, const request_event *events, size_t count)
{
    uint32_t counts[PRECEDENCE_EVENTS_MAX], missing = 0;
    uint16_t kinds[PRECEDENCE_EVENTS_MAX];
    if (!p->has_losses)
        return 0;
    size_t found = count_kinds(p, events, count, counts, kinds);
    for (guint b = 0; b < p->events.count; b++) {
        bool lacks = false;
        for (size_t i = 0; i < found && !lacks; i++)
            lacks = lacks_event(p, kinds[i], b, counts);
        missing += lacks;
    }
    return missing;
}

/* ---- roles ---- */

static void pair_add(program_pair *to, const program_pair *more)
{
    to->both += more->both;
    to->before += more->before;
    to->inside += more->inside;
    to->after += more->after;
    to->gap += more->gap;
    to->square += more->square;
}

/* Moves the events and counts of role `from` to role `to`. */
static void join_roles(precedence *p, uint16_t to, uint16_t from)
{
    for (size_t i = 0; i < PRECEDENCE_EVENTS_MAX; i++)
        if (p->role_of[i] == from)
            p->role_of[i] = to;
    for (size_t i = 0; i < p->role_count; i++) {
        pair_add(&p->pairs[to][i], &p->pairs[from][i]);
        pair_add(&p->pairs[i][to], &p->pairs[i][from]);
    }
    p->repeated[to] += p->repeated[from];
    p->overlapping[to] += p->overlapping[from];
    p->unused[from] = true;
}

/*
 * A visit: the events of a request in one program on one host (the place), from first_ns to last_ns. Another visit
 * begins when all spans at the place have ended and the first span begins again.
 */
typedef struct program_visit {
    uint32_t place;
    uint16_t role; /* NONE: there are too many roles */
    int64_t first_ns, last_ns;
    uint64_t first_kind;
    int open; /* number of spans that have begun and not ended */
} program_visit;

/* Gives an event the role of its visit. If the visit and the event have different roles, joins these roles. */
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

/* Returns how an event changes the number of open spans: 1, -1 or 0. */
static int nesting_of(const precedence *p, const request_event *e)
{
    uint32_t span;
    if (e->role != REQUEST_POINT || p->names == NULL)
        return (e->role == REQUEST_BEGIN) - (e->role == REQUEST_END);
    event_side side = event_names_side(p->names, e->name, &span);
    return (side == EVENT_SIDE_BEGIN) - (side == EVENT_SIDE_END);
}

/*
 * Finds the visits of a request, and learns the roles of their events. Sets visit_of[i] to the index of the visit of
 * event i, or to UINT8_MAX if there are too many visits. Returns the number of visits.
 */
static size_t find_visits(precedence *p, const request_event *events, size_t count,
                          program_visit visits[PRECEDENCE_ROLES_MAX], uint8_t *visit_of)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t kind = program_families_kind(p->families, &events[i]);
        int nesting = nesting_of(p, &events[i]);
        size_t v = found;
        while (v > 0 && visits[v - 1].place != events[i].place)
            v--;
        bool again = v > 0 && nesting > 0 && visits[v - 1].open == 0 && visits[v - 1].first_kind == kind;
        v = v == 0 || again ? found : v - 1;
        visit_of[i] = v < PRECEDENCE_ROLES_MAX ? (uint8_t)v : UINT8_MAX;
        if (v == PRECEDENCE_ROLES_MAX)
            continue;
        if (v == found)
            visits[found++] = (program_visit){events[i].place, NONE, events[i].time_ns, 0, kind, 0};
        visits[v].last_ns = events[i].time_ns;
        visits[v].open = MAX(0, visits[v].open + nesting);
        learn_role(p, &visits[v], add_event(p, &events[i]));
    }
    return found;
}

/* Learns whether visit v waits for the earlier visits of its role at other places. */
static void learn_repetition(precedence *p, const program_visit *visits, size_t v)
{
    bool repeated = false, overlapping = false;
    for (size_t w = 0; w < v && visits[v].role != NONE; w++)
        if (visits[w].role == visits[v].role && visits[w].place != visits[v].place) {
            repeated = true;
            overlapping = overlapping || visits[v].first_ns < visits[w].last_ns;
        }
    if (repeated) {
        p->repeated[visits[v].role]++;
        p->overlapping[visits[v].role] += overlapping;
    }
}

/* The events of another role, relative to a visit of the same request. */
typedef struct meeting {
    bool present, inside;
    int64_t last_ns;   /* time of the role's last event */
    int64_t latest_ns; /* time of the role's latest event before the visit, or INT64_MIN */
} meeting;

static void learn_visits(precedence *p, const request_event *events, size_t count)
{
    program_visit visits[PRECEDENCE_ROLES_MAX];
    uint8_t visit_of[LEARNED_EVENTS_MAX];
    size_t found = find_visits(p, events, count, visits, visit_of);
    for (size_t v = 0; v < found; v++) {
        meeting met[PRECEDENCE_ROLES_MAX];
        uint16_t role = visits[v].role;
        learn_repetition(p, visits, v);
        for (size_t w = 0; w < PRECEDENCE_ROLES_MAX; w++)
            met[w] = (meeting){false, false, INT64_MIN, INT64_MIN};
        for (size_t w = 0; w < found; w++)
            if (visits[w].role != NONE) {
                meeting *m = &met[visits[w].role];
                m->present = true;
                m->last_ns = MAX(m->last_ns, visits[w].last_ns);
                m->inside =
                    m->inside || (visits[w].first_ns <= visits[v].first_ns && visits[w].last_ns >= visits[v].last_ns);
            }
        for (size_t i = 0; i < count && events[i].time_ns <= visits[v].first_ns; i++)
            if (visit_of[i] != UINT8_MAX && visits[visit_of[i]].role != NONE)
                met[visits[visit_of[i]].role].latest_ns = events[i].time_ns;
        for (uint16_t w = 0; w < PRECEDENCE_ROLES_MAX && role != NONE; w++) {
            if (w == role || !met[w].present)
                continue;
            program_pair *pair = &p->pairs[role][w];
            pair->both++;
            pair->inside += met[w].inside;
            pair->after += visits[v].first_ns >= met[w].last_ns;
            if (met[w].latest_ns == INT64_MIN)
                continue;
            double gap = (double)(visits[v].first_ns - met[w].latest_ns) / 1e9;
            pair->before++;
            pair->gap += gap;
            pair->square += gap * gap;
        }
    }
}

/* ---- spans that run side by side ---- */

/* The first span of a kind in a request. */
typedef struct first_span {
    uint16_t kind; /* index of its first event */
    uint32_t name;
    uint64_t lane;
    int64_t begin_ns, end_ns; /* end_ns is INT64_MIN while the span is open */
    int64_t rounding_ns;      /* sum of the rounding of its times */
} first_span;

/*
 * Finds the first span of each kind in a request. A kind is the index of the span's first event. Returns the number of
 * spans.
 */
static size_t find_first_spans(precedence *p, const request_event *events, size_t count,
                               first_span spans[PRECEDENCE_EVENTS_MAX])
{
    bool seen[PRECEDENCE_EVENTS_MAX] = {false};
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const request_event *e = &events[i];
        uint64_t lane = (uint64_t)e->place << 32 | e->thread;
        uint32_t name = e->span_name;
        int nesting = nesting_of(p, e);
        if (e->role == REQUEST_POINT && p->names != NULL)
            event_names_side(p->names, e->name, &name);
        for (size_t s = 0; nesting < 0 && s < found; s++)
            if (spans[s].end_ns == INT64_MIN && spans[s].name == name && spans[s].lane == lane) {
                spans[s].end_ns = e->time_ns;
                break;
            }
        uint16_t kind = nesting > 0 || e->role == REQUEST_WHOLE ? find_event(p, e) : NONE;
        if (kind == NONE || seen[kind] || e->span_id != 0)
            continue;
        seen[kind] = true;
        spans[found++] = (first_span){kind, name, lane, e->time_ns, INT64_MIN, 0};
        if (e->role == REQUEST_WHOLE) {
            spans[found - 1].begin_ns -= e->duration_ns;
            spans[found - 1].end_ns = e->time_ns;
            spans[found - 1].rounding_ns = request_event_rounding(e);
        }
    }
    return found;
}

/* Learns which spans of a thread contain other spans, and which spans cross. */
static void learn_crossings(precedence *p, const request_event *events, size_t count)
{
    first_span spans[PRECEDENCE_EVENTS_MAX];
    size_t found = find_first_spans(p, events, count, spans);
    for (size_t i = 0; i < found; i++)
        for (size_t k = 0; k < found; k++) {
            const first_span *a = &spans[i], *b = &spans[k];
            int64_t rounding_ns = a->rounding_ns + b->rounding_ns;
            if (i == k || a->lane != b->lane || b->begin_ns < a->begin_ns || b->begin_ns >= a->end_ns)
                continue;
            p->nested[a->kind][b->kind] += b->end_ns <= a->end_ns;
            bool crossed = b->begin_ns - a->begin_ns > rounding_ns && b->end_ns - a->end_ns > rounding_ns &&
                           a->end_ns - b->begin_ns > rounding_ns;
            p->crossed[a->kind][b->kind] += crossed;
            p->has_crossed = p->has_crossed || crossed;
        }
}

bool precedence_nests(const precedence *p, const request_event *outer, const request_event *inner)
{
    if (p == NULL || !p->has_crossed)
        return true;
    uint16_t a = find_event(p, outer), b = find_event(p, inner);
    if (a == NONE || b == NONE)
        return true;
    double crossed = (double)p->crossed[a][b] + p->crossed[b][a];
    return crossed < CROSSINGS_MIN || crossed < (1 - call_share) * (crossed + p->nested[a][b]);
}

void precedence_learn(precedence *p, const request_event *events, size_t count)
{
    uint16_t order[PRECEDENCE_EVENTS_MAX];
    bool seen[PRECEDENCE_EVENTS_MAX] = {false};
    size_t kinds = 0;
    if (count > LEARNED_EVENTS_MAX)
        return;
    for (size_t i = 0; i < count; i++) { /* finds the first event of each kind */
        uint16_t kind = add_event(p, &events[i]);
        if (kind == NONE || seen[kind])
            continue;
        seen[kind] = true;
        for (size_t k = 0; k < kinds; k++) {
            p->both[order[k]][kind]++;
            p->both[kind][order[k]]++;
            p->before[order[k]][kind]++;
        }
        order[kinds++] = kind;
    }
    learn_visits(p, events, count);
    learn_crossings(p, events, count);
    whole_spans_learn(p->whole, p->names, events, count);
}

/*
 * Returns whether the other program can be the caller of this program. The other program must precede this program in
 * at least `share` of the visits. If `inside` is true, the other program must also wait for this program.
 */
static bool can_call(const program_pair *pair, bool inside, double share)
{
    double both = pair->both;
    return pair->both >= ALONE_ENOUGH && pair->before >= share * both && (!inside || pair->inside >= share * both);
}

/*
 * Returns the standard deviation, in seconds, of the gaps between the other program's last earlier event and this
 * program's visits.
 */
static double deviation_of(const program_pair *pair)
{
    double mean = pair->before > 0 ? pair->gap / pair->before : 0,
           square = pair->before > 0 ? pair->square / pair->before : 0;
    return sqrt(MAX(square - mean * mean, 0));
}

/*
 * Returns the distance of this program from a possible caller, in seconds: the mean gap plus two standard deviations.
 * The gaps from other candidates, such as the caller's own caller, contain more steps and therefore vary more.
 */
static double distance_of(const program_pair *pair)
{
    return (pair->before > 0 ? pair->gap / pair->before : 0) + 2 * deviation_of(pair);
}

static uint16_t find_caller(const precedence *p, guint v, bool inside, double share)
{
    uint16_t caller = NONE;
    double best = 0;
    for (guint w = 0; w < p->role_count; w++) {
        const program_pair *pair = &p->pairs[v][w];
        /*
         * Each of two roles can be the other's caller if their first events have the same time. In this case, only the
         * role with the lower number can be the caller.
         */
        if (w == v || p->unused[w] || !can_call(pair, inside, share) ||
            (can_call(&p->pairs[w][v], inside, share) && w > v))
            continue;
        double distance = distance_of(pair);
        if (caller == NONE || distance < best) {
            caller = (uint16_t)w;
            best = distance;
        }
    }
    return caller;
}

static void choose_callers(precedence *p)
{
    for (guint v = 0; v < p->role_count; v++) {
        p->caller[v] = NONE;
        for (int k = 0; k < 4 && !p->unused[v] && p->caller[v] == NONE; k++)
            p->caller[v] = find_caller(p, v, k < 2, k % 2 == 0 ? rule_share : call_share);
    }
}

/* Returns whether role w ends before role v begins, if a request visits both. */
static bool ends_before(const precedence *p, uint16_t v, uint16_t w)
{
    const program_pair *pair = &p->pairs[v][w];
    return can_call(pair, false, rule_share) && pair->after >= rule_share * pair->both;
}

/*
 * Finds each role's former role. The caller calls the former role first, waits for its end, and then calls the role.
 * The visits of the two roles never overlap, and the time between them varies less than the time since the caller's
 * last event. If the two roles were concurrent, the time between them would vary more.
 */
static void choose_former_roles(precedence *p)
{
    for (guint v = 0; v < p->role_count; v++) {
        p->former[v] = NONE;
        if (p->unused[v] || p->caller[v] == NONE)
            continue;
        double best = deviation_of(&p->pairs[v][p->caller[v]]);
        for (guint w = 0; w < p->role_count; w++) {
            const program_pair *pair = &p->pairs[v][w];
            if (w == v || p->unused[w] || p->caller[w] != p->caller[v] || !ends_before(p, (uint16_t)v, (uint16_t)w) ||
                deviation_of(pair) >= best)
                continue;
            p->former[v] = (uint16_t)w;
            best = deviation_of(pair);
        }
    }
}

/*
 * Returns whether role v waits for role w in requests that do not visit v's former role. The caller may leave out an
 * optional role, so that v waits for the former role of its former role, or it may call w instead of the former role.
 */
static bool replaces_former(const precedence *p, uint16_t v, uint16_t w)
{
    uint16_t former = p->former[v];
    if (former == NONE || w == v || w == former || p->caller[w] != p->caller[v] || !ends_before(p, v, w))
        return false;
    if (p->pairs[former][w].both <= (1 - call_share) * p->pairs[v][w].both)
        return deviation_of(&p->pairs[v][w]) < deviation_of(&p->pairs[v][p->caller[v]]);
    for (unsigned steps = 0; former != NONE && steps < PRECEDENCE_ROLES_MAX; steps++) {
        former = p->former[former];
        if (former == w)
            return true;
    }
    return false;
}

static bool is_before(const precedence *p, guint first, guint second)
{
    return p->both[first][second] >= ALONE_ENOUGH && p->before[first][second] >= rule_share * p->both[first][second];
}

/*
 * Returns whether the role of event a may cause events of the role of event b: one role calls the other, or the role of
 * b waits for the role of a.
 */
static bool are_joined(const precedence *p, guint a, guint b)
{
    uint16_t x = p->role_of[a], y = p->role_of[b];
    return x != NONE && y != NONE && x != y && (p->caller[x] == y || p->caller[y] == x || p->former[y] == x);
}

/* heard[event][role] is true if the role has an event that always precedes the event. */
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
 * Returns whether `cause` is a new cause of `effect`. An earlier event of the effect's role may already depend on the
 * cause's role. In this case, the cause is new only if the cause always follows that earlier event.
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

const program_families *precedence_families(const precedence *p)
{
    return p != NULL ? p->families : NULL;
}

const whole_spans *precedence_whole_spans(const precedence *p)
{
    return p != NULL ? p->whole : NULL;
}

bool precedence_settle(precedence *p)
{
    heard_table heard = {{false}};
    whole_spans_settle(p->whole);
    choose_callers(p);
    choose_former_roles(p);
    find_heard(p, heard);
    guint kinds = (guint)p->events.count;
    for (guint a = 0; a < kinds; a++)
        for (guint b = 0; b < kinds; b++) {
            bool causes = are_joined(p, a, b) && is_before(p, a, b) && is_news(p, heard, a, b);
            const uint16_t cause = p->role_of[a], effect = p->role_of[b];
            const bool skips =
                !causes && cause != NONE && effect != NONE && replaces_former(p, effect, cause) && is_before(p, a, b);
            const float part = p->both[a][b] > 0 ? (float)p->before[a][b] / (float)p->both[a][b] : 0;
            p->certain[a][b] = causes ? part : 0;
            p->skipping[a][b] = skips ? part : 0;
        }
    bool has_callers = false;
    for (guint role = 0; role < p->role_count; role++)
        has_callers = has_callers || p->caller[role] != NONE;
    return has_callers;
}

/* ---- replies ---- */

/*
 * Finds the kinds of a request's events, and the events with which visits of called roles end. Such an event is the
 * last event of a place, or if `each` is true, each event of this kind at the place. Sets ended[i] to the role that
 * called the visit, or to NONE if event i is no such end. Adds the numbers of ends to ends[role].
 */
static void find_ends(const precedence *p, const request_event *events, size_t count, bool each, uint16_t *kinds,
                      uint16_t *ended, uint32_t ends[PRECEDENCE_ROLES_MAX])
{
    uint32_t places[PRECEDENCE_ROLES_MAX];
    uint16_t last[PRECEDENCE_ROLES_MAX];
    size_t found = 0;
    for (size_t i = count; i-- > 0;) {
        size_t v = 0;
        kinds[i] = find_event(p, &events[i]);
        while (v < found && places[v] != events[i].place)
            v++;
        bool is_end = v == found && found < PRECEDENCE_ROLES_MAX;
        if (is_end) {
            places[found] = events[i].place;
            last[found++] = kinds[i];
        }
        is_end = is_end || (each && v < found && kinds[i] == last[v]);
        const uint16_t role = is_end && kinds[i] != NONE ? p->role_of[kinds[i]] : NONE;
        ended[i] = role != NONE ? p->caller[role] : NONE;
        if (ended[i] != NONE)
            ends[ended[i]]++;
    }
}

/* What a request shows about a kind of event and the calls of its role. */
typedef struct reply_evidence {
    bool calls;    /* the role has called at least two visits, or one visit twice */
    bool fits;     /* the event occurs once after the end of each visit */
    bool is_early; /* the event occurs before the last visit ends */
} reply_evidence;

static void find_evidence(const precedence *p, const request_event *events, size_t count, bool each,
                          reply_evidence evidence[PRECEDENCE_EVENTS_MAX])
{
    uint16_t kinds[LEARNED_EVENTS_MAX], ended[LEARNED_EVENTS_MAX];
    uint32_t all_ends[PRECEDENCE_ROLES_MAX] = {0}, ends[PRECEDENCE_ROLES_MAX] = {0}, seen[PRECEDENCE_EVENTS_MAX] = {0};
    bool precedes[PRECEDENCE_EVENTS_MAX] = {false};
    find_ends(p, events, count, each, kinds, ended, all_ends);
    for (size_t i = 0; i < count; i++) {
        const uint16_t kind = kinds[i], role = kind != NONE ? p->role_of[kind] : NONE;
        if (ended[i] != NONE)
            ends[ended[i]]++;
        /* The time of a whole span is its end, which need not wait for a reply. */
        if (role == NONE || all_ends[role] == 0 || events[i].role == REQUEST_WHOLE)
            continue;
        seen[kind]++;
        precedes[kind] = precedes[kind] || seen[kind] > ends[role];
        evidence[kind].is_early = evidence[kind].is_early || ends[role] < all_ends[role];
        evidence[kind].calls = evidence[kind].calls || all_ends[role] >= 2;
    }
    for (guint kind = 0; kind < p->events.count; kind++)
        if (seen[kind] > 0 && seen[kind] == all_ends[p->role_of[kind]] && !precedes[kind])
            evidence[kind].fits = true;
}

void precedence_learn_replies(precedence *p, const request_event *events, size_t count)
{
    reply_evidence evidence[PRECEDENCE_EVENTS_MAX] = {{false, false, false}};
    if (count > LEARNED_EVENTS_MAX)
        return;
    find_evidence(p, events, count, true, evidence);
    find_evidence(p, events, count, false, evidence);
    for (guint kind = 0; kind < p->events.count; kind++)
        if (evidence[kind].calls) {
            p->calling[kind]++;
            p->replying[kind] += evidence[kind].fits;
            p->early[kind] += evidence[kind].is_early;
        }
}

void precedence_settle_replies(precedence *p)
{
    for (guint kind = 0; kind < p->events.count; kind++) {
        const uint32_t calling = p->calling[kind];
        /* An event that occurs only after the last reply does not belong to a reply. */
        if (calling < ALONE_ENOUGH || p->replying[kind] < call_share * calling || 2 * p->early[kind] < calling)
            continue;
        p->replies[kind] = (float)p->replying[kind] / (float)calling;
        p->has_replies = true;
    }
}

double precedence_replies(const precedence *p, const request_event *effect)
{
    const uint16_t kind = p->has_replies ? find_event(p, effect) : NONE;
    return kind != NONE ? p->replies[kind] : 0;
}

/* See precedence_find_replies. `each`: see find_ends. */
static void match_replies(const precedence *p, const request_event *events, size_t count, bool each, uint32_t *causes)
{
    uint16_t kinds[LEARNED_EVENTS_MAX], ended[LEARNED_EVENTS_MAX];
    uint32_t ends[PRECEDENCE_ROLES_MAX] = {0};
    find_ends(p, events, count, each, kinds, ended, ends);
    for (guint kind = 0; kind < p->events.count; kind++) {
        size_t seen = 0, end = 0;
        for (size_t i = 0; p->replies[kind] > 0 && i < count; i++)
            seen += kinds[i] == kind;
        for (size_t i = 0; seen > 0 && seen == ends[p->role_of[kind]] && i < count; i++) {
            if (kinds[i] != kind)
                continue;
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): each cause has an end in `ended` */
            while (ended[end] != p->role_of[kind])
                end++;
            if (end < i)
                causes[i] = (uint32_t)end;
            end++;
        }
    }
}

bool precedence_find_replies(const precedence *p, const request_event *events, size_t count, uint32_t *causes)
{
    if (!p->has_replies || count > LEARNED_EVENTS_MAX)
        return false;
    memset(causes, 0xff, count * sizeof *causes); /* REQUEST_NONE */
    match_replies(p, events, count, true, causes);
    match_replies(p, events, count, false, causes);
    return true;
}

/*
 * Returns the certainty, from 0 to 1, that visits of a role on different hosts wait for each other. Returns 0 if too
 * many of the visits overlap.
 */
static double certainty_of_turns(const precedence *p, uint16_t role)
{
    double part = p->repeated[role] >= ALONE_ENOUGH ? 1 - (double)p->overlapping[role] / p->repeated[role] : 0;
    return part >= rule_share ? part : 0;
}

double precedence_holds(const precedence *p, const request_event *cause, const request_event *effect)
{
    uint16_t first = find_event(p, cause), second = find_event(p, effect);
    if (first == NONE || second == NONE)
        return 0;
    uint16_t role = p->role_of[first];
    return role != NONE && role == p->role_of[second] ? certainty_of_turns(p, role) : p->certain[first][second];
}

double precedence_holds_without_others(const precedence *p, const request_event *cause, const request_event *effect)
{
    const uint16_t first = find_event(p, cause), second = find_event(p, effect);
    return first != NONE && second != NONE ? p->skipping[first][second] : 0;
}
