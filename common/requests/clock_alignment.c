#include "config.h"

#include "requests/clock_alignment.h"

#include <glib.h>
#include <stdlib.h>

enum {
    HOST_HOPS_MAX = 32,
    DRIFT_SHARE = 5000, /* a clock may drift by 1/5000 (200 ppm) */
    TIGHT_PART = 20,    /* children fill a parent if they cover all but 1/TIGHT_PART of its duration */
};

#define SHIFT_MAX_NS (REQUEST_TIME_MAX / 4)
#define IMPRECISE_NS (REQUEST_TIME_MAX / 2)

/* A span with a parent, and its sort key. */
typedef struct tree_item {
    uint64_t parent; /* depth of the span << 32 | index of its parent, so that parents come first */
    uint32_t host;
    uint32_t index;
    int64_t begin_ns;
} tree_item;

struct clock_alignment {
    request_graph *graph; /* the latest request */
    const clock_bounds *clocks;
    const awaited_spans *awaited;
    bool has_shifts;
    GHashTable *host_shifts; /* maps a host to its host_shift */
    GHashTable *evidence;    /* maps a host to its clock_evidence */
    int64_t error_ns; /* maximum time by which a child of the request begins before its parent on another host, if the
                         bound of their clocks is unknown */
    GArray *items;    /* tree_item */
};

#define ITEM(a, i) (&g_array_index((a)->items, tree_item, (i)))
#define SPAN(a, i) (&(a)->graph->spans[i])

clock_alignment *clock_alignment_new(void)
{
    clock_alignment *a = g_new0(clock_alignment, 1);
    a->items = g_array_new(FALSE, FALSE, sizeof(tree_item));
    a->host_shifts = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    a->evidence = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return a;
}

