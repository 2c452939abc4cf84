/*
 * Tries the fields of the records as causes, and divides the visits of a place into kinds of work by their fields.
 *
 * Many records have fields that others lack: an access log names the server of a request only if the reply does not
 * come from a cache. Visits with the field are then a different kind of work than visits without the field. The
 * difference between the two kinds would hide the effect of the field, so the module compares only the visits with the
 * field. No state.
 */
#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <string.h>

/*
 * A field contains parts of the visits' times under two conditions. (1) Each value is at most PART_MAX times the
 * visit's time (more than 1 because of rounding); at most PART_EXCEPTIONS_MAX of the visits are exceptions. (2) The sum
 * of the values is at least PART_MIN of the time of all visits.
 */
#define PART_MAX 1.01
#define PART_EXCEPTIONS_MAX 0.01
#define PART_MIN 0.5

/* If single numbers between other numbers explain a part of the variation, ranges of numbers must explain more than
 * RANGES_FACTOR times this part. */
#define RANGES_FACTOR 1.1

/* ---- fields ---- */

/* Returns the value of a column in the record of a span's start, or NAN. */
static float value_at_begin(const column *c, const visits *v, uint32_t index)
{
    uint64_t bit = UINT64_C(1) << (c - v->columns->all);
    return (visit_at(v, index)->begin_columns & bit) != 0 ? column_get(c->of_visits, index) : (float)NAN;
}

/*
 * Returns the value of a column in the records of an edge, or NAN if no record has a value. These records belong to the
 * start or end of the span beside the edge. If the edge ends with the span that contains it, the span's end record
 * counts, too.
 */
static float value_of_edge(const column *c, const visits *v, const visit *x)
{
    if (x->span != VISIT_NONE && visit_at(v, x->span)->from_ns >= x->to_ns)
        return value_at_begin(c, v, x->span);
    float value = x->span != VISIT_NONE ? column_get(c->of_visits, x->span) : (float)NAN;
    return isnan(value) && x->parent != VISIT_NONE && visit_at(v, x->parent)->to_ns == x->to_ns
               ? column_get(c->of_visits, x->parent)
               : value;
}

bool column_is_at_begin(const column *c, const visits *v, uint32_t index)
{
    return isnan(column_get(c->of_visits, index)) || isfinite(value_at_begin(c, v, index));
}

float column_of_visit(const column *c, const visits *v, uint32_t index)
{
    enum { SPANS_AROUND_MAX = 32 };
    const visit *x = visit_at(v, index);
    bool is_edge = place_at(v, place_of_visit(v, x))->kind == PLACE_EDGE;
    float value = is_edge ? value_of_edge(c, v, x) : column_get(c->of_visits, index);
    uint32_t around = x->parent;
    for (int i = 0; i < SPANS_AROUND_MAX && isnan(value) && around != VISIT_NONE; i++) {
        value = value_at_begin(c, v, around);
        around = visit_at(v, around)->parent;
    }
    if (!isnan(value))
        return value;
    float since = column_get(c->since, x->request);
    double age = (double)(x->from_ns - request_at(v, x->request)->from_ns);
    return (double)since > age ? (float)NAN : column_get(c->of_requests, x->request);
}

