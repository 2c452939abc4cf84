#include "config.h"

#include "diag/failure_groups.h"
#include "diag/search.h"

#include <math.h>
#include <string.h>

enum { PARTIAL_MIN = 20 };

/*
 * For a finding, at least the share SHARE_MIN of the requests must fail, or GROUP_SHARE_MIN if a group of visits fails
 * more often than the rest. For a finding about failures in successful requests, at least the share SHARE_MIN of the
 * requests must contain such failures. Without a group, the share of these requests must be at least PARTIAL_SHARE_MIN,
 * and the share of failed visits must be more than PARTIAL_HERE_MIN.
 */
#define GROUP_SHARE_MIN 0.001
#define SHARE_MIN 0.02
#define PARTIAL_SHARE_MIN 0.05
#define PARTIAL_HERE_MIN 0.5

/* If more than this part of the visits with a value fails, the program probably expects these failures. */
#define ALWAYS_MIN 0.9

/* Maximum probability that a log has a group of failures by chance, each for failed requests and for successful
 * requests that contain failures. */
#define CHANCE_MAX (FALSE_ALARMS_MAX / FAMILIES / 2)

/* Minimum length of the span that stands for a request, as a part of the request's time. */
#define ROOT_MIN 0.9

/*
 * Returns the span that stands for a request, which is a span without a parent that lasts nearly as long as the
 * request. Returns NULL if there is no such span.
 */
static const visit *root_of(const visits *v, const request *q)
{
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->parent == VISIT_NONE && place_at(v, place_of_visit(v, x))->kind == PLACE_SPAN &&
            (double)(x->to_ns - x->from_ns) >= ROOT_MIN * (double)(q->to_ns - q->from_ns))
            return x;
    }
    return NULL;
}

/* Returns whether two visits are attempts at the same operation: both belong to one place, or are edges that begin with
 * the same event. */
static bool is_same_attempt(const visits *v, const visit *x, const visit *y)
{
    const place *p = place_at(v, place_of_visit(v, x)), *q = place_at(v, place_of_visit(v, y));
    return p == q ||
           (p->kind == PLACE_EDGE && q->kind == PLACE_EDGE && p->from == q->from && p->from_program == q->from_program);
}

/* Returns whether a request has a successful attempt after a failed visit. */
static bool is_repaired(const visits *v, const request *q, const visit *failed)
{
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (!x->failed && x->from_ns >= failed->to_ns && is_same_attempt(v, x, failed))
            return true;
    }
    return false;
}

/* Returns whether a request has failed. If a span stands for the request, the status of this span decides. Otherwise,
 * the last failure counts, unless a later attempt succeeds. */
static bool has_failed(const visits *v, const request *q)
{
    const visit *root = root_of(v, q), *last = NULL;
    if (root != NULL || !q->failed)
        return root != NULL && root->failed;
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->failed && (last == NULL || x->to_ns >= last->to_ns))
            last = x;
    }
    return last != NULL && !is_repaired(v, q, last);
}

/* Returns the visit in which a failure began: the failed visit that ended first. */
static const visit *origin_of(const visits *v, const request *q)
{
    const visit *origin = NULL;
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->failed && (origin == NULL || x->to_ns < origin->to_ns))
            origin = x;
    }
    return origin;
}

/*
 * For a successful request, returns the failed visit that ended first. Returns NULL if the request has no failed visit,
 * or if a later attempt succeeded.
 */
static const visit *partial_failure_of(const visits *v, const request *q)
{
    const visit *origin = q->failed ? origin_of(v, q) : NULL;
    return origin != NULL && !is_repaired(v, q, origin) ? origin : NULL;
}

/* The failures of one kind, by the place where they began. */
typedef struct failure_counts {
    uint32_t *by_place;
    bool *visits;        /* for each visit, whether a failure began there */
    uint32_t failed;     /* number of requests with a failure */
    uint32_t main_place; /* the place where most failures began */
} failure_counts;

static failure_counts failure_counts_new(const visits *v)
{
    return (failure_counts){.by_place = g_new0(uint32_t, v->places->len + 1), .visits = g_new0(bool, v->all->len + 1)};
}

static void failure_counts_free(failure_counts *c)
{
    g_free(c->by_place);
    g_free(c->visits);
}

static void count_failure(failure_counts *c, const visits *v, const visit *x)
{
    uint32_t place = place_of_visit(v, x);
    c->failed++;
    c->visits[x - visit_at(v, 0)] = true;
    c->by_place[place]++;
    c->main_place = c->by_place[place] > c->by_place[c->main_place] ? place : c->main_place;
}

/*
 * Returns whether failures within successful requests are a fault. Programs often expect that a step fails. The
 * failures are a fault in three cases. (1) One of several hosts, or a part of the log, has more failures than the rest.
 * (2) The visits with a value of a field fail often, but not always. (3) The place has only one host, and significantly
 * more than PARTIAL_HERE_MIN of its visits fail.
 */
