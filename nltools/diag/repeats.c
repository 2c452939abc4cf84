#include "config.h"

#include "diag/repeats.h"

#include <math.h>

#include "diag/sample.h"
#include "diag/visit_tables.h"

/* RUNS_MIN: minimum number of runs. DEVIATIONS_MIN: minimum significance in standard deviations. */
enum { RUNS_MIN = 20, DEVIATIONS_MIN = 3 };

/* The visits with the indices from `first` to `first` + `count` - 1. */
typedef struct run {
    uint32_t first, count;
} run;

/* Returns whether the visits of a site are repeats: times between two events with the same name, in one program. */
static bool has_repeats(const visits *v, const site *at)
{
    const place *p = place_at(v, at->place);
    return p->kind == PLACE_EDGE && p->from == p->to && p->from_program == p->program && at->from_host == at->host;
}

/* Returns the run that begins with the visit at index `first` and ends before index `end`. A visit that is not a repeat
 * is a run of one visit. */
static run run_from(const visits *v, uint32_t first, uint32_t end)
{
    const visit *x = visit_at(v, first);
    run r = {first, 1};
    while (has_repeats(v, site_at(v, x->site)) && first + r.count < end) {
        const visit *last = visit_at(v, first + r.count - 1), *next = visit_at(v, first + r.count);
        if (next->site != x->site || next->parent != x->parent || next->from_ns != last->to_ns)
            break;
        r.count++;
    }
    return r;
}

/* Returns the runs of all requests, in the order of their visits. */
static GArray *find_runs(const visits *v)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(run));
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        for (uint32_t n = q->first; n < q->first + q->count;) {
            run r = run_from(v, n, q->first + q->count);
            g_array_append_val(runs, r);
            n += r.count;
        }
    }
    return runs;
}

static double middle_of(const GArray *values)
{
    double *sorted = g_memdup2(values->data, values->len * sizeof(double)), middle = median_of(sorted, values->len);
    g_free(sorted);
    return middle;
}

/*
 * Compares two models of a place: all runs take the same time, or all repeats take the same time. `times` contains the
 * logarithm of each run's time, and `means` contains the logarithm of the mean time of the run's repeats. Returns
 * whether the first model predicts the measured times significantly better.
 */
static bool runs_are_alike(const GArray *times, const GArray *means)
{
    double sum = 0, square = 0, of_run = middle_of(times), of_repeat = middle_of(means);
    for (guint i = 0; i < times->len; i++) {
        double closer =
            fabs(g_array_index(means, double, i) - of_repeat) - fabs(g_array_index(times, double, i) - of_run);
        sum += closer;
        square += closer * closer;
    }
    return times->len >= RUNS_MIN && sum > DEVIATIONS_MIN * sqrt(square);
}

/* Sets joined[i] for each place i whose runs must be joined. Returns whether there is such a place. */
static bool find_joined_places(const visits *v, const GArray *runs, bool *joined)
{
    GArray **times = g_new0(GArray *, v->places->len + 1), **means = g_new0(GArray *, v->places->len + 1);
    bool any = false;
    for (guint i = 0; i < runs->len; i++) {
        const run *r = &g_array_index(runs, run, i);
        const visit *first = visit_at(v, r->first), *last = visit_at(v, r->first + r->count - 1);
        if (!has_repeats(v, site_at(v, first->site)))
            continue;
        uint32_t number = place_of_visit(v, first);
        double time = log(fmax((double)(last->to_ns - first->from_ns), 1)), mean = time - log(r->count);
        if (times[number] == NULL) {
            times[number] = g_array_new(FALSE, FALSE, sizeof(double));
            means[number] = g_array_new(FALSE, FALSE, sizeof(double));
        }
        g_array_append_val(times[number], time);
        g_array_append_val(means[number], mean);
    }
    for (guint i = 0; i < v->places->len; i++) {
        if (times[i] == NULL)
            continue;
        joined[i] = runs_are_alike(times[i], means[i]);
        any = any || joined[i];
        g_array_free(times[i], TRUE);
        g_array_free(means[i], TRUE);
    }
    g_free(times);
    g_free(means);
    return any;
}

/* Moves the values of visits in a column to the new indices of these visits. */
static void move_values(GArray *values, const uint32_t *moved, uint32_t count)
{
    for (uint32_t i = 0; i < values->len; i++)
        if (i == 0 || moved[i] != moved[i - 1])
            g_array_index(values, float, moved[i]) = g_array_index(values, float, i);
    g_array_set_size(values, MIN(values->len, count));
}

/* Moves a visit to its new index. If the visit is not the first of its run (`first` is false), adds it to the run's
 * visit. */
static void move_visit(visits *v, uint32_t from, uint32_t to, bool first)
{
    const visit x = *visit_at(v, from);
    visit *joined = visit_at(v, to);
    if (first) {
        *joined = x;
        return;
    }
    const repeat_end end = {to, joined->to_ns};
    g_array_append_val(v->repeats, end);
    place_at(v, place_of_visit(v, joined))->repeats++;
    joined->to_ns = x.to_ns;
    joined->own_ns += x.own_ns;
    joined->path_ns += x.path_ns;
}

/* Replaces each run at a joined place with one visit. */
static void join_runs(visits *v, const GArray *runs, const bool *joined)
{
    uint32_t *moved = g_new(uint32_t, v->all->len + 1), count = 0; /* the new index of each visit */
    for (guint i = 0; i < runs->len; i++) {
        const run *r = &g_array_index(runs, run, i);
        bool join = joined[place_of_visit(v, visit_at(v, r->first))];
        for (uint32_t n = 0; n < r->count; n++)
            moved[r->first + n] = count + (join ? 0 : n);
        count += join ? 1 : r->count;
    }
    for (guint i = 0; i < v->requests->len; i++) {
        request *q = request_at(v, i);
        uint32_t first = q->first;
        for (uint32_t n = first; n < first + q->count; n++) {
            visit *x = visit_at(v, n);
            x->parent = x->parent == VISIT_NONE ? VISIT_NONE : moved[x->parent];
            x->span = x->span == VISIT_NONE ? VISIT_NONE : moved[x->span];
            move_visit(v, n, moved[n], n == first || moved[n] != moved[n - 1]);
        }
        if (q->count > 0) {
            q->first = moved[first];
            q->count = moved[first + q->count - 1] + 1 - q->first;
        }
    }
    for (uint32_t c = 0; c < v->columns->count; c++)
        move_values(v->columns->all[c].of_visits, moved, count);
    span_parts_move(v->parts, moved);
    g_array_set_size(v->all, count);
    g_free(moved);
}

void visits_join_repeats(visits *v)
{
    GArray *runs = find_runs(v);
    bool *joined = g_new0(bool, v->places->len + 1);
    if (find_joined_places(v, runs, joined)) {
        join_runs(v, runs, joined);
        visits_index_places(v);
    }
    g_free(joined);
    g_array_free(runs, TRUE);
}