/* Assigns a bin to each of the most frequent values, and one bin to all other values. Returns the number of bins. */
static int bins_of_texts(const column *c, const float *values, uint32_t count, uint8_t *bins, float of_bin[BINS_MAX])
{
    enum { NAMED = 24 };
    uint32_t counts[COLUMN_TEXTS_MAX] = {0};
    int bin_of[COLUMN_TEXTS_MAX] = {0}, named = 0;
    for (uint32_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            counts[(int)values[i]]++;
    for (guint t = 0; t < c->texts->len; t++) {
        guint larger = 0;
        for (guint o = 0; o < c->texts->len; o++)
            larger += counts[o] > counts[t] || (o < t && counts[o] == counts[t]);
        bin_of[t] = larger < NAMED && counts[t] > 0 ? named++ : NAMED;
        if (bin_of[t] < NAMED)
            of_bin[bin_of[t]] = (float)t;
    }
    of_bin[NAMED] = NAN;
    for (uint32_t i = 0; i < count; i++)
        bins[i] = isfinite(values[i]) ? (uint8_t)bin_of[(int)values[i]] : BIN_NONE;
    return NAMED + 1;
}

/* Assigns a bin to each different number, and returns the number of bins. Returns 0 if there are more than count_max
 * different numbers. */
static int bins_of_each_number(const float *values, uint32_t count, int count_max, uint8_t *bins,
                               float of_bin[BINS_MAX])
{
    int used = 0;
    for (uint32_t i = 0; i < count; i++) {
        int b = 0;
        bins[i] = BIN_NONE;
        if (!isfinite(values[i]))
            continue;
        while (b < used && of_bin[b] != values[i])
            b++;
        if (b == used && used == count_max)
            return 0;
        of_bin[b] = values[i];
        used = MAX(used, b + 1);
        bins[i] = (uint8_t)b;
    }
    return used;
}

static const char *host_of_value(const column *c, float value)
{
    return isnan(value) ? NULL : g_intern_string(g_ptr_array_index(c->texts, (guint)value));
}

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/*
 * Returns whether the visits with the slow values of a field take only a little longer than the other visits. Compares
 * the times before ordinary findings claimed a part of them, because the ratio of the remaining times is larger.
 */
static bool is_small_difference(const search *s, const sample *x, const uint8_t *bins, uint64_t slow,
                                const candidate *c)
{
    double sums[2] = {0}, counts[2] = {0};
    if (c->is_ordinary || slow == 0 || strcmp(c->cause, "field") != 0)
        return false;
    for (uint32_t i = 0; i < x->count; i++)
        if (bins[i] != BIN_NONE) {
            sums[slow >> bins[i] & 1] += time_before_ordinary(s, x, i);
            counts[slow >> bins[i] & 1]++;
        }
    return sums[1] * counts[0] <= EFFECT_MIN * sums[0] * counts[1];
}

/*
 * Returns whether the numbers of a column are times that the visits contain. An example is the duration of the request
 * in an access log. In some unit (seconds to nanoseconds), the numbers almost never exceed the visits' times, and make
 * up most of these times. The numbers show where the time is, but explain nothing.
 */
static bool is_part_of_time(const sample *x, const column *c, const float *values)
{
    for (double unit_ns = 1e9; unit_ns >= 1 && column_meaning(c) != NUMBER_WORK; unit_ns /= 1000) {
        double sum_ns = 0, all_ns = 0;
        uint32_t known = 0, larger = 0;
        for (uint32_t i = 0; i < x->count; i++) {
            const visit *y = visit_at(x->visits, x->index[i]);
            double value_ns = (double)values[i] * unit_ns, time_ns = (double)(y->to_ns - y->from_ns);
            if (!isfinite(values[i]))
                continue;
            known++;
            larger += value_ns > PART_MAX * time_ns;
            sum_ns += value_ns;
            all_ns += time_ns;
        }
        if (larger <= PART_EXCEPTIONS_MAX * known && sum_ns >= PART_MIN * all_ns)
            return true;
    }
    return false;
}

/*
 * Returns whether the slow values of a number are neither its smallest nor its largest values. A range of numbers does
 * not show this exception.
 */
static bool are_values_between(const division *d)
{
    float low = INFINITY, high = -INFINITY, slow_low = INFINITY, slow_high = -INFINITY;
    for (int b = 0; b < d->count; b++) {
        low = fminf(low, d->of_bin[b]);
        high = fmaxf(high, d->of_bin[b]);
        if (d->slow >> b & 1) {
            slow_low = fminf(slow_low, d->of_bin[b]);
            slow_high = fmaxf(slow_high, d->of_bin[b]);
        }
    }
    return slow_low > low && slow_high < high;
}

/*
 * Tries a division of a sample's visits by the values of a column. Sets the slow bins of the division. Offers the
 * division as a cause only if it explains more than the part `more` of the variation and, with `only_between`, the slow
 * values are between other values. Returns the explained part, or 0 if the division is not offered.
 */
static double try_bins(search *s, const sample *x, const column *c, division *d, bool only_between, double more)
{
    bool peers = c->name[0] == '@';
    s->f->tests++;
    explanation e = sample_explain(x, d->bins, d->count, d->ordered);
    uint64_t slow = d->slow = e.slow;
    candidate found = candidate_of(x, peers ? "peer" : d->ordered ? "size" : "field", &e, peers ? 1.01 : 1);
    found.column = c;
    found.value = slow != 0 && !d->ordered ? (double)d->of_bin[__builtin_ctzll(slow)] : NAN;
    found.values = (uint32_t)count_bits(slow);
    for (int b = 0, n = 0; b < d->count && n < SLOW_VALUES_NAMED; b++)
        if (slow >> b & 1)
            found.slow_values[n++] = d->of_bin[b];
    if (peers && count_bits(slow) == 1)
        found.host = host_of_value(c, (float)found.value);
    if (!peers)
        candidate_find_ordinary(s, &found, x, d);
    bool is_rest = count_bits(slow) == 1 && isnan(d->of_bin[__builtin_ctzll(slow)]); /* these values have no name */
    if ((!d->ordered && (slow == 0 || is_rest || count_bits(slow) > (peers ? 1 : SLOW_VALUES_MAX) ||
                         is_small_difference(s, x, d->bins, slow, &found))) ||
        (only_between && !are_values_between(d)) || found.explained <= more) {
        candidate_clear(&found);
        return 0;
    }
    double explained = found.explained;
    candidate_offer(s, &found);
    return explained;
}

/* Factor of the score of a value that is slow only in a time range. The search prefers values without a range. */
#define IN_TIME_PREFERENCE 0.95

/* Returns the probability by chance that the visits of a bin are as much slower in a time range as in the sample,
 * compared with the visits of the same bin at other times. inside[i] is whether visit i belongs to the bin and the
 * range. */
static double chance_of_range(const sample *x, const uint8_t *bins, int bin, const uint8_t *inside)
{
    uint8_t *of_bin = g_new(uint8_t, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++)
        of_bin[i] = bins[i] == bin ? inside[i] : BIN_NONE;
    explanation e = sample_explain(x, of_bin, 2, false);
    g_free(e.excess);
    g_free(of_bin);
    return (e.slow & 2) != 0 ? e.p : 1;
}

/* Tries a value of a column that is slow only in a time range. */
static void try_value_in_time(search *s, const sample *x, const column *c, const division *d)
{
    uint8_t *inside = g_new(uint8_t, x->count + 1);
    slow_bin slowest;
    if (sample_find_slow_bin(x, d->bins, d->count, true, inside, &slowest) && isfinite(d->of_bin[slowest.bin])) {
        s->f->tests++;
        explanation e = sample_explain(x, inside, 2, false);
        const bool is_slow = (e.slow & 2) != 0;
        candidate found = candidate_of(x, "field", &e, IN_TIME_PREFERENCE);
        found.column = c;
        found.value = (double)d->of_bin[slowest.bin];
        found.values = 1;
        found.slow_values[0] = d->of_bin[slowest.bin];
        found.meaning = c->has_text ? NUMBER_NONE : column_meaning(c);
        found.p = fmax(found.p, chance_of_range(x, d->bins, slowest.bin, inside));
        candidate_set_range(&found, &slowest);
        found.p *= (1 - IN_TIME_PART) / IN_TIME_PART;
        if (is_slow)
            candidate_offer(s, &found);
        else
            candidate_clear(&found);
    }
    g_free(inside);
}

/* Tries a division of a sample's visits by the values of a column, one for each visit. */
static void try_values(search *s, const sample *x, const column *c, const float *values)
{
    enum { DIFFERENT = 12, DIFFERENT_MAX = 40 }; /* a column with more different numbers has ranges as bins */
    if (!c->has_text && (sample_values_count(x, values) || is_part_of_time(x, c, values)))
        return;
    float of_bin[BINS_MAX];
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    division d = {.values = values, .bins = bins, .of_bin = of_bin};
    for (int b = 0; b < BINS_MAX; b++)
        of_bin[b] = NAN;
    d.count = c->has_text ? bins_of_texts(c, values, x->count, bins, of_bin)
                          : bins_of_each_number(values, x->count, DIFFERENT_MAX, bins, of_bin);
    double explained = d.count > 1 ? try_bins(s, x, c, &d, !c->has_text && d.count > DIFFERENT, -INFINITY) : 0;
    if (d.count > 1 && c->name[0] != '@' && !column_is_result(c) && (c->has_text || d.count <= DIFFERENT))
        try_value_in_time(s, x, c, &d);
    if (!c->has_text && (d.count == 0 || d.count > DIFFERENT)) {
        d.ordered = true;
        d.count = sample_quantize(values, x->count, bins);
        /* A range that contains little more than a single slow number explains nearly as much as the number. */
        if (d.count > 1)
            try_bins(s, x, c, &d, false, explained > 0 ? RANGES_FACTOR * explained : -INFINITY);
    }
    g_free(bins);
}

/* ---- numbers of calls ---- */

/* A field explains numbers of calls if it explains at least this part of their variation. */
#define CALLS_EXPLAINED_MIN 0.5

/* A column is a count of calls if at least this part of its values equals the number of calls. */
#define NEARLY_ALL 0.9

/* Returns whether nearly all values of a column are the numbers of calls, in records after the start of the visits.
 * Such a column counts the calls, and is no reason for them. */
static bool is_count_of_calls(const sample *x, const column *c, const float *values, double call_ns)
{
    uint32_t equal = 0;
    for (uint32_t i = 0; i < x->count; i++)
        equal += fabs((double)values[i] * call_ns - x->y[i]) < 0.5 * call_ns &&
                 !column_is_at_begin(c, x->visits, x->index[i]);
    return equal > NEARLY_ALL * x->count;
}

/* Returns whether a column explains most of the variation of a sample, and describes the requested work. */
static bool is_explained_by_work(const search *s, const sample *x, const column *c, const float *values)
{
    float of_bin[BINS_MAX];
    uint8_t *bins = g_new(uint8_t, x->count + 1);
    division d = {.values = values, .bins = bins, .of_bin = of_bin, .ordered = !c->has_text};
    for (int b = 0; b < BINS_MAX; b++)
        of_bin[b] = NAN;
    d.count = c->has_text ? bins_of_texts(c, values, x->count, bins, of_bin) : sample_quantize(values, x->count, bins);
    bool is_work = false;
    if (d.count > 1) {
        explanation e = sample_explain(x, bins, d.count, d.ordered);
        d.slow = e.slow;
        candidate found = candidate_of(x, d.ordered ? "size" : "field", &e, 1);
        found.column = c;
        candidate_find_ordinary(s, &found, x, &d);
        is_work = (found.is_ordinary || found.is_uneven) && found.explained >= CALLS_EXPLAINED_MIN;
        candidate_clear(&found);
    }
    g_free(bins);
    return is_work;
}

bool calls_are_ordinary(const visits *v, const sample *x, double call_ns)
{
    findings none = {.visits = v, .list = g_ptr_array_new()};
    const search s = {.v = v, .f = &none};
    float *values = g_new(float, x->count + 1);
    bool is_work = false;
    for (uint32_t n = 0; n < v->columns->count && !is_work; n++) {
        const column *c = &v->columns->all[n];
        if (c->closed || c->name[0] == '@' || column_is_result(c))
            continue;
        for (uint32_t i = 0; i < x->count; i++)
            values[i] = column_of_visit(c, v, x->index[i]);
        is_work = !(c->has_number && (is_count_of_calls(x, c, values, call_ns) || sample_values_count(x, values))) &&
                  is_explained_by_work(&s, x, c, values);
    }
    g_free(values);
    g_ptr_array_free(none.list, TRUE);
    return is_work;
}

const sample *sample_choose_work(const column *c, const sample *of_work, const sample *amounts)
{
    return amounts != NULL && c->name[0] == '@' ? amounts : of_work;
}

/* Tries a column with the chosen visits of a sample. */
static void try_chosen(search *s, const sample *original, const column *c, const float *values, const bool *chosen,
                       visit_kind kind)
{
    sample *selected = sample_select(original, chosen), *even = NULL;
    selected->kind = kind;
    float *own = g_new0(float, selected->count + 1);
    for (uint32_t i = 0, n = 0; i < original->count; i++)
        if (chosen[i])
            own[n++] = values[i];
    if (!column_is_operation(s->v, original->place, c))
        even = sample_even_out_operations(s, selected);
    const sample *of_work = even != NULL ? even : selected;
    sample *amounts = sample_even_out_amounts(s, of_work);
    try_values(s, sample_choose_work(c, of_work, amounts), c, own);
    if (amounts != NULL)
        sample_free(amounts);
    if (even != NULL)
        sample_free(even);
    sample_free(selected);
    g_free(own);
}

/* Returns whether a text stands for a missing value: "-" or an empty text. */
static bool is_dash(const column *c, float value)
{
    const char *text = c->has_text && isfinite(value) ? g_ptr_array_index(c->texts, (guint)value) : NULL;
    return text != NULL && (strcmp(text, "-") == 0 || *text == '\0');
}

void try_column(search *s, const sample *original, const sample *even, const column *c)
{
    float *values = g_new0(float, original->count + 1);
    bool *known = g_new(bool, original->count + 1), *named = g_new(bool, original->count + 1);
    uint32_t known_count = 0, named_count = 0;
    for (uint32_t i = 0; i < original->count; i++) {
        values[i] = column_of_visit(c, s->v, original->index[i]);
        known[i] = isfinite(values[i]);
        named[i] = known[i] && !is_dash(c, values[i]);
        known_count += known[i];
        named_count += named[i];
    }
    const visit_kind kind = {c, VISITS_WITH};
    if (known_count == original->count)
        try_values(s, column_is_operation(s->v, original->place, c) ? original : even, c, values);
    else if (known_count >= KIND_COUNT_MIN)
        try_chosen(s, original, c, values, known, kind);
    if (named_count < known_count && named_count >= KIND_COUNT_MIN)
        try_chosen(s, original, c, values, named, kind);
    g_free(values);
    g_free(known);
    g_free(named);
}

/* ---- kinds of visits ---- */

/* The main kind of visits has at most KIND_PART_MAX of the visits, because a search in all visits finds the causes of a
 * larger kind. The visits of the main kind take at least KIND_TIME_MIN of the time. */
#define KIND_PART_MAX 0.75
#define KIND_TIME_MIN 0.5

/* A column divides the visits into kinds only if at most this part of the visits is of rare kinds. */
#define SMALL_KINDS_MAX 0.05

static bool is_of_kind(visit_kind kind, float value)
{
    bool has = isfinite(value) && !is_dash(kind.column, value);
    return kind.choice == VISITS_MISS ? isfinite(value) && !column_is_hit(kind.column, value)
                                      : has == (kind.choice == VISITS_WITH);
}

/* Marks in `chosen` the visits of a sample that are of a kind, and returns their number. `values` has the values of the
 * kind's column. */
static uint32_t choose_kind(const sample *x, visit_kind kind, const float *values, bool *chosen)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        chosen[i] = is_of_kind(kind, values[i]);
        count += chosen[i];
    }
    return count;
}