static bool is_partial_fault(const failure_counts *c, const visits *v, const failure_group *group)
{
    const place *p = place_at(v, c->main_place);
    uint32_t failed = c->by_place[c->main_place], succeeded = p->count - MIN(failed, p->count);
    if (failed < PARTIAL_MIN)
        return false;
    if (group != NULL && group->column != NULL)
        return group->failed <= ALWAYS_MIN * group->count;
    return group != NULL || (place_only_host(v, p) != NULL && failed > PARTIAL_HERE_MIN * p->count &&
                             binomial_tail(succeeded, p->count, 1 - PARTIAL_HERE_MIN) <= CHANCE_MAX);
}

/* Removes the failures of a value that nearly always fails. The program probably expects these failures, which would
 * hide a host or a time with more failures. */
static void remove_expected(failure_counts *c, const visits *v, const failure_group *group)
{
    const place *p = place_at(v, c->main_place);
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        uint32_t index = v->by_place[i];
        if (!c->visits[index] || column_of_visit(group->column, v, index) != group->value)
            continue;
        c->visits[index] = false;
        c->by_place[c->main_place]--;
        c->failed--;
    }
}

/* In successful requests, finds the group of visits that fails more often than the rest, and removes the failures that
 * the program expects. Returns whether there is a group. */
static bool find_partial_group(failure_counts *c, const visits *v, failure_group *group)
{
    enum { EXPECTED_MAX = 8 };
    bool has_group = failure_group_find(v, c->main_place, c->visits, CHANCE_MAX, true, group);
    for (int n = 0; n < EXPECTED_MAX && has_group && group->column != NULL &&
                    group->failed > ALWAYS_MIN * group->count && c->failed > group->failed;
         n++) {
        remove_expected(c, v, group);
        has_group = failure_group_find(v, c->main_place, c->visits, CHANCE_MAX, true, group);
    }
    return has_group;
}

/* Returns whether each request visits a place at most once. `seen` has an element for each request. */
static bool is_visited_once(const visits *v, const place *p, uint32_t *seen, uint32_t mark)
{
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        uint32_t *in = &seen[visit_at(v, v->by_place[i])->request];
        if (*in == mark)
            return false;
        *in = mark;
    }
    return true;
}

/*
 * If nearly all visits to the main place fail, their program probably logs this place only after a failure. No visit
 * to it can then show which hosts or values fail more often. Returns the place of the same program with the most
 * visits, and marks the visits to it in the requests that fail in the main place. Considers only places that each
 * request visits at most once, because the visits of one request do not fail independently. Otherwise, returns the main
 * place.
 */
static uint32_t find_compared_place(const failure_counts *c, const visits *v, bool *failed)
{
    const place *p = place_at(v, c->main_place);
    uint32_t compared = c->main_place;
    uint32_t *seen = g_new0(uint32_t, v->requests->len + 1);
    for (guint i = 0; i < v->places->len && c->by_place[c->main_place] > ALWAYS_MIN * p->count; i++)
        if (place_at(v, i)->program == p->program && place_at(v, i)->count > place_at(v, compared)->count &&
            is_visited_once(v, place_at(v, i), seen, i + 1))
            compared = i;
    g_free(seen);
    bool *in_request = g_new0(bool, v->requests->len + 1);
    for (uint32_t i = p->first; i < p->first + p->count; i++)
        in_request[visit_at(v, v->by_place[i])->request] |= c->visits[v->by_place[i]];
    for (guint i = 0; i < v->all->len; i++)
        failed[i] = compared == c->main_place
                        ? c->visits[i]
                        : place_of_visit(v, visit_at(v, i)) == compared && in_request[visit_at(v, i)->request];
    g_free(in_request);
    return compared;
}

/* Returns a phrase that names a group after its place: "", " with FIELD=VALUE" or a time range. The caller frees it
 * with g_free. */
static char *text_group(const visits *v, const failure_group *g)
{
    char *text = NULL;
    if (g != NULL && g->column != NULL) {
        char *value = column_text(g->column, g->value);
        text = g->column->name[0] == '@'
                   ? g_strdup_printf(" for requests that use %s on %s", g->column->name + 1, value)
                   : g_strdup_printf(" with %s=%s", g->column->name, value);
        g_free(value);
    } else if (g != NULL && g->is_time) {
        char *from = text_ns((double)(g->from_ns - v->from_ns)), *to = text_ns((double)(g->to_ns - v->from_ns));
        text = g_strdup_printf(" from %s to %s after the first request began", from, to);
        g_free(from);
        g_free(to);
    }
    return text != NULL ? text : g_strdup("");
}

