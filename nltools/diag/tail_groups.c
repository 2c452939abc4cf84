#include "config.h"

#include <math.h>

#include "diag/failure_groups.h"
#include "diag/long_visits.h"
#include "diag/tail_groups.h"

#include <string.h>

/*
 * Slow visits often come together, and visits of a request depend on each other. The test therefore counts parts of the
 * log, which are independent. A part counts if the group's share of slow visits is more than PART_FACTOR times the
 * share of the other visits.
 */
#define PART_FACTOR 3

enum { PARTS = 20, IGNORED_ONE_OF = 20 };

/* The visits of a place that are in the tail. */
typedef struct tail {
    uint32_t place; /* number of the place */
    bool *visits;   /* for each visit of the log, whether it is in the tail */
    float *excess;  /* for each visit of the log in the tail: time above the usual time of its kind, in nanoseconds */
    double limit;   /* smallest ratio of the time of a tail's visit to the usual time of its kind */
    double scale;   /* number of the place's visits divided by the number of examined visits */
} tail;

/* Returns 1 if a group contains a visit, 0 if not, or -1 if the visit has no value. */
static int is_in_group(const visits *v, const failure_group *g, uint32_t index)
{
    const site *at = site_at(v, visit_at(v, index)->site);
    if (g->column == NULL)
        return at->host == g->host && (g->process == NULL || instance_at(v, at->instance)->program == g->process);
    float value = column_of_visit(g->column, v, index);
    return isfinite(value) ? value == g->value : -1;
}

/* Finds the period in which the place's visits are slow, as a range of their positions in the order of time. Ignores a
 * few slow visits at the beginning and at the end. */
static void find_slow_period(const visits *v, const place *p, const bool *slow, uint32_t *first, uint32_t *last)
{
    uint32_t count = 0, n = 0;
    for (uint32_t i = 0; i < p->count; i++)
        count += slow[v->by_place[p->first + i]];
    *first = *last = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (!slow[v->by_place[p->first + i]])
            continue;
        if (n == count / IGNORED_ONE_OF)
            *first = i;
        if (n == count - 1 - count / IGNORED_ONE_OF)
            *last = i;
        n++;
    }
}

/*
 * Returns whether the group's visits are slow more often than the other visits throughout the period in which visits
 * are slow. Counts the parts of this period in which the group's visits are slow more often (PART_FACTOR). If slow
 * visits were independent of the group, the probability that a part counts would be at most the group's share of all
 * visits. `chance` is the maximum probability of so many parts.
 */
static bool recurs(const visits *v, uint32_t number, const bool *slow, const failure_group *g, double chance)
{
    const place *p = place_at(v, number);
    double counts[PARTS][2] = {{0}}, slow_counts[PARTS][2] = {{0}};
    uint32_t parts = 0, of_group = 0, first, last;
    find_slow_period(v, p, slow, &first, &last);
    for (uint32_t i = first; i <= last; i++) {
        uint32_t index = v->by_place[p->first + i];
        int part = (int)((uint64_t)(i - first) * PARTS / (last - first + 1)), in = is_in_group(v, g, index);
        if (in < 0)
            continue;
        counts[part][in]++;
        slow_counts[part][in] += slow[index];
    }
    for (int i = 0; i < PARTS; i++) {
        parts += slow_counts[i][0] + slow_counts[i][1] > 0;
        of_group += slow_counts[i][1] * counts[i][0] > PART_FACTOR * slow_counts[i][0] * counts[i][1];
    }
    double share = g->count / fmax(g->count + g->others, 1);
    return of_group > share * parts && binomial_tail(parts - of_group, parts, 1 - share) <= chance;
}

/* Returns whether ordinary findings explain most of the slow visits of a group, or the effect of the group's field.
 * They explain a visit if they claim at least as much of its time as `excess`. */
