#include "config.h"

#include "requests/whole_spans.h"

#include "requests/key_map.h"
#include "requests/program_families.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUEST_SPANS_MAX = 256, /* maximum number of events of a request from which the module learns */
    NO_ITEM = UINT32_MAX,
    NO_KIND = UINT8_MAX,
};

/* With times that are rounded to longer units, the structure of short spans is unknown. */
#define UNIT_MAX_NS (WHOLE_ROUNDING_MAX_NS / 2)

/* A relation that holds in this share of cases is a rule. The lower share is for logs in which a clock is wrong. */
static const double rule_share = 0.99, weak_share = 0.9;

/* A deviation counts as smaller than another deviation only if it is less than this part of the other. */
static const double deviation_less = 0.8;

/* Two mean durations are equal if they differ by at most this part. */
#define SAME_DURATION 1e-9

/* An event of a request from which the module learns. Points have no duration. */
typedef struct span_item {
    int64_t begin_ns, end_ns, rounding_ns;
    uint32_t parent; /* index of the item of its parent, or NO_ITEM */
    uint32_t place;
    uint8_t kind;
    bool is_span;
} span_item;

/* How often spans of one kind ("inner") are in relations with spans of another kind ("outer"). */
typedef struct kind_pair {
    uint32_t both;   /* number of inner spans in requests with an outer span */
    uint32_t inside; /* number of these that an outer span contains */
    uint32_t begins; /* number of these that begin within an outer span */
    uint32_t after;  /* number of these that begin after the end of an outer span */
} kind_pair;

typedef struct span_kind {
    uint32_t count;
    double duration, offset; /* sums over the spans, in seconds; offset: from the start of the request to the span */
    uint64_t position;       /* sum of the positions of the records in their requests */
    bool is_span;
    uint8_t follows; /* the kind whose end the span follows, or NO_KIND */
    float certainty; /* of `follows` */
} span_kind;

struct whole_spans {
    const program_families *families;
    key_map kinds; /* maps program_families_kind + 1 to the kind's index + 1 */
    span_kind all[WHOLE_KINDS_MAX];
    kind_pair pairs[WHOLE_KINDS_MAX][WHOLE_KINDS_MAX]; /* [inner][outer] */
    bool parents[WHOLE_KINDS_MAX][WHOLE_KINDS_MAX];    /* [inner][outer]: outer may be the parent of inner */
    bool is_async[WHOLE_KINDS_MAX]; /* spans of this kind begin within their parent, but may end after it */
    int64_t unit_ns;                /* all times of events are multiples of this power of 10 */
    GArray *items;                  /* span_item, request by request */
    GArray *firsts;                 /* uint32_t: index of the first item of each request */
};

whole_spans *whole_spans_new(const program_families *families)
{
    whole_spans *w = g_new0(whole_spans, 1);
    w->families = families;
    w->unit_ns = UNIT_MAX_NS;
    w->items = g_array_new(FALSE, FALSE, sizeof(span_item));
    w->firsts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    return w;
}

void whole_spans_free(whole_spans *w)
{
    if (w == NULL)
        return;
    g_array_free(w->items, TRUE);
    g_array_free(w->firsts, TRUE);
    key_map_free(&w->kinds);
    g_free(w);
}

/* ---- learning ---- */

static uint8_t find_kind(const whole_spans *w, const request_event *e)
{
    const uint64_t *index = key_map_find(&w->kinds, program_families_kind(w->families, e) + 1);
    return index != NULL ? (uint8_t)(*index - 1) : NO_KIND;
}

static uint8_t add_kind(whole_spans *w, const request_event *e)
{
    if (w->kinds.count == WHOLE_KINDS_MAX)
        return find_kind(w, e);
    uint64_t *index = key_map_add(&w->kinds, program_families_kind(w->families, e) + 1);
    if (*index == 0) {
        *index = w->kinds.count;
        w->all[*index - 1].follows = NO_KIND;
    }
    return (uint8_t)(*index - 1);
}