void clock_alignment_free(clock_alignment *a)
{
    if (a == NULL)
        return;
    g_array_free(a->items, TRUE);
    g_hash_table_destroy(a->host_shifts);
    g_hash_table_destroy(a->evidence);
    g_free(a);
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_tree(const void *a, const void *b)
{
    const tree_item *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return x->begin_ns != y->begin_ns ? compare_numbers(x->begin_ns, y->begin_ns) : compare_numbers(x->index, y->index);
}

/* The children of one span on one host: the items [from, to). */
typedef struct host_group {
    guint from, to;
    const request_span *parent;
    uint32_t host;
    int64_t begin_ns, end_ns;
    bool is_whole; /* all spans of the group have a start record and an end record */
} host_group;

/* Finds the group that begins with the item `from`. The items are sorted by parent and host. */
static host_group find_group(clock_alignment *a, guint from)
{
    const tree_item *first = ITEM(a, from);
    const request_span *s = SPAN(a, first->index);
    host_group group = {from, from, SPAN(a, s->parent), s->host, s->begin_ns, s->end_ns, true};
    for (; group.to < a->items->len; group.to++) {
        const tree_item *item = ITEM(a, group.to);
        if (item->parent != first->parent || item->host != first->host)
            break;
        s = SPAN(a, item->index);
        group.begin_ns = MIN(group.begin_ns, s->begin_ns);
        group.end_ns = MAX(group.end_ns, s->end_ns);
        group.is_whole = group.is_whole && !s->incomplete && s->end != REQUEST_NONE;
    }
    return group;
}

/*
 * Returns the parent's duration minus the time from the start of the first child to the end of the last child, in
 * nanoseconds.
 */
static int64_t margin_of(const host_group *group)
{
    return (group->parent->end_ns - group->parent->begin_ns) - (group->end_ns - group->begin_ns);
}

/*
 * Returns whether the group is on another host than its parent, all records exist, and the parent lasts long enough to
 * contain the children. Because clocks drift, the parent may seem to be a little shorter than the children.
 */
static bool fits_parent(const host_group *group)
{
    const request_span *parent = group->parent;
    return group->host != parent->host && group->is_whole && parent->end != REQUEST_NONE && !parent->incomplete &&
           margin_of(group) >= -(parent->end_ns - parent->begin_ns) / DRIFT_SHARE;
}

static void shift_group(clock_alignment *a, host_group *group, int64_t shift_ns)
{
    if (llabs(shift_ns) > SHIFT_MAX_NS || llabs(group->begin_ns) > REQUEST_TIME_MAX ||
        llabs(group->end_ns) > REQUEST_TIME_MAX)
        return;
    for (guint i = group->from; i < group->to; i++) {
        uint32_t index = ITEM(a, i)->index;
        request_span *s = SPAN(a, index);
        s->shift_ns += shift_ns;
        s->begin_ns += shift_ns;
        s->end_ns += shift_ns;
    }
    group->begin_ns += shift_ns;
    group->end_ns += shift_ns;
}

typedef struct host_shift {
    int64_t shift_ns, error_ns;
} host_shift;

int64_t clock_alignment_shift(const clock_alignment *a, uint32_t host)
{
    const host_shift *known = a->has_shifts ? g_hash_table_lookup(a->host_shifts, GUINT_TO_POINTER(host)) : NULL;
    return known != NULL ? known->shift_ns : 0;
}

static int64_t error_of_shift(const clock_alignment *a, uint32_t host)
{
    const host_shift *known = g_hash_table_lookup(a->host_shifts, GUINT_TO_POINTER(host));
    return known != NULL ? known->error_ns : 0;
}

static void set_host_shift(clock_alignment *a, uint32_t host, int64_t shift_ns, int64_t error_ns)
{
    const host_shift found = {shift_ns, error_ns};
    a->has_shifts = a->has_shifts || shift_ns != 0;
    g_hash_table_insert(a->host_shifts, GUINT_TO_POINTER(host), g_memdup2(&found, sizeof found));
}

/* Evidence about the clock of a host, from the groups on the host and the groups that the host calls. */
typedef struct clock_evidence {
    uint32_t impossible, correct; /* numbers of groups that begin before their parent, and of groups within it */
} clock_evidence;

static void add_evidence(clock_alignment *a, uint32_t host, int64_t early_ns)
{
    clock_evidence *e = g_hash_table_lookup(a->evidence, GUINT_TO_POINTER(host));
    if (e == NULL) {
        e = g_new0(clock_evidence, 1);
        g_hash_table_insert(a->evidence, GUINT_TO_POINTER(host), e);
    }
    e->impossible += early_ns > 0;
    e->correct += early_ns <= 0;
}

/* Collects the evidence from the groups for which the bound between their clock and their parent's clock is unknown. */
static void find_evidence(clock_alignment *a)
{
    g_hash_table_remove_all(a->evidence);
    a->error_ns = 0;
    for (guint i = 0; i < a->items->len;) {
        host_group group = find_group(a, i);
        const request_span *parent = group.parent;
        i = group.to;
        if (group.host == parent->host ||
            clock_bounds_between(a->clocks, group.host, parent->host) != CLOCK_BOUND_UNKNOWN ||
            (parent->begin == REQUEST_NONE && parent->incomplete))
            continue;
        int64_t early_ns = parent->begin_ns - group.begin_ns;
        if (early_ns <= 0 && (group.end_ns > parent->end_ns || parent->end == REQUEST_NONE || !group.is_whole))
            continue;
        a->error_ns = MAX(a->error_ns, early_ns);
        add_evidence(a, parent->host, early_ns);
        add_evidence(a, group.host, early_ns);
    }
}

/*
 * Returns whether the calls between a host and other hosts are evidence that its clock is right: at least half of the
 * groups lie within their parents.
 */
static bool is_trusted(const clock_alignment *a, uint32_t host)
{
    const clock_evidence *e = g_hash_table_lookup(a->evidence, GUINT_TO_POINTER(host));
    return e != NULL && e->correct > 0 && e->correct >= e->impossible;
}

/*
 * Returns whether wrong clocks can explain that time_ns, a time of the group, is later than the end of the parent. This
 * requires that neither clock is trusted, and that the difference is less than twice a->error_ns.
 */
static bool is_skewed_by(const clock_alignment *a, const host_group *group, int64_t time_ns)
{
    return !is_trusted(a, group->host) && !is_trusted(a, group->parent->host) &&
           (time_ns - group->parent->end_ns) / 2 < a->error_ns;
}

/* Returns whether the children fill nearly the whole duration of the parent. */
static bool is_tight(const host_group *group)
{
    return margin_of(group) <= (group->parent->end_ns - group->parent->begin_ns) / TIGHT_PART;
}

/* Returns whether the parent waited for all children that end after it (awaited_spans.h), and there are such children.
 */
static bool is_awaited(const clock_alignment *a, const host_group *group)
{
    bool found = false;
    for (guint i = group->from; i < group->to; i++) {
        const request_span *s = SPAN(a, ITEM(a, i)->index);
        const int64_t late_ns = s->end_ns - group->parent->end_ns;
        if (late_ns > 0 && !awaited_spans_include(a->awaited, group->parent, s, late_ns))
            return false;
        found = found || late_ns > 0;
    }
    return found;
}

/*
 * Returns whether the clocks of a group and its parent differ. In this case, the children seem to begin before the
 * parent, or to end after it. A known bound of the clocks must permit the difference.
 *
 * If the children begin within the parent and end after it, the parent may not have waited for them. Therefore, the
 * function then requires one of the following facts:
 * - Other requests show that the parent waited (awaited_spans.h).
 * - The parent has no other children, and the bound is known or wrong clocks can explain the times (is_skewed_by).
 * - The bound is unknown, and the children fill the parent. If the parent had not waited, the durations would rarely be
 *   so similar.
 *
 * Returns false if the children begin after the parent has ended (see is_skewed_late).
 */
static bool is_skewed(const clock_alignment *a, const host_group *group)
{
    const request_span *parent = group->parent;
    int64_t margin_ns = margin_of(group), bound_ns = clock_bounds_between(a->clocks, group->host, parent->host);
    if (bound_ns == 0 || !fits_parent(group) ||
        (group->begin_ns >= parent->begin_ns && group->end_ns <= parent->end_ns))
        return false;
    if (group->begin_ns > parent->end_ns)
        return false;
    const bool is_only = parent->child_count == group->to - group->from, is_unknown = bound_ns == CLOCK_BOUND_UNKNOWN;
    if (group->begin_ns >= parent->begin_ns && !is_awaited(a, group) &&
        !(is_only && (!is_unknown || is_skewed_by(a, group, group->end_ns))) && !(is_unknown && is_tight(group)))
        return false;
    return bound_ns == CLOCK_BOUND_UNKNOWN ||
           llabs(parent->begin_ns + margin_ns / 2 - group->begin_ns) <= bound_ns + llabs(margin_ns) / 2;
}

/*
 * Returns whether children that begin after their parent's end are evidence of a wrong clock. Usually, such children
 * are asynchronous, like the consumer of a message queue.
 */
static bool is_skewed_late(const clock_alignment *a, const host_group *group)
{
    return clock_bounds_between(a->clocks, group->host, group->parent->host) == CLOCK_BOUND_UNKNOWN &&
           (is_skewed_by(a, group, group->begin_ns) || is_awaited(a, group));
}

/*
 * Returns the time in nanoseconds to add to the times of children that lie partly outside their parent. If the parent
 * waited for children that end after it, and also did other work, the children end with the parent after the shift.
 * Otherwise, they are in the middle of the parent.
 */
static int64_t shift_into_parent(const clock_alignment *a, const host_group *group)
{
    const request_span *parent = group->parent;
    if (group->begin_ns >= parent->begin_ns && !is_tight(group) && is_awaited(a, group))
        return parent->end_ns - group->end_ns;
    return parent->begin_ns + margin_of(group) / 2 - group->begin_ns;
}

/* Evidence about the clocks of two hosts from a parent and its children. */
typedef struct host_pair {
    uint32_t host, other;
    bool is_late;      /* the children begin after the end of the parent */
    int64_t shift_ns;  /* shift of `other` minus the shift of `host` */
    int64_t margin_ns; /* twice the maximum error of the shift */
} host_pair;

static int by_hosts(const void *a, const void *b)
{
    const host_pair *x = a, *y = b;
    if (x->host != y->host)
        return compare_numbers(x->host, y->host);
    if (x->other != y->other)
        return compare_numbers(x->other, y->other);
    return x->is_late != y->is_late ? x->is_late - y->is_late : compare_numbers(x->margin_ns, y->margin_ns);
}

/*
 * Finds the shift that moves the children into their parent, and the precision of this shift, both in nanoseconds. If
 * records are missing, only children that end before their parent, begin after its end, or begin before a parent
 * without an end prove a difference between the clocks. Returns false if the group gives no shift.
 */
static bool find_group_shift(const clock_alignment *a, const host_group *group, int64_t *shift_ns, int64_t *margin_ns)
{
    const request_span *parent = group->parent;
    bool has_begin = parent->begin != REQUEST_NONE || !parent->incomplete, has_end = parent->end != REQUEST_NONE,
         within = group->begin_ns >= parent->begin_ns && group->end_ns <= parent->end_ns;
    *shift_ns = within ? 0 : shift_into_parent(a, group);
    *margin_ns = llabs(margin_of(group));
    bool is_late = has_end && group->begin_ns > parent->end_ns;
    if (is_late && !is_skewed_late(a, group))
        return false;
    if (group->is_whole && has_begin && has_end)
        return within || is_skewed(a, group) || (is_late && fits_parent(group));
    if (clock_bounds_between(a->clocks, group->host, parent->host) != CLOCK_BOUND_UNKNOWN)
        return false;
    *margin_ns = IMPRECISE_NS + *margin_ns / 2;
    if (has_begin && has_end)
        return within || is_late || group->end_ns < parent->begin_ns;
    bool early = has_begin && group->begin_ns < parent->begin_ns;
    *shift_ns = early ? parent->begin_ns - group->begin_ns : parent->end_ns - group->end_ns;
    return early || is_late;
}

/*
 * Returns the best host_pair in each direction for every two hosts that call each other. A pair that is not late is
 * better than any late pair. Otherwise, the pair with the smaller margin is better. The caller frees the array.
 */
static GArray *find_host_pairs(clock_alignment *a)
{
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(host_pair));
    find_evidence(a);
    for (guint i = 0; i < a->items->len;) {
        host_group group = find_group(a, i);
        uint32_t host = group.parent->host;
        int64_t shift_ns, margin_ns;
        i = group.to;
        if (host == group.host || !find_group_shift(a, &group, &shift_ns, &margin_ns))
            continue;
        bool is_late = group.begin_ns > group.parent->end_ns;
        g_array_append_val(pairs, ((host_pair){host, group.host, is_late, shift_ns, margin_ns}));
        g_array_append_val(pairs, ((host_pair){group.host, host, is_late, -shift_ns, margin_ns}));
    }
    g_array_sort(pairs, by_hosts);
    guint kept = 0;
    for (guint i = 0; i < pairs->len; i++) {
        const host_pair *pair = &g_array_index(pairs, host_pair, i),
                        *last = kept > 0 ? &g_array_index(pairs, host_pair, kept - 1) : NULL;
        if (last == NULL || last->host != pair->host || last->other != pair->other)
            g_array_index(pairs, host_pair, kept++) = *pair;
    }
    g_array_set_size(pairs, kept);
    return pairs;
}