/* Gets the values of a column for the visits of a sample. Returns whether the column divides the visits into kinds. */
static bool get_kinds(const search *s, const sample *x, const column *c, float *values)
{
    bool has_all = true;
    if (c->closed || c->name[0] == '@')
        return false;
    for (uint32_t i = 0; i < x->count; i++) {
        values[i] = column_of_visit(c, s->v, x->index[i]);
        has_all = has_all && isfinite(values[i]) && !is_dash(c, values[i]);
    }
    return !has_all || column_is_of_cache(c);
}

sample *sample_select_main_kind(const search *s, const sample *x)
{
    float *values = g_new(float, x->count + 1);
    bool *chosen = g_new(bool, x->count + 1), *best = g_new(bool, x->count + 1);
    visit_kind best_kind = {0};
    double all_ns = 0, most_ns = 0;
    for (uint32_t i = 0; i < x->count; i++)
        all_ns += x->y[i];
    for (uint32_t n = 0; n < s->v->columns->count; n++) {
        const column *c = &s->v->columns->all[n];
        bool has_kinds = get_kinds(s, x, c, values);
        for (visit_choice choice = VISITS_WITH; choice <= VISITS_MISS && has_kinds; choice++) {
            if (choice == VISITS_MISS && !column_is_of_cache(c))
                continue;
            const visit_kind kind = {c, choice};
            uint32_t count = choose_kind(x, kind, values, chosen);
            double ns = 0;
            for (uint32_t i = 0; i < x->count; i++)
                ns += chosen[i] ? x->y[i] : 0;
            if (count < KIND_COUNT_MIN || count > KIND_PART_MAX * x->count || ns < KIND_TIME_MIN * all_ns ||
                ns <= most_ns)
                continue;
            best_kind = kind;
            most_ns = ns;
            memcpy(best, chosen, x->count * sizeof *best);
        }
    }
    sample *selected = best_kind.column != NULL ? sample_select(x, best) : NULL;
    if (selected != NULL)
        selected->kind = best_kind;
    g_free(values);
    g_free(chosen);
    g_free(best);
    return selected;
}