/* Returns whether a record describes a whole span without identifiers. */
static bool is_whole(const event_names *names, const request_event *e)
{
    uint32_t span;
    return e->role == REQUEST_WHOLE && e->span_id == 0 && e->parent == 0 &&
           (names == NULL || event_names_side(names, e->name, &span) == EVENT_SIDE_NONE);
}

static span_item *item_at(const whole_spans *w, uint32_t index)
{
    return &g_array_index(w->items, span_item, index);
}

void whole_spans_learn(whole_spans *w, const event_names *names, const request_event *events, size_t count)
{
    size_t spans = 0;
    int64_t from_ns = INT64_MAX;
    if (count > REQUEST_SPANS_MAX || w->items->len + count > WHOLE_SPANS_MAX)
        return;
    for (size_t i = 0; i < count; i++) {
        spans += is_whole(names, &events[i]);
        from_ns = MIN(from_ns, request_event_begin(&events[i]));
    }
    if (spans == 0)
        return;
    g_array_append_val(w->firsts, w->items->len);
    for (size_t i = 0; i < count; i++) {
        const request_event *e = &events[i];
        uint8_t kind = add_kind(w, e);
        if (kind == NO_KIND)
            continue;
        bool is_span = is_whole(names, e);
        span_item item = {.begin_ns = is_span ? request_event_begin(e) : e->time_ns,
                          .end_ns = e->time_ns,
                          .rounding_ns = is_span ? request_event_rounding(e) : 0,
                          .parent = NO_ITEM,
                          .place = e->place,
                          .kind = kind,
                          .is_span = is_span};
        while (w->unit_ns > 1 && e->time_ns % w->unit_ns != 0)
            w->unit_ns /= 10;
        w->all[kind].is_span = is_span;
        w->all[kind].count++;
        w->all[kind].duration += (double)(item.end_ns - item.begin_ns) / 1e9;
        w->all[kind].position += i;
        w->all[kind].offset += (double)(item.begin_ns - from_ns) / 1e9;
        g_array_append_val(w->items, item);
    }
}

/* ---- relations of the kinds ---- */

static int64_t sum_of_roundings(const whole_spans *w, int64_t a_ns, int64_t b_ns)
{
    return MIN(MAX(a_ns, w->unit_ns), UNIT_MAX_NS) + MIN(MAX(b_ns, w->unit_ns), UNIT_MAX_NS);
}

static int64_t rounding_of_items(const whole_spans *w, const span_item *a, const span_item *b)
{
    return sum_of_roundings(w, a->rounding_ns, b->rounding_ns);
}

/* Returns whether a span contains another span or, if only_begin is true, the start of the other span. */
static bool contains(const whole_spans *w, const span_item *outer, const span_item *inner, bool only_begin)
{
    int64_t rounding_ns = rounding_of_items(w, outer, inner);
    return outer->is_span && outer->begin_ns <= inner->begin_ns + rounding_ns &&
           outer->end_ns + rounding_ns >= (only_begin ? inner->begin_ns : inner->end_ns);
}

static uint32_t end_of_request(const whole_spans *w, guint request)
{
    return request + 1 < w->firsts->len ? g_array_index(w->firsts, uint32_t, request + 1) : w->items->len;
}

/* Counts the relations of one span with all other kinds of its request, whose items are `first` to `end` - 1. */
static void count_relations(whole_spans *w, uint32_t index, uint32_t first, uint32_t end)
{
    enum { PRESENT = 1, INSIDE = 2, BEGINS = 4, AFTER = 8 };
    uint8_t found[WHOLE_KINDS_MAX] = {0};
    const span_item *inner = item_at(w, index);
    for (uint32_t i = first; i < end; i++) {
        const span_item *outer = item_at(w, i);
        if (outer->kind == inner->kind)
            continue;
        found[outer->kind] |= PRESENT;
        found[outer->kind] |= contains(w, outer, inner, false) ? INSIDE : 0;
        found[outer->kind] |= contains(w, outer, inner, true) ? BEGINS : 0;
        found[outer->kind] |= outer->end_ns <= inner->begin_ns + rounding_of_items(w, outer, inner) ? AFTER : 0;
    }
    for (guint k = 0; k < w->kinds.count; k++) {
        kind_pair *pair = &w->pairs[inner->kind][k];
        pair->both += (found[k] & PRESENT) != 0;
        pair->inside += (found[k] & INSIDE) != 0;
        pair->begins += (found[k] & BEGINS) != 0;
        pair->after += (found[k] & AFTER) != 0;
    }
}