static bool is_ordinary(const findings *f, uint32_t number, const bool *slow, const float *excess,
                        const failure_group *g)
{
    const visits *v = f->visits;
    const place *p = place_at(v, number);
    for (guint n = 0; n < f->list->len; n++) {
        const finding *x = g_ptr_array_index(f->list, n);
        uint32_t all = 0, explained = 0;
        if (!x->is_ordinary || !finding_is_at(x, number) || x->cut == NULL)
            continue;
        for (uint32_t i = 0; i < p->count; i++) {
            uint32_t index = v->by_place[p->first + i];
            bool counts = slow[index] && is_in_group(v, g, index) == 1;
            all += counts;
            explained += counts && x->cut[index] > 0 && x->cut[index] >= excess[index];
        }
        if (2 * explained > all || (x->column != NULL && x->column == g->column))
            return true;
    }
    return false;
}

/* Returns whether a group can be a cause. Different operations, and cache hits and misses, have different times without
 * any fault. */
static bool can_be_cause(const visits *v, uint32_t number, const failure_group *g)
{
    return g->column == NULL || (!column_is_operation(v, number, g->column) && !column_is_of_cache(g->column));
}

/* Finds the group that correlates best with the slow visits of a place. Returns false if this group is not a cause.
 * `slow` and `excess` have an element for each visit of the log: whether it is slow, and by how much. */
static bool find_group(const findings *f, uint32_t number, const bool *slow, const float *excess, uint32_t tests,
                       failure_group *g)
{
    const visits *v = f->visits;
    const double chance = FALSE_ALARMS_MAX / FAMILIES / MAX(tests, 1);
    return failure_group_find(v, number, slow, chance, false, g) && can_be_cause(v, number, g) &&
           recurs(v, number, slow, g, chance) && !is_ordinary(f, number, slow, excess, g);
}

static tail tail_of(findings *f, uint32_t number)
{
    const visits *v = f->visits;
    const search s = {.f = f, .v = v};
    sample *x = sample_new(v, number, f->claimed);
    long_sample l = long_sample_of(&s, x);
    tail t = {.place = number,
              .visits = g_new0(bool, v->all->len + 1),
              .excess = g_new0(float, v->all->len + 1),
              .limit = INFINITY,
              .scale = x->scale};
    for (guint n = 0; n < l.found->len; n++) {
        const long_visit *y = &g_array_index(l.found, long_visit, n);
        t.visits[x->index[y->i]] = true;
        t.excess[x->index[y->i]] = (float)y->value;
        t.limit = fmin(t.limit, y->limit / y->usual);
    }
    long_sample_clear(&l);
    sample_free(x);
    return t;
}

/* Returns a phrase for a group: "on this host", "in this process", "with FIELD=VALUE" or "in requests that use PROGRAM
 * on HOST". The caller frees it with g_free. */
static char *text_of_group(const visits *v, uint32_t place, const failure_group *g)
{
    if (g->column == NULL)
        return g_strdup(g->process != NULL                              ? "in this process"
                        : host_is_value(v, place_at(v, place), g->host) ? "with this value"
                                                                        : "on this host");
    char *value = column_text(g->column, g->value),
         *text = g->column->name[0] == '@'
                     ? g_strdup_printf("in requests that use %s on %s", g->column->name + 1, value)
                     : g_strdup_printf("with %s=%s", g->column->name, value);
    g_free(value);
    return text;
}

