#include "config.h"

#include "stat/tally.h"

#include "base/hash_bytes.h"

#include <glib.h>
#include <string.h>

/*
 * If the tally has ROWS_MAX rows, it adds the times of new groups to the rows of the group TALLY_BY_OTHERS. The tally
 * never has more than 2 * ROWS_MAX rows.
 */
enum { ROWS_MAX = 8192, VALUES_MAX = 1 << 24, EXAMPLE_SPANS_MAX = 10000 };

static guint key_hash(gconstpointer key)
{
    return (guint)hash_bytes(0, key, sizeof(tally_key));
}

static gboolean key_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(tally_key)) == 0;
}

static void free_row(gpointer user)
{
    tally_row *row = user;
    nl_distribution_clear(&row->times);
    g_free(row);
}

static void clear_example(gpointer user)
{
    tally_example *e = user;
    g_free(e->name);
    g_free(e->spans);
    g_free(e->path);
}

tally *tally_new(size_t slowest_max, bool groups)
{
    tally *t = g_new0(tally, 1);
    t->slowest_max = slowest_max;
    t->rows = g_ptr_array_new_with_free_func(free_row);
    t->groups = groups ? g_ptr_array_new_with_free_func(free_row) : NULL;
    t->slowest = g_array_new(FALSE, TRUE, sizeof(tally_example));
    g_array_set_clear_func(t->slowest, clear_example);
    t->transfers = transfers_new();
    t->by_key = g_hash_table_new(key_hash, key_equal);
    t->events = g_array_new(FALSE, TRUE, sizeof(tally_event));
    t->value_count_max = VALUES_MAX;
    return t;
}

void tally_free(tally *t)
{
    if (t == NULL)
        return;
    nl_distribution_clear(&t->totals);
    series_clear(&t->totals_series);
    g_ptr_array_free(t->rows, TRUE);
    if (t->groups != NULL)
        g_ptr_array_free(t->groups, TRUE);
    g_array_free(t->slowest, TRUE);
    transfers_free(t->transfers);
    g_hash_table_destroy(t->by_key);
    g_array_free(t->events, TRUE);
    g_free(t);
}

/* ---- rows ---- */

static uint64_t compact(nl_distribution *d)
{
    if (d->count * sizeof(int64_t) >= NL_DISTRIBUTION_COMPACT_SIZE)
        nl_distribution_compact(d);
    return nl_distribution_is_exact(d) ? d->count : 0;
}

static void add_time(tally *t, nl_distribution *d, int64_t time_ns)
{
    nl_distribution_add(d, time_ns);
    if (++t->value_count < t->value_count_max)
        return;
    t->value_count = compact(&t->totals);
    for (guint i = 0; i < t->rows->len; i++)
        t->value_count += compact(&((tally_row *)g_ptr_array_index(t->rows, i))->times);
    for (guint i = 0; t->groups != NULL && i < t->groups->len; i++)
        t->value_count += compact(&((tally_row *)g_ptr_array_index(t->groups, i))->times);
    t->value_count_max = t->value_count + VALUES_MAX;
}

static tally_row *tally_find(const tally *t, const tally_key *key)
{
    return g_hash_table_lookup(t->by_key, key);
}

/* Returns the entry for a key in the cache of rows, which saves much time, because most steps belong to a few rows. */
static tally_row **cached_row(tally *t, const tally_key *key)
{
    uint32_t mixed = key->kind + 3 * key->span + 7 * key->from + 31 * key->to + 127 * key->by + 17 * key->program;
    return &t->cache[mixed % TALLY_CACHE_SIZE];
}

/* Returns the row of a key. Adds the row if it does not exist. Returns NULL if there are too many rows. */
static tally_row *row_of(tally *t, tally_key key)
{
    tally_row **cached = cached_row(t, &key), *row = *cached;
    if (row != NULL && key_equal(&row->key, &key))
        return row;
    row = tally_find(t, &key);
    if (row != NULL)
        return *cached = row;
    if (t->rows->len >= ROWS_MAX && key.by != TALLY_BY_OTHERS) {
        key.by = TALLY_BY_OTHERS;
        return row_of(t, key);
    }
    if (t->rows->len >= 2 * ROWS_MAX) {
        t->left_out++;
        return NULL;
    }
    row = g_new0(tally_row, 1);
    row->key = key;
    g_ptr_array_add(t->rows, row);
    g_hash_table_insert(t->by_key, &row->key, row);
    return row;
}