static double mean_duration(const whole_spans *w, guint kind)
{
    return w->all[kind].duration / MAX(w->all[kind].count, 1);
}

/*
 * Returns whether spans of a kind are longer than spans of another kind. If both take exactly the same time, the record
 * of the outer span is probably written last.
 */
static bool is_longer(const whole_spans *w, guint outer, guint inner)
{
    double a = mean_duration(w, outer), b = mean_duration(w, inner);
    if (fabs(a - b) > SAME_DURATION * a)
        return a > b;
    return w->all[outer].position * w->all[inner].count > w->all[inner].position * w->all[outer].count;
}

/* Returns whether spans of the kind `outer` contain the spans of the kind `inner` in at least this share of cases. */
static bool usually_contains(const whole_spans *w, guint outer, guint inner, double share)
{
    const kind_pair *pair = &w->pairs[inner][outer];
    return w->all[outer].is_span && pair->both > 0 && pair->inside >= share * pair->both;
}

/*
 * Marks the kinds whose spans contain spans of the kind `inner`, or, if `only_begin` is true, contain at least the
 * starts of these spans. A span also contains the start of its parent if it begins at the same time, so the kinds whose
 * spans lie within spans of the kind `inner` are not marked. Returns whether any kind was marked.
 */
static bool mark_containers(whole_spans *w, guint inner, double share, bool only_begin)
{
    bool any = false;
    for (guint outer = 0; outer < w->kinds.count; outer++) {
        const kind_pair *pair = &w->pairs[inner][outer];
        bool holds = only_begin ? w->all[outer].is_span && pair->both > 0 && pair->begins >= share * pair->both &&
                                      !usually_contains(w, inner, outer, share)
                                : usually_contains(w, outer, inner, share) && is_longer(w, outer, inner);
        /* A span that begins when another span ends is no child, although rounding makes it begin within that span. */
        bool follows = pair->after >= share * pair->both;
        w->parents[inner][outer] = holds && !(only_begin && follows) && !w->parents[outer][inner];
        any = any || w->parents[inner][outer];
    }
    return any;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the mean absolute deviation from the median. The array must have elements. Sorts the array. */
static double deviation_of(GArray *numbers)
{
    double sum = 0;
    qsort(numbers->data, numbers->len, sizeof(double), by_number);
    double median = g_array_index(numbers, double, numbers->len / 2);
    for (guint i = 0; i < numbers->len; i++)
        sum += fabs(g_array_index(numbers, double, i) - median);
    return sum / numbers->len;
}

/* Returns the index of the shortest span of a kind, or of any possible parent if `kind` is NO_KIND, that contains an
 * item. Returns NO_ITEM if there is no such span. */
static uint32_t find_around(const whole_spans *w, uint32_t index, uint32_t first, uint32_t end, uint8_t kind)
{
    const span_item *inner = item_at(w, index);
    uint32_t best = NO_ITEM;
    for (uint32_t i = first; i < end; i++) {
        const span_item *outer = item_at(w, i);
        if (i == index || (kind == NO_KIND ? !w->parents[inner->kind][outer->kind] : outer->kind != kind) ||
            !contains(w, outer, inner, w->is_async[inner->kind]))
            continue;
        if (best == NO_ITEM || outer->end_ns - outer->begin_ns < item_at(w, best)->end_ns - item_at(w, best)->begin_ns)
            best = i;
    }
    return best;
}

/*
 * Returns the deviation of the time before spans of the kind `inner`, in seconds. This is the time since the start of
 * the surrounding span of the kind `outer`, or since the latest end of a child of that span. Returns INFINITY if there
 * are no such spans.
 */
static double deviation_in(const whole_spans *w, uint8_t inner, uint8_t outer)
{
    GArray *gaps = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint r = 0; r < w->firsts->len; r++) {
        uint32_t first = g_array_index(w->firsts, uint32_t, r), end = end_of_request(w, r);
        for (uint32_t i = first; i < end; i++) {
            const span_item *x = item_at(w, i);
            uint32_t around = x->kind == inner ? find_around(w, i, first, end, outer) : NO_ITEM;
            if (around == NO_ITEM)
                continue;
            int64_t since_ns = item_at(w, around)->begin_ns;
            for (uint32_t k = first; k < end; k++)
                if (item_at(w, k)->parent == around && item_at(w, k)->end_ns <= x->begin_ns)
                    since_ns = MAX(since_ns, item_at(w, k)->end_ns);
            double gap = (double)(x->begin_ns - since_ns) / 1e9;
            g_array_append_val(gaps, gap);
        }
    }
    double result = gaps->len > 0 ? deviation_of(gaps) : INFINITY;
    g_array_free(gaps, TRUE);
    return result;
}