static void describe_group(finding *x, const tail *t, const visits *v, const failure_group *g)
{
    char *where = text_process_place(v, t->place, g->process, g->host), *part = text_share(x->share),
         *value = g->column != NULL ? column_text(g->column, g->value) : NULL, *group = text_of_group(v, t->place, g);
    if (value == NULL) {
        x->answer = g_strdup_printf("%s of the requests' time: %s is sometimes much slower than usual, and more often "
                                    "than %s",
                                    part, where,
                                    g->process != NULL                                 ? "in other processes"
                                    : host_is_value(v, place_at(v, t->place), g->host) ? "with other values"
                                                                                       : "on other hosts");
    } else if (g->column->name[0] == '@') {
        x->answer = g_strdup_printf("%s of the requests' time: %s is sometimes slow for requests that use %s on %s",
                                    part, where, g->column->name + 1, value);
    } else {
        x->answer = g_strdup_printf("%s of the requests' time: %s is sometimes slow for %s", part, where,
                                    group + strlen("with "));
    }
    x->advice = g->column != NULL && g->column->name[0] != '@'
                    ? "find out what the program sometimes does differently for this value, and log it as a field"
                    : "compare the hosts: their load (nlsensor), hardware, links, versions and configuration";
    finding_evidence(
        x, "%.3g %% of the visits %s take more than %.1f times as long as usual, and %.2g %% of the others",
        100 * t->scale * g->failed / g->count, group, t->limit, 100 * t->scale * g->other_failed / g->others);
    g_free(where);
    g_free(part);
    g_free(value);
    g_free(group);
}

/* A group that correlates with the slow visits of a place, and the time that the group explains. */
typedef struct tail_group {
    tail t; /* without visits and excess */
    failure_group g;
    float *cut;             /* for each visit of the place, in the order of by_place */
    double sum_ns, tail_ns; /* on critical paths: the time of the cut, and the excess of all slow visits */
} tail_group;

/* Sets the time that a group explains. Subtracts the excess that the group would have with the share of slow visits of
 * the other visits. */
static void cut_group(const visits *v, tail_group *of)
{
    const failure_group *g = &of->g;
    const place *p = place_at(v, of->t.place);
    double rate = g->failed / g->count, other_rate = g->others > 0 ? g->other_failed / g->others : 0,
           more = 1 - other_rate / rate;
    of->cut = g_new0(float, p->count + 1);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i];
        double weighted_ns = (double)of->t.excess[index] * path_weight(visit_at(v, index)) * of->t.scale;
        of->tail_ns += weighted_ns;
        if (!of->t.visits[index] || is_in_group(v, g, index) != 1)
            continue;
        of->cut[i] = (float)((double)of->t.excess[index] * more);
        of->sum_ns += weighted_ns * more;
    }
}

/* Returns whether two groups are the same host, process or value. */
static bool is_same_group(const failure_group *a, const failure_group *b)
{
    return a->column == b->column &&
           (a->column != NULL ? a->value == b->value : a->host == b->host && a->process == b->process);
}

/* Moves the cut of a place to the cut of all visits. Returns the gain of the place's cut, as a share of all time. */
static double take_cut(const visits *v, tail_group *of, float *cut)
{
    const place *p = place_at(v, of->t.place);
    float *own = g_new0(float, v->all->len + 1);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i];
        own[index] = of->cut[i];
        cut[index] += of->cut[i];
    }
    double gain = replay_gain(v, own, 1) * of->t.scale;
    g_free(own);
    g_clear_pointer(&of->cut, g_free);
    return gain;
}

/* Adds a finding for a group if the group explains enough time at all its places together. Frees the cuts of these
 * places. */