/*
 * A kind of visits, not a timeout, explains longer times if at least KIND_AGREES_MIN of its visits are longer, and at
 * least KIND_AGREES_MIN of the longer visits are of this kind. However, if most longer times differ by at most
 * TIME_OUT_RANGE_MAX of their median, the cause is a timeout.
 */
#define KIND_AGREES_MIN 0.95
#define TIME_OUT_RANGE_MAX 0.1

/* Returns whether most of the times of the visits that wait are nearly equal. */
static bool are_times_equal(const sample *x, const float *waits)
{
    double *times = g_new(double, x->count + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (waits[x->index[i]] > 0)
            times[n++] = x->y[i];
    double middle = median_of(times, n); /* sorts the times */
    bool equal = n > 0 && times[n - 1 - n / 10] - times[n / 10] <= TIME_OUT_RANGE_MAX * middle;
    g_free(times);
    return equal;
}

bool sample_waits_are_kind(const search *s, const sample *x, const float *waits)
{
    float *values = g_new(float, x->count + 1);
    bool *chosen = g_new(bool, x->count + 1), found = false;
    for (uint32_t n = 0; n < s->v->columns->count && !found; n++) {
        const column *c = &s->v->columns->all[n];
        if (column_is_result(c) || column_meaning(c) == NUMBER_CONTENTION || !get_kinds(s, x, c, values))
            continue;
        for (visit_choice choice = VISITS_WITH; choice <= VISITS_MISS && !found; choice++) {
            if (choice == VISITS_MISS && !column_is_of_cache(c))
                continue;
            const visit_kind kind = {c, choice};
            uint32_t of_kind = choose_kind(x, kind, values, chosen), waiting = 0, both = 0;
            for (uint32_t i = 0; i < x->count; i++) {
                waiting += waits[x->index[i]] > 0;
                both += chosen[i] && waits[x->index[i]] > 0;
            }
            found = both > 0 && both >= KIND_AGREES_MIN * MAX(of_kind, waiting);
        }
    }
    g_free(values);
    g_free(chosen);
    return found && !are_times_equal(x, waits);
}

/* ---- operations ---- */

/* Returns the column with the most texts that names the operations of a place, or NULL. */
static const column *find_operation(const search *s, uint32_t place)
{
    const column *found = NULL;
    for (uint32_t i = 0; i < s->v->columns->count; i++) {
        const column *c = &s->v->columns->all[i];
        if (!c->closed && column_is_operation(s->v, place, c) && (found == NULL || c->texts->len > found->texts->len))
            found = c;
    }
    return found;
}

uint32_t sample_group_operations(const search *s, const sample *x, uint32_t *groups)
{
    enum { OPERATION_MIN = 12 };
    const column *c = find_operation(s, x->place);
    if (c == NULL)
        return 0;
    uint32_t counts[COLUMN_TEXTS_MAX + 1] = {0}, used = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        float value = column_of_visit(c, s->v, x->index[i]);
        groups[i] = isfinite(value) ? (uint32_t)value : COLUMN_TEXTS_MAX;
        counts[groups[i]]++;
    }
    for (uint32_t k = 0; k < COLUMN_TEXTS_MAX; k++)
        used += counts[k] >= OPERATION_MIN;
    for (uint32_t i = 0; i < x->count; i++)
        if (counts[groups[i]] < OPERATION_MIN)
            groups[i] = COLUMN_TEXTS_MAX;
    return used;
}