/* Removes the possible parents of a kind that are probably concurrent calls of another possible parent. */
static void reject_siblings(whole_spans *w, uint8_t inner)
{
    double deviations[WHOLE_KINDS_MAX];
    bool rejected[WHOLE_KINDS_MAX] = {false};
    guint count = 0;
    for (guint k = 0; k < w->kinds.count; k++)
        count += w->parents[inner][k];
    if (count < 2)
        return;
    for (guint k = 0; k < w->kinds.count; k++)
        deviations[k] = w->parents[inner][k] ? deviation_in(w, inner, (uint8_t)k) : INFINITY;
    for (guint k = 0; k < w->kinds.count; k++)
        for (guint other = 0; other < w->kinds.count; other++)
            if (w->parents[inner][k] && w->parents[inner][other] && mean_duration(w, other) > mean_duration(w, k) &&
                deviations[other] < deviation_less * deviations[k])
                rejected[k] = true;
    for (guint k = 0; k < w->kinds.count; k++)
        w->parents[inner][k] = w->parents[inner][k] && !rejected[k];
}

/* Sets the parents of all items of a kind. */
static void set_parents(whole_spans *w, uint8_t kind)
{
    for (guint r = 0; r < w->firsts->len; r++) {
        uint32_t first = g_array_index(w->firsts, uint32_t, r), end = end_of_request(w, r);
        for (uint32_t i = first; i < end; i++)
            if (item_at(w, i)->kind == kind)
                item_at(w, i)->parent = find_around(w, i, first, end, NO_KIND);
    }
}

/*
 * Measures the time from the latest end of a span of the kind `before` to the start of a span of the kind `inner`, in
 * seconds. Returns the deviation of this time, and sets *mean to its mean.
 */
static double deviation_after(const whole_spans *w, uint8_t inner, uint8_t before, double *mean)
{
    GArray *gaps = g_array_new(FALSE, FALSE, sizeof(double));
    *mean = 0;
    for (guint r = 0; r < w->firsts->len; r++) {
        uint32_t first = g_array_index(w->firsts, uint32_t, r), end = end_of_request(w, r);
        for (uint32_t i = first; i < end; i++) {
            const span_item *x = item_at(w, i);
            int64_t since_ns = INT64_MIN;
            for (uint32_t k = first; k < end && x->kind == inner; k++)
                if (item_at(w, k)->kind == before &&
                    item_at(w, k)->end_ns <= x->begin_ns + rounding_of_items(w, x, item_at(w, k)))
                    since_ns = MAX(since_ns, item_at(w, k)->end_ns);
            if (since_ns == INT64_MIN)
                continue;
            double gap = (double)(x->begin_ns - since_ns) / 1e9;
            *mean += gap;
            g_array_append_val(gaps, gap);
        }
    }
    double result = gaps->len > 0 ? deviation_of(gaps) : INFINITY;
    *mean /= MAX(gaps->len, 1);
    g_array_free(gaps, TRUE);
    return result;
}

