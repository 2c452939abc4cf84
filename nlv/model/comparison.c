#include "config.h"

#include "model/comparison.h"

#include "base/text.h"
#include "requests/hash64.h"

#include <math.h>
#include <string.h>

enum { SAMPLE_MAX = 1 << 16, REQUESTS_MIN = 20 };

static const char *const others = "(others)";

static void free_row(gpointer data)
{
    compared_row *r = data;
    g_free(r->name);
    g_free(r->program);
    g_free(r);
}

comparison *comparison_new(const char *const names[COMPARED_SIDES])
{
    comparison *c = g_new0(comparison, 1);
    c->rows = g_ptr_array_new_with_free_func(free_row);
    c->index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (unsigned side = 0; side < COMPARED_SIDES; side++) {
        c->sides[side].name = g_strdup(names[side]);
        c->sides[side].sample = g_array_new(FALSE, FALSE, sizeof(compared_request));
        c->sides[side].unit_size = c->sides[side].sample_step = 1;
    }
    return c;
}

void comparison_free(comparison *c)
{
    if (c == NULL)
        return;
    for (unsigned side = 0; side < COMPARED_SIDES; side++) {
        g_free(c->sides[side].name);
        g_array_free(c->sides[side].sample, TRUE);
        nl_distribution_clear(&c->sides[side].distribution);
    }
    g_ptr_array_free(c->rows, TRUE);
    g_hash_table_destroy(c->index);
    g_free(c->reason);
    g_free(c->filter);
    g_free(c);
}

/* ---- rows ---- */

comparison_map *comparison_map_new(void)
{
    return g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
}

/* Returns the row with this name, and adds the row if necessary. If there are too many rows, returns the row for all
 * other names. Takes ownership of `name` and `program`. */
static compared_row *find_row(comparison *c, char *name, char *program, bool is_edge)
{
    char *key = g_strjoin("\n", is_edge ? "edge" : "span", name, program, NULL);
    compared_row *row = g_hash_table_lookup(c->index, key);
    if (row == NULL && c->rows->len >= COMPARED_ROWS_MAX && strcmp(name, others) != 0)
        row = find_row(c, g_strdup(others), g_strdup(""), true);
    if (row != NULL) {
        g_free(name);
        g_free(program);
        g_free(key);
        return row;
    }
    row = g_new0(compared_row, 1);
    *row = (compared_row){.name = name, .program = program, .is_edge = is_edge};
    g_ptr_array_add(c->rows, row);
    g_hash_table_insert(c->index, key, row);
    return row;
}

static const char *name_of_event(const request_reader *reader, const request_graph *g, uint32_t event)
{
    return event == REQUEST_NONE ? "?" : event_names_text(request_reader_names(reader), g->events[event].name);
}

static compared_row *row_of_span(comparison *c, comparison_map *map, const request_reader *reader,
                                 const request_span *s)
{
    const gint64 key = (gint64)((uint64_t)s->program << 32 | s->name);
    compared_row *row = g_hash_table_lookup(map, &key);
    if (row == NULL) {
        row = find_row(c, g_strdup(event_names_text(request_reader_names(reader), s->name)),
                       g_strdup(request_reader_program(reader, s->program)), false);
        g_hash_table_insert(map, g_memdup2(&key, sizeof key), row);
    }
    return row;
}

static compared_row *row_of_step(comparison *c, comparison_map *map, const request_reader *reader,
                                 const request_graph *g, const request_step *step)
{
    if (step->kind == REQUEST_SELF)
        return row_of_span(c, map, reader, &g->spans[step->span]);
    const uint32_t from = step->from != REQUEST_NONE ? g->events[step->from].name : INT32_MAX,
                   to = step->to != REQUEST_NONE ? g->events[step->to].name : INT32_MAX;
    const gint64 key = (gint64)(UINT64_C(1) << 63 | (uint64_t)from << 32 | to);
    compared_row *row = g_hash_table_lookup(map, &key);
    if (row == NULL) {
        row = find_row(c,
                       g_strdup_printf("%s \342\206\222 %s", name_of_event(reader, g, step->from),
                                       name_of_event(reader, g, step->to)),
                       g_strdup(""), true);
        g_hash_table_insert(map, g_memdup2(&key, sizeof key), row);
    }
    return row;
}