/*
 * Divides the groups by the values of a column that divides the visits into kinds. Does nothing if many visits would be
 * in small groups. `values` has the values of the column. Returns the number of groups.
 */
static uint32_t divide_groups(const sample *x, const column *c, const float *values, uint32_t *groups, uint32_t count)
{
    enum { CHOICES = 3 };
    uint32_t *divided = g_new(uint32_t, x->count + 1), *sizes = g_new0(uint32_t, (size_t)CHOICES * count + 1),
             *numbers = g_new0(uint32_t, (size_t)CHOICES * count + 1), small = 0, used = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t choice = !is_of_kind((visit_kind){c, VISITS_WITH}, values[i])   ? 0
                          : column_is_of_cache(c) && column_is_hit(c, values[i]) ? 1
                                                                                 : 2;
        divided[i] = groups[i] * CHOICES + choice;
        sizes[divided[i]]++;
    }
    for (uint32_t g = 0; g < CHOICES * count; g++) {
        numbers[g] = used;
        used += sizes[g] > 0;
        small += sizes[g] < KIND_COUNT_MIN ? sizes[g] : 0;
    }
    for (uint32_t i = 0; i < x->count && small <= SMALL_KINDS_MAX * x->count; i++)
        groups[i] = numbers[divided[i]];
    g_free(divided);
    g_free(sizes);
    g_free(numbers);
    return small <= SMALL_KINDS_MAX * x->count ? used : count;
}