/* Adds how often visits of the place fail, in the group and otherwise. `compared`: see find_compared_place. */
static void describe_rates(finding *x, const failure_counts *c, const visits *v, uint32_t compared,
                           const failure_group *g)
{
    if (g == NULL) {
        finding_evidence(x, "%.1f %% of the visits to this place failed",
                         100.0 * c->by_place[c->main_place] / MAX(place_at(v, c->main_place)->count, 1));
        return;
    }
    char *value = g->column != NULL ? column_text(g->column, g->value) : NULL,
         *where =
             g->process != NULL ? g_strdup(" in this process")
             : g->host != NULL
                 ? g_strdup(host_is_value(v, place_at(v, compared), g->host) ? " with this value" : " on this host")
             : g->is_time ? g_strdup(" at this time")
             /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): all other groups have a column */
             : g->column->name[0] == '@' ? g_strdup_printf(" in requests that use %s on %s", g->column->name + 1, value)
                                         : g_strdup_printf(" with %s=%s", g->column->name, value);
    char *here = compared == c->main_place ? g_strdup("this place") : text_place(v, compared, NULL);
    finding_evidence(x,
                     compared == c->main_place
                         ? "%.3g %% of the visits to %s%s failed, and %.2g %% of the others"
                         : "%.3g %% of the requests that visit %s%s failed in this way, and %.2g %% of the others",
                     100 * g->failed / g->count, here, where, 100 * g->other_failed / g->others);
    g_free(here);
    g_free(where);
    g_free(value);
}

/* Adds a finding. `group` is NULL if no group of visits fails more often than the rest. `compared` is the place of the
 * group's visits (see find_compared_place). `partial` is true if the requests succeed. */
static void add_finding(findings *f, const failure_counts *c, uint32_t compared, const failure_group *group,
                        bool partial)
{
    const visits *v = f->visits;
    finding *x = findings_add(f, "failures");
    x->place = c->main_place;
    x->share = (double)c->failed / v->requests->len;
    x->sure = 0.87; /* 20 of 23 findings were right in the calibration of confidence() in findings.c */
    x->explained = (double)c->by_place[c->main_place] / c->failed;
    x->value = NAN;
    if (group != NULL) {
        x->host = group->column != NULL && group->column->name[0] == '@'
                      ? g_intern_string(g_ptr_array_index(group->column->texts, (guint)group->value))
                      : group->host;
        x->process = group->process;
        x->column = group->column;
        x->value = (double)group->value;
        x->from_ns = group->from_ns;
        x->to_ns = group->to_ns;
        x->explained = group->failed / c->failed;
    }
    char *where = text_process_place(v, c->main_place, group != NULL ? group->process : NULL,
                                     group != NULL ? group->host : NULL),
         *part = text_share(x->share), *with = text_group(v, group);
    const char *how_many = x->explained > 0.5 ? "most" : "many";
    x->answer = partial
                    ? g_strdup_printf(
                          "%s of the requests succeed although a part of each fails; %s of these failures are in %s%s",
                          part, how_many, where, with)
                    : g_strdup_printf("%s of the requests fail, %s of them in %s%s", part, how_many, where, with);
    char *advice = v->failure_test != NULL
                       ? g_strdup_printf("look at the failed requests in nlv, or with nlstat --where "
                                         "'any(%s)' --slowest 3",
                                         v->failure_test)
                       : g_strdup("look at the failed requests in nlv");
    x->advice = g_intern_string(advice);
    g_free(advice);
    finding_evidence(x,
                     partial
                         ? "%u of %u requests contain a failure; in %u of these, the first failure was in this place"
                         : "%u of %u requests failed; in %u of these, the first failure was in this place",
                     c->failed, v->requests->len, c->by_place[c->main_place]);
    describe_rates(x, c, v, compared, group);
    g_free(where);
    g_free(part);
    g_free(with);
}

void find_failures(findings *f)
{
    const visits *v = f->visits;
    failure_counts whole = failure_counts_new(v), partial = failure_counts_new(v);
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        bool failed = has_failed(v, q);
        const visit *x = failed ? origin_of(v, q) : partial_failure_of(v, q);
        if (x != NULL)
            count_failure(failed ? &whole : &partial, v, x);
    }
    f->failed = whole.failed;
    failure_group group;
    f->is_failure_searched = whole.failed >= FAILURE_GROUP_MIN && whole.failed >= GROUP_SHARE_MIN * v->requests->len;
    if (f->is_failure_searched) {
        bool *failed_visits = g_new0(bool, v->all->len + 1);
        const uint32_t compared = find_compared_place(&whole, v, failed_visits);
        bool has_group = failure_group_find(v, compared, failed_visits, CHANCE_MAX, true, &group);
        if (has_group || whole.failed >= SHARE_MIN * v->requests->len)
            add_finding(f, &whole, compared, has_group ? &group : NULL, false);
        g_free(failed_visits);
    }
    if (partial.failed >= PARTIAL_MIN && partial.failed >= SHARE_MIN * v->requests->len) {
        bool has_group = find_partial_group(&partial, v, &group);
        if (partial.failed >= (has_group ? SHARE_MIN : PARTIAL_SHARE_MIN) * v->requests->len &&
            is_partial_fault(&partial, v, has_group ? &group : NULL))
            add_finding(f, &partial, partial.main_place, has_group ? &group : NULL, true);
    }
    failure_counts_free(&whole);
    failure_counts_free(&partial);
}