/* ---- sums ---- */

static void join_units(double *values)
{
    for (unsigned u = 0; u < UNITS_MAX / 2; u++)
        values[u] = values[2 * u] + values[2 * u + 1];
    memset(values + UNITS_MAX / 2, 0, UNITS_MAX / 2 * sizeof *values);
}

static void join_unit_bins(comparison_side *s)
{
    for (unsigned u = 0; u < UNITS_MAX; u++)
        for (unsigned bin = 0; bin < HEAT_ROWS; bin++)
            s->unit_bins[u][bin] = u < UNITS_MAX / 2 ? s->unit_bins[2 * u][bin] + s->unit_bins[2 * u + 1][bin] : 0;
}

/* Returns the unit of the next request. If all units are full, first joins the units in pairs. */
static unsigned next_unit(comparison *c, unsigned side)
{
    comparison_side *s = &c->sides[side];
    if (s->requests / s->unit_size == UNITS_MAX) {
        join_units(s->durations.count);
        join_units(s->durations.sum);
        join_unit_bins(s);
        for (guint i = 0; i < c->rows->len; i++)
            join_units(((compared_row *)g_ptr_array_index(c->rows, i))->path[side].sum);
        s->unit_size *= 2;
    }
    return (unsigned)(s->requests / s->unit_size);
}

static void add_to_sample(comparison_side *s, const compared_request *request)
{
    if (s->requests % s->sample_step == 0)
        g_array_append_val(s->sample, *request);
    if (s->sample->len < SAMPLE_MAX)
        return;
    for (guint i = 0; i < SAMPLE_MAX / 2; i++)
        g_array_index(s->sample, compared_request, i) = g_array_index(s->sample, compared_request, 2 * i);
    g_array_set_size(s->sample, SAMPLE_MAX / 2);
    s->sample_step *= 2;
}

void comparison_add(comparison *c, unsigned side, comparison_map *map, const request_graph *g,
                    const request_reader *reader, const compared_request *request)
{
    comparison_side *s = &c->sides[side];
    const unsigned unit = next_unit(c, side);
    s->durations.count[unit]++;
    s->durations.sum[unit] += (double)request->duration_ns;
    nl_distribution_add(&s->distribution, request->duration_ns);
    s->bins[heat_row(request->duration_ns)]++;
    s->unit_bins[unit][heat_row(request->duration_ns)]++;
    s->failed += g->failed;
    for (size_t i = 0; i < g->path_count; i++) {
        compared_row *row = row_of_step(c, map, reader, g, &g->path[i]);
        row->path[side].sum[unit] += (double)(g->path[i].to_ns - g->path[i].from_ns);
    }
    add_to_sample(s, request);
    s->requests++;
}

/* ---- results ---- */

static gint compare_durations(gconstpointer a, gconstpointer b)
{
    const int64_t x = ((const compared_request *)a)->duration_ns, y = ((const compared_request *)b)->duration_ns;
    return (x > y) - (x < y);
}

static double size_of(const compared_row *r)
{
    return fabs(r->time.after - r->time.before);
}

static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const compared_row *x = *(compared_row *const *)a, *y = *(compared_row *const *)b;
    const double sizes[2] = {size_of(x), size_of(y)};
    return sizes[0] != sizes[1] ? (sizes[0] < sizes[1] ? 1 : -1) : strcmp(x->name, y->name);
}

static unit_kind units_of(const comparison_side *s)
{
    return (unit_kind){(unsigned)((s->requests + s->unit_size - 1) / s->unit_size), false};
}

/* Compares the two sides' sums, divided by the numbers of requests. */
static contrast contrast_sums(const comparison *c, const unit_sums sums[COMPARED_SIDES])
{
    unit_sums both[COMPARED_SIDES];
    unit_kind kinds[COMPARED_SIDES];
    for (unsigned side = 0; side < COMPARED_SIDES; side++) {
        both[side] = sums[side];
        memcpy(both[side].count, c->sides[side].durations.count, sizeof both[side].count);
        kinds[side] = units_of(&c->sides[side]);
    }
    return contrast_make(&both[0], &kinds[0], &both[1], &kinds[1]);
}