uint32_t sample_group_kinds(const search *s, const sample *x, uint32_t *groups)
{
    float *values = g_new(float, x->count + 1);
    uint32_t count = COLUMN_TEXTS_MAX + 1;
    bool *is_rare = g_new0(bool, x->count + 1); /* rare operations form no group, because their usual times differ */
    if (sample_group_operations(s, x, groups) <= 1) {
        memset(groups, 0, x->count * sizeof *groups);
        count = 1;
    }
    for (uint32_t i = 0; i < x->count; i++)
        is_rare[i] = groups[i] == COLUMN_TEXTS_MAX;
    for (uint32_t n = 0; n < s->v->columns->count; n++) {
        const column *c = &s->v->columns->all[n];
        if (!column_is_result(c) && column_meaning(c) != NUMBER_CONTENTION && get_kinds(s, x, c, values))
            count = divide_groups(x, c, values, groups, count);
    }
    uint32_t *sizes = g_new0(uint32_t, count + 1);
    for (uint32_t i = 0; i < x->count; i++)
        sizes[groups[i]]++;
    for (uint32_t i = 0; i < x->count; i++)
        if (is_rare[i] || sizes[groups[i]] < KIND_COUNT_MIN)
            groups[i] = UINT32_MAX;
    g_free(is_rare);
    g_free(sizes);
    g_free(values);
    return count;
}

sample *sample_even_out_operations(const search *s, const sample *x)
{
    uint32_t *groups = g_new(uint32_t, x->count + 1);
    sample *even = sample_group_operations(s, x, groups) > 1 ? sample_even_out(x, groups, COLUMN_TEXTS_MAX + 1) : NULL;
    g_free(groups);
    return even;
}