/* Adds a request to the row of its group. */
static void add_to_group(tally *t, const request_graph *g, uint32_t by)
{
    tally_key key = {TALLY_GROUP, REQUEST_NONE, REQUEST_NONE, REQUEST_NONE, REQUEST_NONE, 0, by};
    tally_row *row = tally_find(t, &key);
    if (row == NULL && t->groups->len >= ROWS_MAX && by != TALLY_BY_OTHERS) {
        add_to_group(t, g, TALLY_BY_OTHERS);
        return;
    }
    if (row == NULL) {
        row = g_new0(tally_row, 1);
        row->key = key;
        g_ptr_array_add(t->groups, row);
        g_hash_table_insert(t->by_key, &row->key, row);
    }
    row->path_ns += (double)(g->to_ns - g->from_ns);
    row->failed += g->failed;
    add_time(t, &row->times, g->to_ns - g->from_ns);
}

static tally_key span_key(const request_span *s, uint32_t by)
{
    return (tally_key){TALLY_SPAN, s->name, s->program, REQUEST_NONE, REQUEST_NONE, 0, by};
}

static uint32_t event_name(const request_graph *g, uint32_t event)
{
    return event == REQUEST_NONE ? REQUEST_NONE : g->events[event].name;
}

/* Returns the key of the row to which a step of the critical path belongs. */
static tally_key step_key(const request_graph *g, const request_step *step, uint32_t by)
{
    if (step->kind == REQUEST_SELF)
        return span_key(&g->spans[step->span], by);
    return (tally_key){
        TALLY_EDGE, REQUEST_NONE, REQUEST_NONE, event_name(g, step->from), event_name(g, step->to), step->inferred, by};
}

static void add_to_row(tally *t, tally_key key, double path_ns, double certainty, bool is_span)
{
    tally_row *row = row_of(t, key);
    if (row == NULL)
        return;
    row->path_count++;
    row->path_ns += path_ns;
    row->certainty += certainty;
    if (!is_span)
        add_time(t, &row->times, (int64_t)path_ns);
}

/*
 * Adds the steps of a request's critical path to their rows. If a step inside a span begins or ends at an event other
 * than the span's start and end, the step also counts as a part of the span.
 */
static void add_steps(tally *t, const request_graph *g, uint32_t by)
{
    for (size_t i = 0; i < g->path_count; i++) {
        const request_step *step = &g->path[i];
        double time_ns = (double)(step->to_ns - step->from_ns);
        tally_key key = step_key(g, step, by);
        add_to_row(t, key, time_ns, step->certainty, step->kind == REQUEST_SELF);
        if (step->kind != REQUEST_SELF || step->from == REQUEST_NONE || step->to == REQUEST_NONE)
            continue;
        const request_event *from = &g->events[step->from], *to = &g->events[step->to];
        if (from->role == REQUEST_POINT || to->role == REQUEST_POINT) {
            key.kind = TALLY_PART;
            key.from = from->name;
            key.to = to->name;
            add_to_row(t, key, time_ns, 1, false);
        }
    }
}

static void count_zone(tally *t, const request_graph *g, const request_span *s)
{
    size_t i = 0;
    uint32_t event = g->events[s->begin].name;
    while (i < t->zone_count &&
           (t->zones[i].event != event || t->zones[i].host != s->host || t->zones[i].zone_ns != s->zone_ns))
        i++;
    if (i == TALLY_ZONES_MAX)
        return;
    if (i == t->zone_count)
        t->zones[t->zone_count++] = (tally_zone){event, s->host, s->zone_ns, 0};
    t->zones[i].count++;
}

static void add_spans(tally *t, const request_graph *g, uint32_t by)
{
    for (size_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i];
        tally_row *row = row_of(t, span_key(s, by));
        if (row == NULL)
            continue;
        if (s->zone_ns != 0)
            count_zone(t, g, s);
        row->self_ns += (double)s->self_ns;
        row->failed += s->failed;
        if (s->end != REQUEST_NONE)
            add_time(t, &row->times, MAX(s->end_ns - s->begin_ns, 0));
    }
}

