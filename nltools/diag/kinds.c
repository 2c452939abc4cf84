/*
 * Finds kinds of objects that take far longer for a step than others. A kind is a value of a field, such as a
 * request's type.
 */
#include "config.h"

#include "diag/findings.h"
#include "diag/numbers.h"

#include <math.h>

enum { KIND_MIN = 10 };

/* Sums of the times of objects with one value of a field. */
typedef struct moments {
    double n, sum, squares;
    double passages;
} moments;

/* The time and the number of passages of an object. */
typedef struct time_on_way {
    double took_ns, passages;
} time_on_way;

typedef struct kind {
    guint field, value;
    double excess_ns;        /* in all of those that were looked at */
    moments here, elsewhere; /* of those with the value, of those with another one */
} kind;

static double mean_of(const moments *m)
{
    return m->sum / m->n;
}

static double square_error_of(const moments *m)
{
    return MAX(0, m->squares / m->n - mean_of(m) * mean_of(m)) / m->n;
}

/* Returns the times of all objects with known kinds on a way, by the index of the object. */
static GHashTable *times_of_way(const observed *o, guint first, guint end)
{
    GHashTable *times = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    for (guint i = first; i < end; i++) {
        const leg *l = g_ptr_array_index(observed_legs(o), i);
        for (size_t k = 0; k < l->count; k++) {
            const passage *p = &l->passages[k];
            if (observed_kinds_of(o, p->object) == NULL)
                continue;
            time_on_way *known = g_hash_table_lookup(times, GUINT_TO_POINTER(p->object));
            if (known == NULL) {
                known = g_new0(time_on_way, 1);
                g_hash_table_insert(times, GUINT_TO_POINTER(p->object), known);
            }
            known->took_ns += (double)p->took_ns;
            known->passages++;
        }
    }
    return times;
}

/* Sums the times on a way by field and value. Returns the sum of all times. */
static double sum_kinds(const observed *o, guint first, guint end, moments sums[KINDS_MAX][KIND_VALUES_MAX + 1])
{
    GHashTable *times = times_of_way(o, first, end);
    GHashTableIter all;
    gpointer object, took;
    double looked_at_ns = 0;
    g_hash_table_iter_init(&all, times);
    while (g_hash_table_iter_next(&all, &object, &took)) {
        const uint8_t *values = observed_kinds_of(o, GPOINTER_TO_UINT(object));
        const time_on_way *one = took;
        double took_ns = one->took_ns;
        looked_at_ns += took_ns;
        for (guint field = 0; field < observed_kind_count(o); field++) {
            moments *m = &sums[field][values[field]];
            m->n++;
            m->sum += took_ns;
            m->squares += took_ns * took_ns;
            m->passages += one->passages;
        }
    }
    g_hash_table_destroy(times);
    return looked_at_ns;
}

/*
 * Kinds may differ for good reasons. A kind is reported if it is a minority and takes at least twice as long as the
 * others.
 */
static void judge_kind(const moments *all, const moments *here, guint field, guint value, kind *best)
{
    moments rest = {all->n - here->n, all->sum - here->sum, all->squares - here->squares,
                    all->passages - here->passages};
    if (here->n < KIND_MIN || rest.n < here->n)
        return;
    double more_ns = mean_of(here) - mean_of(&rest), error = sqrt(square_error_of(here) + square_error_of(&rest));
    if (mean_of(here) >= 2 * mean_of(&rest) && more_ns >= CERTAIN * error && more_ns * here->n > best->excess_ns)
        *best = (kind){field, value, more_ns * here->n, *here, rest};
}

/*
 * Returns 1 if a kind differs from the others by more than they differ among each other, 0 if not, and -1 if there are
 * too few others.
 */
static int is_unlike(const moments of_values[KIND_VALUES_MAX + 1], guint value)
{
    double logs[KIND_VALUES_MAX + 1];
    guint others = 0;
    for (guint i = 1; i <= KIND_VALUES_MAX; i++)
        if (i != value && of_values[i].n >= KIND_MIN)
            logs[others++] = log(MAX(1, mean_of(&of_values[i])));
    if (others < OTHERS_MIN)
        return -1;
    double middle = median(logs, others);
    return log(MAX(1, mean_of(&of_values[value]))) - middle >= UNLIKE * spread_around(logs, others, middle);
}

static kind worst_kind(const observed *o, moments sums[KINDS_MAX][KIND_VALUES_MAX + 1])
{
    kind best = {0};
    for (guint field = 0; field < observed_kind_count(o); field++) {
        moments all = {0};
        for (guint value = 1; value <= KIND_VALUES_MAX; value++) {
            all.n += sums[field][value].n;
            all.sum += sums[field][value].sum;
            all.squares += sums[field][value].squares;
            all.passages += sums[field][value].passages;
        }
        for (guint value = 1; observed_kind_name(o, field) != NULL && value <= KIND_VALUES_MAX; value++)
            if (sums[field][value].n >= KIND_MIN && is_unlike(sums[field], value) != 0)
                judge_kind(&all, &sums[field][value], field, value, &best);
    }
    return best;
}

static void tell_kind(findings *f, const kind *k, guint first, guint end, double share, double sure)
{
    const observed *o = f->observed;
    const leg *l = g_ptr_array_index(observed_legs(o), first);
    const char *name = observed_kind_name(o, k->field), *value = observed_kind_value(o, k->field, k->value);
    const char *here = text_ns(mean_of(&k->here)), *elsewhere_text = text_ns(mean_of(&k->elsewhere)),
               *part = text_share(k->here.n / (k->here.n + k->elsewhere.n));
    finding *made =
        findings_add(f, "kind", share, sure, "%s -> %s is slow where %s is %s", l->from, l->to, name, value);
    finding_evidence(made,
                     "such an object takes %s on average, one with another %s takes %s; %s of the objects are such",
                     here, name, elsewhere_text, part);
    double times = k->here.passages / k->here.n, times_elsewhere = k->elsewhere.passages / k->elsewhere.n;
    if (times >= 1.5 * times_elsewhere)
        finding_evidence(made, "such an object passes it %.1f times, others %.1f times", times, times_elsewhere);
    if (end > first + 1)
        finding_evidence(made, "for all hosts together");
    finding_place(made, o, end == first + 1 ? l->to_host : 0, l);
    finding_advice(made, "look for what differs for these: a missing index, "
                         "another path through the code, more data, something that only they wait for");
}

void find_kinds(findings *f)
{
    const observed *o = f->observed;
    const GPtrArray *legs = observed_legs(o);
    for (guint first = 0, end; first < legs->len && observed_kind_count(o) > 0; first = end) {
        double total_ns = 0;
        end = leg_way_end(legs, first);
        for (guint i = first; i < end; i++)
            total_ns += ((const leg *)g_ptr_array_index(legs, i))->total_ns;
        if (total_ns < FINDING_MIN * observed_total_ns(o))
            continue;
        moments sums[KINDS_MAX][KIND_VALUES_MAX + 1] = {0};
        double looked_at_ns = sum_kinds(o, first, end, sums);
        kind found = worst_kind(o, sums);
        if (found.excess_ns > 0)
            tell_kind(f, &found, first, end, found.excess_ns / looked_at_ns * total_ns / observed_total_ns(o),
                      is_unlike(sums[found.field], found.value) > 0 ? 0.7 : 0.4);
    }
}
