#include "config.h"

#include <math.h>

#include "base/hash_bytes.h"
#include "diag/failure_groups.h"
#include "diag/processes.h"
#include "diag/search.h"

#include <string.h>

/* Minimum ratio of a group's failure rate to the failure rate of the other visits. */
#define GROUP_FACTOR 3

/*
 * MANY_FAILED: a group with more failures needs no test against chance.
 * TIME_BINS: number of parts of the log. SUCCESSES_MAX: maximum number of successful visits whose fields are examined.
 */
enum { MANY_FAILED = 1000, TIME_BINS = 48, SUCCESSES_MAX = 50000 };

/* The numbers of failures and visits of a part of the visits. `count` is an estimate if the search examines only some
 * of the successful visits. `examined` is the number of visits whose fields the search examines. */
typedef struct part {
    double failed, count, examined;
} part;

/* The search for a group: the best group so far, and its correlation with the failures. */
typedef struct group_search {
    const visits *v;
    const place *p;
    const bool *failed;
    double chance; /* significance level of each division of the visits */
    double best;
    failure_group *found;
} group_search;

/*
 * Returns whether the group fails significantly more often than the rest. `groups` is the number of groups among which
 * the group was chosen.
 */
static bool group_is_significant(const group_search *s, part group, part all, double groups)
{
    part rest = {all.failed - group.failed, all.count - group.count, all.examined - group.examined};
    if (group.failed < FAILURE_GROUP_MIN || rest.count < 1 ||
        group.failed * rest.count <= GROUP_FACTOR * (rest.failed + 0.5) * group.count)
        return false;
    return group.failed > MANY_FAILED ||
           groups * hypergeometric_tail(all.examined, all.failed, group.examined, group.failed) <= s->chance;
}

/* Makes a group the best group and returns true if its correlation with the failures is the highest so far. */
static bool offer_group(group_search *s, part group, part all, double groups)
{
    double product = all.failed * (all.count - all.failed) * group.count * (all.count - group.count),
           correlation = product > 0 ? (group.failed * all.count - all.failed * group.count) / sqrt(product) : 0;
    if (correlation <= s->best || !group_is_significant(s, group, all, groups))
        return false;
    s->best = correlation;
    *s->found = (failure_group){.from_ns = s->v->from_ns,
                                .to_ns = s->v->to_ns,
                                .failed = group.failed,
                                .count = group.count,
                                .other_failed = all.failed - group.failed,
                                .others = all.count - group.count};
    return true;
}

static uint32_t visit_of_group(const group_search *s, uint32_t i)
{
    return s->v->by_place[s->p->first + i];
}

static part count_failures(const group_search *s)
{
    part all = {0, s->p->count, s->p->count};
    for (uint32_t i = 0; i < s->p->count; i++)
        all.failed += s->failed[visit_of_group(s, i)];
    return all;
}

/* Offers the hosts or, if `by_process` is true, the processes of the place. */
static void offer_peers(group_search *s, part all, bool by_process)
{
    GHashTable *peers = g_hash_table_new_full(NULL, NULL, NULL, g_free); /* host or instance -> part */
    GHashTableIter position;
    gpointer peer, data;
    for (uint32_t i = 0; i < s->p->count; i++) {
        const site *at = site_at(s->v, visit_at(s->v, visit_of_group(s, i))->site);
        gconstpointer key = by_process ? (gconstpointer)instance_at(s->v, at->instance) : at->host;
        part *of = g_hash_table_lookup(peers, key);
        if (of == NULL) {
            of = g_new0(part, 1);
            g_hash_table_insert(peers, (gpointer)key, of);
        }
        of->count++;
        of->examined++;
        of->failed += s->failed[visit_of_group(s, i)];
    }
    g_hash_table_iter_init(&position, peers);
    while (g_hash_table_iter_next(&position, &peer, &data))
        if (offer_group(s, *(const part *)data, all, g_hash_table_size(peers))) {
            s->found->host = by_process ? ((const instance *)peer)->host : peer;
            s->found->process = by_process ? ((const instance *)peer)->program : NULL;
        }
    g_hash_table_destroy(peers);
}

/* A value of a column, and its failures and visits. */
typedef struct value_part {
    float value;
    part of;
} value_part;

enum { NUMBERS_MAX = 12 }; /* a field with more different numbers is a measurement */

/* Returns the part of a value, or NULL if there are too many different numbers. If the column has texts, the array is
 * indexed by value. */
static part *part_of_value(GArray *values, const column *c, float value)
{
    guint i = c->has_text ? (guint)value : 0;
    while (i < values->len && g_array_index(values, value_part, i).value != value)
        i++;
    if (i == values->len && i == NUMBERS_MAX)
        return NULL;
    if (i == values->len) {
        const value_part none = {value, {0, 0, 0}};
        g_array_append_val(values, none);
    }
    return &g_array_index(values, value_part, i).of;
}

/* Returns whether a column can be a reason for failures. A result, such as a message or a number of bytes, can only be
 * a consequence. */
static bool column_is_reason(const column *c)
{
    return !c->closed && !column_is_result(c) && (c->has_text || column_meaning(c) == NUMBER_UNKNOWN);
}