/* ---- transfers ---- */

void tally_pack(const request_reader *reader, nl_buffer *buffer)
{
    enum { NAME_SIZE_MAX = 200 };
    double bytes;
    nl_string what;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (!request_reader_find_bytes(reader, &bytes, &what, scratch))
        return;
    nl_buffer_append(buffer, &bytes, sizeof bytes);
    nl_buffer_append(buffer, what.data, MIN(what.size, NAME_SIZE_MAX));
}

static void add_transfers(tally *t, const request_reader *reader, const request_graph *graph)
{
    for (size_t i = 0; i < graph->span_count; i++) {
        const request_span *s = &graph->spans[i];
        const request_event *e = s->end != REQUEST_NONE ? &graph->events[s->end] : NULL;
        double bytes;
        if (e == NULL || e->payload_size < sizeof bytes || s->parent != REQUEST_NONE)
            continue;
        memcpy(&bytes, graph->payloads + e->payload, sizeof bytes);
        char *what = g_strndup(graph->payloads + e->payload + sizeof bytes, e->payload_size - sizeof bytes);
        transfers_add(t->transfers, s->begin_ns, MAX(s->end_ns, s->begin_ns), bytes,
                      request_reader_host(reader, s->host), what);
        g_free(what);
    }
}

/* ---- examples ---- */

/* Returns whether b is slower than a. If both have the same duration, the earlier request counts as slower. */
static bool is_slower(const tally_example *a, const tally_example *b)
{
    return a->total_ns != b->total_ns ? a->total_ns < b->total_ns : a->from_ns > b->from_ns;
}

static gint slower_first(gconstpointer a, gconstpointer b)
{
    return is_slower(a, b) ? 1 : is_slower(b, a) ? -1 : 0;
}

static gint by_begin(gconstpointer a, gconstpointer b, gpointer user)
{
    const request_span *spans = user, *x = &spans[*(const uint32_t *)a], *y = &spans[*(const uint32_t *)b];
    /* roots come last, because REQUEST_NONE is the largest number; copy_tree therefore takes roots from the stack
     * first */
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return x->begin_ns != y->begin_ns ? (x->begin_ns < y->begin_ns ? -1 : 1) : (x > y) - (x < y);
}

/* Returns a copy of at most EXAMPLE_SPANS_MAX spans of a request, in the order of the tree, and sets *count. The
 * parents are indices in the copy. */
static request_span *copy_tree(const request_graph *g, size_t *count)
{
    uint32_t *order = g_new(uint32_t, g->span_count + 1), *first = g_new(uint32_t, g->span_count + 1);
    uint32_t *stack = g_new(uint32_t, g->span_count + 1), *place = g_new(uint32_t, g->span_count + 1);
    size_t depth = 0;
    for (uint32_t i = 0; i < g->span_count; i++) {
        order[i] = i;
        first[i] = REQUEST_NONE;
    }
    g_qsort_with_data(order, (gint)g->span_count, sizeof *order, by_begin, g->spans);
    for (uint32_t i = (uint32_t)g->span_count; i-- > 0;) {
        uint32_t parent = g->spans[order[i]].parent;
        if (parent == REQUEST_NONE)
            stack[depth++] = i;
        else
            first[parent] = i;
    }
    request_span *tree = g_new(request_span, MIN(g->span_count, EXAMPLE_SPANS_MAX) + 1);
    for (*count = 0; depth > 0 && *count < EXAMPLE_SPANS_MAX; ++*count) {
        uint32_t at = stack[--depth], span = order[at], parent = g->spans[span].parent;
        tree[*count] = g->spans[span];
        tree[*count].parent = parent == REQUEST_NONE ? REQUEST_NONE : place[parent];
        place[span] = (uint32_t)*count;
        if (parent != REQUEST_NONE && at + 1 < g->span_count && g->spans[order[at + 1]].parent == parent)
            stack[depth++] = at + 1; /* visit the next sibling after the children of this span */
        if (first[span] != REQUEST_NONE)
            stack[depth++] = first[span];
    }
    g_free(order);
    g_free(first);
    g_free(stack);
    g_free(place);
    return tree;
}