/* Finds the kind whose ends the spans of a kind without parents follow. */
static void find_former(whole_spans *w, uint8_t inner)
{
    span_kind *of = &w->all[inner];
    double best = INFINITY, best_mean = INFINITY;
    for (guint k = 0; k < w->kinds.count; k++) {
        const kind_pair *pair = &w->pairs[inner][k];
        double mean;
        if (pair->both == 0 || pair->after < rule_share * pair->both || pair->both < weak_share * of->count)
            continue;
        double deviation = deviation_after(w, inner, (uint8_t)k, &mean);
        if (deviation >= INFINITY ||
            (mean < best_mean ? best < deviation_less * deviation : deviation >= deviation_less * best))
            continue;
        of->follows = (uint8_t)k;
        of->certainty = (float)pair->after / (float)pair->both;
        best = deviation;
        best_mean = mean;
    }
}

static double mean_offset(const whole_spans *w, guint kind)
{
    return w->all[kind].offset / MAX(w->all[kind].count, 1);
}

/* Finds the parents of the kinds in the order in which their spans begin. */
static void find_parents_of_kinds(whole_spans *w)
{
    bool done[WHOLE_KINDS_MAX] = {false};
    for (guint n = 0; n < w->kinds.count; n++) {
        guint next = 0;
        for (guint k = 1; k < w->kinds.count; k++)
            if (!done[k] && (done[next] || mean_offset(w, k) < mean_offset(w, next)))
                next = k;
        uint8_t kind = (uint8_t)next;
        done[kind] = true;
        if (!w->all[kind].is_span)
            continue;
        if (!mark_containers(w, kind, rule_share, false) && !mark_containers(w, kind, weak_share, false))
            w->is_async[kind] = mark_containers(w, kind, rule_share, true);
        reject_siblings(w, kind);
        set_parents(w, kind);
        bool has_parent = false;
        for (guint k = 0; k < w->kinds.count && !has_parent; k++)
            has_parent = w->parents[kind][k];
        if (!has_parent)
            find_former(w, kind);
    }
}

void whole_spans_settle(whole_spans *w)
{
    memset(w->pairs, 0, sizeof w->pairs);
    memset(w->parents, 0, sizeof w->parents);
    memset(w->is_async, 0, sizeof w->is_async);
    for (guint k = 0; k < w->kinds.count; k++)
        w->all[k].follows = NO_KIND;
    for (guint i = 0; i < w->items->len; i++)
        item_at(w, i)->parent = NO_ITEM;
    for (guint r = 0; r < w->firsts->len; r++) {
        uint32_t first = g_array_index(w->firsts, uint32_t, r), end = end_of_request(w, r);
        for (uint32_t i = first; i < end; i++)
            if (item_at(w, i)->is_span)
                count_relations(w, i, first, end);
    }
    find_parents_of_kinds(w);
}

int64_t whole_spans_rounding(const whole_spans *w, const request_event *a, const request_event *b)
{
    return sum_of_roundings(w, request_event_rounding(a), request_event_rounding(b));
}

bool whole_spans_can_contain(const whole_spans *w, const request_event *outer)
{
    uint8_t kind = find_kind(w, outer);
    for (guint inner = 0; inner < w->kinds.count && kind != NO_KIND; inner++)
        if (w->parents[inner][kind])
            return true;
    return false;
}

bool whole_spans_are_nested(const whole_spans *w, const request_event *outer, const request_event *inner)
{
    uint8_t a = find_kind(w, outer), b = find_kind(w, inner);
    if (a == NO_KIND || b == NO_KIND || !w->parents[b][a])
        return false;
    int64_t rounding_ns = whole_spans_rounding(w, outer, inner),
            inner_ns = w->is_async[b] ? request_event_begin(inner) : inner->time_ns;
    return request_event_begin(outer) <= request_event_begin(inner) + rounding_ns &&
           outer->time_ns + rounding_ns >= inner_ns;
}

double whole_spans_follow(const whole_spans *w, const request_event *cause, const request_event *effect)
{
    uint8_t a = find_kind(w, cause), b = find_kind(w, effect);
    return a != NO_KIND && b != NO_KIND && w->all[b].follows == a ? (double)w->all[b].certainty : 0;
}