/* Returns whether a value always means a failure, and all successful visits have the same other value. */
static bool value_is_result(const GArray *values, const value_part *x)
{
    uint32_t successes = 0;
    for (guint i = 0; i < values->len; i++)
        successes += g_array_index(values, value_part, i).of.failed < g_array_index(values, value_part, i).of.count;
    return x->of.failed >= x->of.count && successes < 2;
}

/* Returns whether the search examines the fields of a visit. The search examines each failed visit, and one of `stride`
 * successful visits. The choice is random, because fields may have periodic values. */
static bool is_examined(const group_search *s, uint32_t index, uint32_t stride)
{
    static const uint64_t factors[] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9)};
    return s->failed[index] || hash_mix(hash_mix(index + 1, factors[0]), factors[1]) % stride == 0;
}

/* Counts the visits of the group that was found, and the other visits that have the field, without estimates. */
static void count_exactly(const group_search *s)
{
    failure_group *g = s->found;
    g->count = g->others = 0;
    for (uint32_t i = 0; i < s->p->count; i++) {
        float value = column_of_visit(g->column, s->v, visit_of_group(s, i));
        if (isfinite(value))
            *(value == g->value ? &g->count : &g->others) += 1;
    }
}

static void offer_values(group_search *s, const column *c, uint32_t stride)
{
    GArray *values = g_array_new(FALSE, FALSE, sizeof(value_part));
    part all = {0};
    uint32_t used = 0;
    bool is_too_varied = false;
    for (guint i = 0; c->has_text && i < c->texts->len; i++) {
        const value_part none = {(float)i, {0, 0, 0}};
        g_array_append_val(values, none);
    }
    for (uint32_t i = 0; i < s->p->count && !is_too_varied; i++) {
        uint32_t index = visit_of_group(s, i);
        if (!is_examined(s, index, stride))
            continue;
        float value = column_of_visit(c, s->v, index);
        part *of = isfinite(value) ? part_of_value(values, c, value) : NULL;
        is_too_varied = isfinite(value) && of == NULL;
        if (of == NULL)
            continue;
        double weight = s->failed[index] ? 1 : stride;
        of->failed += s->failed[index];
        of->count += weight;
        of->examined++;
        all.failed += s->failed[index];
        all.count += weight;
        all.examined++;
    }
    for (guint i = 0; i < values->len; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the array has elements */
        used += g_array_index(values, value_part, i).of.count > 0;
    for (guint i = 0; i < values->len && !is_too_varied; i++) {
        const value_part *x = &g_array_index(values, value_part, i);
        if (value_is_result(values, x) || column_value_is_failure(c, x->value) || !offer_group(s, x->of, all, used))
            continue;
        s->found->column = c;
        s->found->value = x->value;
    }
    g_array_free(values, TRUE);
}

/* Offers the range of the log whose failures correlate best with its time. */
static void offer_ranges(group_search *s, part all)
{
    part bins[TIME_BINS] = {{0, 0, 0}};
    uint32_t count = s->p->count;
    if (count < TIME_BINS)
        return;
    for (uint32_t i = 0; i < count; i++) {
        part *of = &bins[(uint64_t)i * TIME_BINS / count];
        of->count++;
        of->examined++;
        of->failed += s->failed[visit_of_group(s, i)];
    }
    for (int from = 0; from < TIME_BINS; from++) {
        part range = {0};
        for (int to = from; to < TIME_BINS; to++) {
            range.failed += bins[to].failed;
            range.count += bins[to].count;
            range.examined += bins[to].examined;
            if (!offer_group(s, range, all, TIME_BINS * (TIME_BINS + 1) / 2.0))
                continue;
            uint32_t first = (uint32_t)(((uint64_t)from * count + TIME_BINS - 1) / TIME_BINS),
                     last = (uint32_t)(((uint64_t)(to + 1) * count + TIME_BINS - 1) / TIME_BINS) - 1;
            s->found->is_time = true;
            s->found->from_ns = visit_at(s->v, visit_of_group(s, first))->from_ns;
            s->found->to_ns = visit_at(s->v, visit_of_group(s, last))->to_ns;
        }
    }
}

bool failure_group_find(const visits *v, uint32_t number, const bool *failed, double chance, bool with_times,
                        failure_group *found)
{
    const bool has_processes = place_has_processes(v, place_at(v, number));
    uint32_t divisions = has_processes ? 3 : 2; /* by hosts, by processes and by time */
    for (uint32_t i = 0; i < v->columns->count; i++)
        divisions += column_is_reason(&v->columns->all[i]);
    group_search s = {v, place_at(v, number), failed, chance / divisions, 0, found};
    const part all = count_failures(&s);
    offer_peers(&s, all, false);
    if (has_processes)
        offer_peers(&s, all, true);
    for (uint32_t i = 0; i < v->columns->count; i++)
        if (column_is_reason(&v->columns->all[i]))
            offer_values(&s, &v->columns->all[i], MAX(1, s.p->count / SUCCESSES_MAX));
    if (with_times)
        offer_ranges(&s, all);
    if (s.best > 0 && found->column != NULL)
        count_exactly(&s);
    return s.best > 0;
}