/* Sets e->longest to the row with the largest share of a request's critical path. */
static void find_longest(const request_graph *g, tally_example *e)
{
    GHashTable *sums = g_hash_table_new_full(key_hash, key_equal, g_free, g_free);
    for (size_t i = 0; i < g->path_count; i++) {
        tally_key key = step_key(g, &g->path[i], e->by);
        double *sum = g_hash_table_lookup(sums, &key);
        if (sum == NULL) {
            sum = g_new0(double, 1);
            g_hash_table_insert(sums, g_memdup2(&key, sizeof key), sum);
        }
        *sum += (double)(g->path[i].to_ns - g->path[i].from_ns);
        if (*sum > e->longest_ns) {
            e->longest_ns = *sum;
            e->longest = key;
        }
    }
    g_hash_table_destroy(sums);
}

/* Copies at most TALLY_PATH_MAX steps of a request's critical path. Joins consecutive steps of the same row. */
static void copy_path(const request_graph *g, tally_example *e)
{
    e->path = g_new(tally_step, MIN(g->path_count, TALLY_PATH_MAX));
    for (size_t i = 0; i < g->path_count; i++) {
        const request_step *step = &g->path[i];
        tally_step own = {step_key(g, step, e->by), step->from_ns, step->to_ns - step->from_ns};
        if (e->path_count > 0 && key_equal(&e->path[e->path_count - 1].key, &own.key))
            e->path[e->path_count - 1].took_ns += own.took_ns;
        else if (e->path_count < TALLY_PATH_MAX)
            e->path[e->path_count++] = own;
        else
            return;
    }
}

/* Restores the heap of the slowest requests below the element at index `at`. The top of the heap is the fastest of
 * these requests. */
static void sift_down(GArray *heap, guint at)
{
    tally_example *e = (tally_example *)(void *)heap->data;
    for (guint child; (child = 2 * at + 1) < heap->len; at = child) {
        if (child + 1 < heap->len && is_slower(&e[child + 1], &e[child]))
            child++;
        if (!is_slower(&e[child], &e[at]))
            return;
        tally_example moved = e[at];
        e[at] = e[child];
        e[child] = moved;
    }
}

static void note_slow(tally *t, const request_graph *g, const char *name, uint32_t by)
{
    GArray *heap = t->slowest;
    tally_example e = {.by = by,
                       .from_ns = g->from_ns,
                       .total_ns = g->to_ns - g->from_ns,
                       .failed = g->failed,
                       .doubts = request_problems_doubts(&g->problems)};
    bool full = heap->len == t->slowest_max;
    if (t->slowest_max == 0 || (full && !is_slower(&g_array_index(heap, tally_example, 0), &e)))
        return;
    e.name = g_strdup(name);
    e.spans = copy_tree(g, &e.span_count);
    find_longest(g, &e);
    copy_path(g, &e);
    if (full) {
        clear_example(&g_array_index(heap, tally_example, 0));
        g_array_index(heap, tally_example, 0) = e;
        sift_down(heap, 0);
        return;
    }
    g_array_append_val(heap, e);
    for (guint i = heap->len / 2 + 1; heap->len == t->slowest_max && i-- > 0;)
        sift_down(heap, i);
}

/* ---- requests ---- */

static void add_problems(request_problems *to, const request_problems *p)
{
    to->no_begin += p->no_begin;
    to->no_end += p->no_end;
    to->no_parent += p->no_parent;
    to->cycles += p->cycles;
    to->violations += p->violations;
    to->imprecise += p->imprecise;
    to->one_clock += p->one_clock;
    to->unknown_clocks += p->unknown_clocks;
    to->async += p->async;
    to->late += p->late;
    to->awaited += p->awaited;
    to->missing += p->missing;
}

static void count_doubts(tally *t, const request_graph *graph)
{
    unsigned doubts = request_problems_doubts(&graph->problems);
    t->doubtful += doubts != 0;
    t->doubtful_ns += doubts != 0 ? (double)(graph->to_ns - graph->from_ns) : 0;
    t->lossy += (doubts & REQUEST_DOUBT_RECORDS) != 0;
    t->skewed += (doubts & REQUEST_DOUBT_CLOCKS) != 0;
    t->contradictory += (doubts & REQUEST_DOUBT_TIMES) != 0;
}