/*
 * Sets the shifts of hosts that have a pair with a host whose shift is known. Uses only pairs with is_late == late.
 * Returns whether any shift was set.
 */
static bool follow_pairs(clock_alignment *a, const GArray *pairs, bool late)
{
    bool found = false;
    for (guint i = 0; i < pairs->len; i++) {
        const host_pair *pair = &g_array_index(pairs, host_pair, i);
        const host_shift *known = g_hash_table_lookup(a->host_shifts, GUINT_TO_POINTER(pair->host));
        if (pair->is_late != late || known == NULL ||
            g_hash_table_contains(a->host_shifts, GUINT_TO_POINTER(pair->other)))
            continue;
        set_host_shift(a, pair->other, known->shift_ns + pair->shift_ns,
                       MIN(IMPRECISE_NS, known->error_ns + MIN(pair->margin_ns, IMPRECISE_NS)));
        found = true;
    }
    return found;
}

/*
 * Finds the shifts of hosts relative to a reference host, in up to HOST_HOPS_MAX passes over the pairs. Uses late pairs
 * only in passes in which no other pair gives a shift.
 */
static void find_host_shifts(clock_alignment *a, uint32_t reference)
{
    GArray *pairs = find_host_pairs(a);
    g_hash_table_remove_all(a->host_shifts);
    set_host_shift(a, reference, 0, 0);
    for (int hops = 0; hops < HOST_HOPS_MAX; hops++)
        if (!follow_pairs(a, pairs, false) && !follow_pairs(a, pairs, true))
            break;
    g_array_free(pairs, TRUE);
}