static void add_finding(findings *f, GArray *groups, guint first)
{
    const visits *v = f->visits;
    tail_group *main = &g_array_index(groups, tail_group, first);
    const failure_group *g = &main->g;
    double sum_ns = 0, tail_ns = 0, gain = 0;
    float *cut = g_new0(float, v->all->len + 1);
    GArray *others = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (guint n = first; n < groups->len; n++) {
        tail_group *of = &g_array_index(groups, tail_group, n);
        if (of->cut == NULL || !is_same_group(g, &of->g))
            continue;
        sum_ns += of->sum_ns;
        tail_ns += of->tail_ns;
        gain += take_cut(v, of, cut);
        if (n > first)
            g_array_append_val(others, of->t.place);
    }
    if (sum_ns < FINDING_MIN * v->total_ns) {
        g_free(cut);
        g_array_free(others, TRUE);
        return;
    }
    bool is_host = g->column == NULL || g->column->name[0] == '@';
    finding *x = findings_add(f, is_host ? "peer" : "field");
    x->place = main->t.place;
    x->host = g->host;
    x->process = g->process;
    x->column = g->column;
    x->value = g->column != NULL ? (double)g->value : NAN;
    if (is_host && g->column != NULL)
        x->host = g_intern_string(g_ptr_array_index(g->column->texts, (guint)g->value));
    x->from_ns = g->from_ns;
    x->to_ns = g->to_ns;
    x->share = sum_ns / v->total_ns;
    x->explained = sum_ns / tail_ns;
    x->margin = 1;
    x->cut = cut;
    x->gain = fmin(x->share, gain);
    g_array_append_vals(x->others, others->data, others->len);
    g_array_free(others, TRUE);
    for (guint i = 0; i < v->all->len; i++)
        f->claimed[i] += cut[i];
    describe_group(x, &main->t, v, g);
}

static int by_time(gconstpointer a, gconstpointer b)
{
    double x = ((const tail_group *)a)->sum_ns, y = ((const tail_group *)b)->sum_ns;
    return (x < y) - (x > y);
}

/* Returns whether a place has a fault that is large enough for a report. The remaining times may then have a tail,
 * because a finding does not claim the whole effect of its fault. */
static bool has_fault(const findings *f, uint32_t number)
{
    for (guint i = 0; i < f->list->len; i++) {
        const finding *x = g_ptr_array_index(f->list, i);
        if (finding_is_fault(x) && x->share >= FINDING_MIN && finding_is_at(x, number))
            return true;
    }
    return false;
}

/* Adds the group that contains the waits of a finding to its evidence, such as the value with which attempts time
 * out. */
static void add_group_of_waits(const findings *f, finding *x)
{
    const visits *v = f->visits;
    const place *p = place_at(v, x->place);
    bool *waits = g_new0(bool, v->all->len + 1);
    failure_group g;
    for (uint32_t i = 0; i < p->count; i++)
        waits[v->by_place[p->first + i]] = x->cut[v->by_place[p->first + i]] > 0;
    if (find_group(f, x->place, waits, x->cut, f->list->len, &g) && g.column != NULL) {
        char *group = text_of_group(v, x->place, &g);
        finding_evidence(x, "%.3g %% of the visits %s take so much longer, and %.2g %% of the others",
                         100 * g.failed / g.count, group, 100 * g.other_failed / fmax(g.others, 1));
        g_free(group);
    }
    g_free(waits);
}

void find_tail_groups(findings *f)
{
    const visits *v = f->visits;
    uint32_t tests = 0;
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        if (finding_is_fault(x) && x->place != VISIT_NONE && x->cut != NULL && x->column == NULL &&
            (x->is_sometimes || strcmp(x->cause, "timeout") == 0) &&
            place_at(v, x->place)->work_count <= SAMPLE_MAX) /* cuts outside the sample are only estimates */
            add_group_of_waits(f, x);
    }
    for (guint i = 0; i < v->places->len; i++)
        tests += place_is_examined(v, i);
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(tail_group));
    for (guint i = 0; i < v->places->len; i++) {
        if (!place_is_examined(v, i) || has_fault(f, i))
            continue;
        tail t = tail_of(f, i);
        failure_group g;
        if (isfinite(t.limit) && find_group(f, i, t.visits, t.excess, tests, &g)) {
            tail_group of = {.t = t, .g = g};
            cut_group(v, &of);
            g_array_append_val(groups, of);
        }
        g_free(t.visits);
        g_free(t.excess);
    }
    g_array_sort(groups, by_time);
    for (guint n = 0; n < groups->len; n++)
        if (g_array_index(groups, tail_group, n).cut != NULL)
            add_finding(f, groups, n);
    g_array_free(groups, TRUE);
}