static tally_event *event_of(tally *t, uint32_t name)
{
    if (name >= t->events->len)
        g_array_set_size(t->events, name + 1);
    return &g_array_index(t->events, tally_event, name);
}

static void count_events(tally *t, const request_graph *graph)
{
    const request_event *first = &graph->events[0], *last = &graph->events[graph->event_count - 1];
    const bool whole[2] = {
        first->place == last->place && (first->role == REQUEST_BEGIN || first->role == REQUEST_WHOLE) &&
            graph->problems.no_begin == 0,
        first->place == last->place && (last->role == REQUEST_END || last->role == REQUEST_WHOLE) &&
            graph->problems.no_end == 0,
    };
    for (size_t i = 0; i < graph->event_count; i++) {
        tally_event *e = event_of(t, graph->events[i].name);
        for (int end = 0; end < 2 && e->latest != t->requests; end++)
            e->requests[end] += !whole[end];
        e->latest = t->requests;
    }
    event_of(t, first->name)->ends[0]++;
    event_of(t, last->name)->ends[1]++;
    t->whole[0] += whole[0];
    t->whole[1] += whole[1];
}

uint64_t tally_count_without(const tally *t, bool last, uint32_t *name)
{
    uint64_t maximum = 0, with = 0;
    for (guint i = 0; i < t->events->len; i++) {
        const tally_event *e = &g_array_index(t->events, tally_event, i);
        if (e->ends[last] <= maximum)
            continue;
        maximum = e->ends[last];
        with = e->requests[last];
        *name = i;
    }
    return t->requests - t->whole[last] - with;
}

void tally_add(tally *t, const request_reader *reader, const request_graph *graph, const char *name, uint32_t by,
               bool cut)
{
    int64_t total_ns = graph->to_ns - graph->from_ns;
    t->requests++;
    t->failed += graph->failed;
    t->cut += cut;
    count_events(t, graph);
    count_doubts(t, graph);
    add_problems(&t->problems, &graph->problems);
    add_time(t, &t->totals, total_ns);
    series_add(&t->totals_series, graph->to_ns, (double)total_ns);
    add_steps(t, graph, by);
    add_spans(t, graph, by);
    add_transfers(t, reader, graph);
    if (t->groups != NULL)
        add_to_group(t, graph, by);
    note_slow(t, graph, name, by);
}

/* Returns the row of the span to which the row of a part belongs, or NULL. */
static const tally_row *tally_find_span(const tally *t, const tally_key *part)
{
    const tally_key key = {TALLY_SPAN, part->span, part->program, REQUEST_NONE, REQUEST_NONE, 0, part->by};
    return tally_find(t, &key);
}

/* Orders spans and edges by their shares, and the parts of a span after the span. */
static gint by_share(gconstpointer a, gconstpointer b, gpointer user)
{
    const tally_row *x = *(tally_row *const *)a, *y = *(tally_row *const *)b, *own_x = x, *own_y = y;
    const tally *t = user;
    if (x->key.kind == TALLY_PART)
        own_x = tally_find_span(t, &x->key);
    if (y->key.kind == TALLY_PART)
        own_y = tally_find_span(t, &y->key);
    if (own_x != own_y && own_x != NULL && own_y != NULL)
        return own_x->path_ns != own_y->path_ns ? (own_x->path_ns > own_y->path_ns ? -1 : 1)
                                                : memcmp(&own_x->key, &own_y->key, sizeof own_x->key);
    if ((x->key.kind == TALLY_PART) != (y->key.kind == TALLY_PART))
        return x->key.kind == TALLY_PART ? 1 : -1;
    return x->path_ns != y->path_ns ? (x->path_ns > y->path_ns ? -1 : 1) : memcmp(&x->key, &y->key, sizeof x->key);
}

void tally_finish(tally *t)
{
    g_ptr_array_sort_with_data(t->rows, by_share, t);
    if (t->groups != NULL)
        g_ptr_array_sort_with_data(t->groups, by_share, t);
    g_array_sort(t->slowest, slower_first);
}