/*
 * Shifts the spans of a group by their host's shift. If the group is still skewed, moves the spans into the parent, and
 * stores the new shift of the host.
 */
static void align_group(clock_alignment *a, host_group *group)
{
    uint32_t parent = SPAN(a, ITEM(a, group->from)->index)->parent;
    int64_t shift_ns =
        group->host == group->parent->host ? SPAN(a, parent)->shift_ns : clock_alignment_shift(a, group->host);
    shift_group(a, group, shift_ns);
    int64_t late_ns = group->begin_ns - group->parent->end_ns;
    bool is_late =
        late_ns > 0 && fits_parent(group) && is_skewed_late(a, group) &&
        (is_awaited(a, group) || late_ns - error_of_shift(a, group->parent->host) <= error_of_shift(a, group->host));
    if (!is_late && !is_skewed(a, group))
        return;
    int64_t more_ns = shift_into_parent(a, group);
    shift_group(a, group, more_ns);
    set_host_shift(a, group->host, shift_ns + more_ns, margin_of(group) < 0 ? 0 : margin_of(group));
}

/* Sorts the spans with parents by depth, parent and host. Returns the index of the root of the largest tree. */
static uint32_t find_largest_tree(clock_alignment *a)
{
    uint32_t best = 0, *counts = g_new0(uint32_t, a->graph->span_count), *roots = g_new(uint32_t, a->graph->span_count);
    g_array_set_size(a->items, 0);
    for (guint i = 0; i < a->graph->span_count; i++) {
        const request_span *s = SPAN(a, i);
        uint64_t parent = (uint64_t)s->depth << 32 | s->parent;
        roots[i] = i;
        if (s->parent != REQUEST_NONE)
            g_array_append_val(a->items, ((tree_item){parent, s->host, i, s->begin_ns}));
    }
    g_array_sort(a->items, by_tree);
    for (guint i = 0; i < a->items->len; i++) {
        uint32_t index = ITEM(a, i)->index, root = roots[SPAN(a, index)->parent];
        roots[index] = root;
        best = ++counts[root] > counts[best] ? root : best;
    }
    g_free(counts);
    g_free(roots);
    return best;
}