/* Returns the bin whose lower limit is nearest to the median duration of both sides together. The sides have equal
 * weights. */
static unsigned median_bin(const comparison *c)
{
    double below = 0, best = 1;
    unsigned found = 0;
    for (unsigned bin = 0; bin < HEAT_ROWS; bin++) {
        if (fabs(below - 0.5) < best) {
            best = fabs(below - 0.5);
            found = bin;
        }
        for (unsigned side = 0; side < COMPARED_SIDES; side++)
            below += (double)c->sides[side].bins[bin] / (double)MAX(c->sides[side].requests, 1) / COMPARED_SIDES;
    }
    return found;
}

/* Compares the shares of requests that are slower than the median of both sides. */
static contrast contrast_slower(const comparison *c)
{
    unit_sums sums[COMPARED_SIDES] = {0};
    const unsigned median = median_bin(c);
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        for (unsigned u = 0; u < UNITS_MAX; u++)
            for (unsigned bin = median; bin < HEAT_ROWS; bin++)
                sums[side].sum[u] += c->sides[side].unit_bins[u][bin];
    return contrast_sums(c, sums);
}

static void drop_rows_without_time(comparison *c)
{
    g_hash_table_remove_all(c->index);
    for (guint i = c->rows->len; i-- > 0;) {
        const compared_row *r = comparison_row(c, i);
        if (r->time.before == 0 && r->time.after == 0)
            g_ptr_array_remove_index_fast(c->rows, i);
    }
}

/* Marks the differences that are too large to be due to chance. */
static void find_changes(comparison *c)
{
    double *p = g_new(double, c->rows->len + 2);
    size_t count = 0;
    if (c->slower.tested)
        p[count++] = c->slower.p;
    if (c->total.tested)
        p[count++] = c->total.p;
    for (guint i = 0; i < c->rows->len; i++)
        if (comparison_row(c, i)->time.tested)
            p[count++] = comparison_row(c, i)->time.p;
    const double threshold = contrast_threshold(p, count, COMPARED_LEVEL);
    c->changed = c->total.tested && c->total.p <= threshold;
    c->most_changed = c->slower.tested && c->slower.p <= threshold;
    for (guint i = 0; i < c->rows->len; i++) {
        compared_row *r = g_ptr_array_index(c->rows, i);
        r->changed = r->time.tested && r->time.p <= threshold;
    }
    g_free(p);
}

void comparison_finish(comparison *c)
{
    for (unsigned side = 0; side < COMPARED_SIDES; side++) {
        comparison_side *s = &c->sides[side];
        g_array_sort(s->sample, compare_durations);
        if (s->sample->len > 0)
            s->typical = g_array_index(s->sample, compared_request, s->sample->len / 2);
        s->median_ns = nl_distribution_quantile(&s->distribution, 0.5);
        s->p99_ns = nl_distribution_quantile(&s->distribution, 0.99);
        nl_distribution_clear(&s->distribution);
        if (s->requests < REQUESTS_MIN && c->reason == NULL)
            c->reason = g_strdup_printf("%s has %" G_GUINT64_FORMAT " request%s; a comparison needs at least %d.",
                                        s->name, s->requests, nl_plural(s->requests), REQUESTS_MIN);
    }
    const unit_sums durations[COMPARED_SIDES] = {c->sides[0].durations, c->sides[1].durations};
    c->total = contrast_sums(c, durations);
    for (guint i = 0; i < c->rows->len; i++) {
        compared_row *r = g_ptr_array_index(c->rows, i);
        r->time = contrast_sums(c, r->path);
    }
    c->slower = contrast_slower(c);
    drop_rows_without_time(c);
    if (c->reason == NULL)
        find_changes(c);
    g_ptr_array_sort(c->rows, compare_rows);
}