/* Shifts a root whose parent is missing, if its host has a shift. */
static void align_root(clock_alignment *a, uint32_t index)
{
    request_span *s = SPAN(a, index);
    int64_t shift_ns = clock_alignment_shift(a, s->host);
    if (shift_ns == 0 || !s->names_parent || llabs(s->begin_ns) > REQUEST_TIME_MAX / 2 ||
        llabs(s->end_ns) > REQUEST_TIME_MAX / 2)
        return;
    s->shift_ns = shift_ns;
    s->begin_ns += shift_ns;
    s->end_ns += shift_ns;
}

bool clock_alignment_has_shifts(const clock_alignment *a)
{
    return a->has_shifts;
}

void clock_alignment_shift_spans(clock_alignment *a, request_graph *g, const clock_bounds *clocks,
                                 const awaited_spans *awaited)
{
    bool found = false;
    a->graph = g;
    a->clocks = clocks;
    a->awaited = awaited;
    a->has_shifts = false;
    for (guint i = 0; i < a->graph->span_count && !found; i++) {
        const request_span *s = SPAN(a, i), *parent = s->parent != REQUEST_NONE ? SPAN(a, s->parent) : s;
        found = s->host != parent->host && (s->begin_ns < parent->begin_ns || s->end_ns > parent->end_ns);
    }
    if (!found)
        return;
    g_hash_table_remove_all(a->host_shifts);
    uint32_t largest = find_largest_tree(a);
    find_host_shifts(a, SPAN(a, largest)->host);
    for (guint i = 0; i < a->graph->span_count; i++)
        if (SPAN(a, i)->parent == REQUEST_NONE && i != largest)
            align_root(a, i);
    for (guint i = 0; i < a->items->len;) {
        host_group group = find_group(a, i);
        i = group.to;
        align_group(a, &group);
    }
}

/*
 * Returns the maximum error in nanoseconds of a span's start that was computed from a rounded duration. Returns 0 for
 * other spans.
 */
static int64_t rounding_of(const request_graph *g, const request_span *s)
{
    bool computed = s->begin == REQUEST_NONE && s->end != REQUEST_NONE;
    return computed ? request_event_rounding(&g->events[s->end]) : 0;
}

/*
 * Compares the logged times of a span with the logged times of its parent, and counts the contradictions in
 * g->problems. Ignores estimated starts and ends.
 */
static void check_parent(request_graph *g, const clock_bounds *clocks, const awaited_spans *awaited,
                         const request_span *s)
{
    const request_span *parent = &g->spans[s->parent];
    int64_t shift_ns = s->shift_ns - parent->shift_ns, bound_ns = clock_bounds_between(clocks, s->host, parent->host),
            early_ns = parent->begin_ns - s->begin_ns + shift_ns;
    bool estimates = s->incomplete || parent->incomplete;
    if ((parent->begin == REQUEST_NONE || s->begin == REQUEST_NONE) && estimates)
        early_ns = 0;
    if (early_ns > 0)
        early_ns -= rounding_of(g, s) + rounding_of(g, parent);
    g->problems.violations += early_ns > 0 && early_ns > bound_ns;
    g->problems.one_clock += early_ns > 0 && bound_ns == 0;
    g->problems.imprecise += early_ns > 0 && early_ns <= bound_ns && bound_ns != CLOCK_BOUND_UNKNOWN;
    g->problems.unknown_clocks += early_ns > 0 && bound_ns == CLOCK_BOUND_UNKNOWN;
    int64_t late_ns = s->end_ns - parent->end_ns - shift_ns;
    if ((parent->end == REQUEST_NONE || s->end == REQUEST_NONE) && estimates)
        return;
    if (late_ns > 0 && late_ns > (bound_ns == CLOCK_BOUND_UNKNOWN ? 0 : bound_ns) &&
        awaited_spans_include(awaited, parent, s, late_ns)) {
        g->problems.awaited++;
        return;
    }
    g->problems.late += late_ns > 0 && bound_ns == CLOCK_BOUND_UNKNOWN;
    g->problems.async += late_ns > 0 && late_ns > bound_ns;
    if (late_ns > 0 && bound_ns != CLOCK_BOUND_UNKNOWN && late_ns <= bound_ns && early_ns <= 0)
        g->problems.imprecise++;
}

void clock_alignment_check_parents(request_graph *g, const clock_bounds *clocks, const awaited_spans *awaited)
{
    for (size_t i = 0; i < g->span_count; i++)
        if (g->spans[i].parent != REQUEST_NONE && !g->spans[i].inferred_parent)
            check_parent(g, clocks, awaited, &g->spans[i]);
}
