#include "config.h"

#include "stat/measure.h"

#include "requests/hash64.h"

#include <string.h>

/* Beyond ROWS_MAX rows, new groups share rows; beyond twice as many, new rows are left out. */
enum {
    STACK_MAX = 1 << 16,
    ROWS_MAX = 8192,
    VALUES_MAX = 1 << 24,
    EXAMPLE_NAME_MAX = 1000 /* bytes */,
    PLACE_NONE = UINT16_MAX
};

#define KEY_BIT (UINT64_C(1) << 63) /* no key is 0 */

typedef struct open_pair {
    pair *pair;
    int64_t start_ns, within_ns;
} open_pair;

/* ---- memory ---- */

/* Compacts a distribution if that saves memory. Returns how many values it still keeps. */
static uint64_t compact(nl_distribution *d)
{
    if (d->count * sizeof(int64_t) >= NL_DISTRIBUTION_COMPACT_SIZE)
        nl_distribution_compact(d);
    return nl_distribution_is_exact(d) ? d->count : 0;
}

static void add_time(measure *m, nl_distribution *d, int64_t time_ns)
{
    nl_distribution_add(d, time_ns);
    if (++m->value_count < m->value_count_max)
        return;
    m->value_count = compact(&m->totals);
    for (guint i = 0; i < m->segments->len; i++)
        m->value_count += compact(&((segment *)g_ptr_array_index(m->segments, i))->times);
    for (guint i = 0; i < m->pairs->len; i++) {
        pair *p = g_ptr_array_index(m->pairs, i);
        m->value_count += compact(&p->inclusive) + compact(&p->exclusive);
    }
    m->value_count_max = m->value_count + VALUES_MAX;
}

/* Finds the row of a key, whose lowest 16 bits are the group. Returns NULL if none exists; then *key is that of the
 * row to make, or 0 if there are too many rows. */
static gpointer find_row(measure *m, GHashTable *rows, guint64 *key)
{
    gpointer found = g_hash_table_lookup(rows, key);
    if (found != NULL || g_hash_table_size(rows) < ROWS_MAX)
        return found;
    *key |= GATHER_BY_OTHERS;
    found = g_hash_table_lookup(rows, key);
    if (found == NULL && g_hash_table_size(rows) >= 2 * ROWS_MAX) {
        m->left_out++;
        *key = 0;
    }
    return found;
}

/* ---- segments ---- */

static segment *find_segment(measure *m, uint16_t from, uint16_t to, uint16_t by)
{
    guint64 key = KEY_BIT | (guint64)from << 32 | (guint64)to << 16 | by;
    segment *s = find_row(m, m->segment_rows, &key);
    if (s == NULL && key != 0) {
        s = g_new0(segment, 1);
        *s = (segment){.key = key, .from = from, .to = to, .by = (uint16_t)key};
        g_hash_table_insert(m->segment_rows, &s->key, s);
        g_ptr_array_add(m->segments, s);
    }
    return s;
}

static void add_segment(measure *m, const gather_request *r, size_t i, size_t to, example *shown)
{
    const gather_step *steps = r->steps;
    int64_t time_ns = steps[to].time_ns - steps[i].time_ns;
    segment *s = find_segment(m, steps[i].event, steps[to].event, r->by);
    if (s != NULL)
        add_time(m, &s->times, time_ns);
    if (time_ns >= shown->longest_ns) {
        shown->longest_ns = time_ns;
        shown->first = steps[i].event;
        shown->last = steps[to].event;
    }
}

static void measure_segments(measure *m, const gather_request *r, example *shown)
{
    const gather_step *steps = r->steps;
    for (size_t i = 0; i < r->step_count;) {
        size_t last = i;
        while (last + 1 < r->step_count && steps[last + 1].event == steps[i].event)
            last++;
        if (last > i)
            add_segment(m, r, i, last, shown);
        if (last + 1 < r->step_count)
            add_segment(m, r, last, last + 1, shown);
        i = last + 1;
    }
}

/* ---- pairs ---- */

/* The length of NAME in NAME.start or NAME.end; 0 for other names. */
static size_t base_of(const char *event, bool *is_start)
{
    static const struct {
        const char *suffix;
        bool is_start;
    } known[] = {{"start", true}, {"begin", true}, {"end", false},  {"Start", true}, {"Begin", true},
                 {"End", false},  {"START", true}, {"BEGIN", true}, {"END", false}};
    size_t size = strlen(event);
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        size_t suffix = strlen(known[i].suffix);
        if (size <= suffix || strcmp(event + size - suffix, known[i].suffix) != 0)
            continue;
        size_t base = size - suffix;
        bool is_separate = strchr("._-", event[base - 1]) != NULL;
        if (!is_separate && !(g_ascii_isupper(known[i].suffix[0]) && g_ascii_islower(event[base - 1])))
            continue; /* "restart" and "backend" are words */
        *is_start = known[i].is_start;
        return is_separate ? base - 1 : base;
    }
    return 0;
}

static void find_partners(measure *m)
{
    char **events = m->definition->events;
    for (guint s = 0; s < m->event_count; s++) {
        bool is_start = false, is_other_start = true;
        size_t base = base_of(events[s], &is_start);
        for (guint e = 0; base > 0 && is_start && e < m->event_count; e++)
            if (base_of(events[e], &is_other_start) == base && !is_other_start &&
                strncmp(events[e], events[s], base) == 0) {
                m->starts[s] = true;
                m->partners[s] = (uint16_t)e;
                m->partners[e] = (uint16_t)s;
            }
    }
}

static pair *find_pair(measure *m, uint16_t start, uint16_t by)
{
    guint64 key = KEY_BIT | (guint64)start << 16 | by;
    pair *p = find_row(m, m->pair_rows, &key);
    if (p == NULL && key != 0) {
        bool unused;
        const char *event = m->definition->events[start];
        p = g_new0(pair, 1);
        *p = (pair){.key = key, .start = start, .end = m->partners[start], .by = (uint16_t)key};
        p->name = g_strndup(event, base_of(event, &unused));
        g_hash_table_insert(m->pair_rows, &p->key, p);
        g_ptr_array_add(m->pairs, p);
    }
    return p;
}

/* Closes the innermost open pair p. Pairs that were opened within it may stay open, because work may overlap. */
static void close_pair(measure *m, pair *p, int64_t time_ns)
{
    guint depth = m->stack->len;
    while (depth > 0 && g_array_index(m->stack, open_pair, depth - 1).pair != p)
        depth--;
    if (depth == 0) {
        p->no_start++;
        return;
    }
    open_pair closed = g_array_index(m->stack, open_pair, depth - 1);
    g_array_remove_index(m->stack, depth - 1);
    int64_t inclusive_ns = time_ns - closed.start_ns;
    add_time(m, &p->inclusive, inclusive_ns);
    add_time(m, &p->exclusive, inclusive_ns - closed.within_ns);
    if (depth > 1)
        g_array_index(m->stack, open_pair, depth - 2).within_ns += inclusive_ns;
}

static void measure_pairs(measure *m, const gather_request *r)
{
    g_array_set_size(m->stack, 0);
    for (size_t i = 0; i < r->step_count; i++) {
        const gather_step *step = &r->steps[i];
        uint16_t partner = m->partners[step->event];
        bool is_start = partner != PLACE_NONE && m->starts[step->event];
        pair *p = partner != PLACE_NONE ? find_pair(m, is_start ? step->event : partner, r->by) : NULL;
        if (p != NULL && is_start && m->stack->len == STACK_MAX) {
            p->no_end++;
        } else if (p != NULL && is_start) {
            open_pair opened = {p, step->time_ns, 0};
            g_array_append_val(m->stack, opened);
        } else if (p != NULL) {
            close_pair(m, p, step->time_ns);
        }
    }
    for (guint i = 0; i < m->stack->len; i++)
        g_array_index(m->stack, open_pair, i).pair->no_end++;
}

/* ---- examples ---- */

static char *name_of(const gather_request *r)
{
    char *name = g_strndup(r->name, MIN(r->name_size, EXAMPLE_NAME_MAX));
    for (size_t i = 0; i < MIN(r->name_size, EXAMPLE_NAME_MAX); i++)
        name[i] = r->name[i] == '\0' ? ' ' : r->name[i];
    return name;
}

static void note_oddity(measure *m, oddity *o, const gather_request *r, const example *shown, uint16_t first,
                        uint16_t last)
{
    if (o->count++ >= m->examples_max)
        return;
    example kept = *shown;
    kept.name = name_of(r);
    kept.first = first;
    kept.last = last;
    g_array_append_val(o->examples, kept);
}

static void find_oddities(measure *m, const gather_request *r, const example *shown)
{
    bool has_first = false, has_last = false;
    uint16_t furthest = 0;
    size_t back = 0; /* the first step in the wrong order */
    for (size_t i = 0; i < r->step_count; i++) {
        uint16_t event = r->steps[i].event;
        has_first |= event == 0;
        has_last |= event + 1u == m->event_count;
        furthest = MAX(furthest, event);
        if (back == 0 && i > 0 && event < r->steps[i - 1].event)
            back = i;
    }
    if (!has_first)
        note_oddity(m, &m->no_start, r, shown, 0, 0);
    if (!has_last)
        note_oddity(m, &m->no_end, r, shown, (uint16_t)(furthest + 1), (uint16_t)(furthest + 1));
    if (back > 0)
        note_oddity(m, &m->disordered, r, shown, r->steps[back - 1].event, r->steps[back].event);
}

/* Whether b is slower than a. Of two that took as long, the earlier one counts as slower. */
static bool is_slower(const example *a, const example *b)
{
    return a->total_ns != b->total_ns ? a->total_ns < b->total_ns : a->from_ns > b->from_ns;
}

static gint slower_first(gconstpointer a, gconstpointer b)
{
    return is_slower(a, b) ? 1 : is_slower(b, a) ? -1 : 0;
}

/* Restores the heap of the slowest requests, whose top is the fastest of them. */
static void sift_down(GArray *heap, guint at)
{
    example *e = (example *)(void *)heap->data;
    for (guint child; (child = 2 * at + 1) < heap->len; at = child) {
        if (child + 1 < heap->len && is_slower(&e[child + 1], &e[child]))
            child++;
        if (!is_slower(&e[child], &e[at]))
            return;
        example moved = e[at];
        e[at] = e[child];
        e[child] = moved;
    }
}

static void note_slow(measure *m, const gather_request *r, const example *shown)
{
    GArray *heap = m->slowest;
    example kept = *shown;
    if (m->slowest_max == 0)
        return;
    if (heap->len < m->slowest_max) {
        kept.name = name_of(r);
        g_array_append_val(heap, kept);
        for (guint i = heap->len / 2 + 1; heap->len == m->slowest_max && i-- > 0;)
            sift_down(heap, i);
    } else if (is_slower(&g_array_index(heap, example, 0), shown)) {
        kept.name = name_of(r);
        g_free(g_array_index(heap, example, 0).name);
        g_array_index(heap, example, 0) = kept;
        sift_down(heap, 0);
    }
}

/* ---- the whole request ---- */

static void take_request(void *user, const gather_request *r)
{
    measure *m = user;
    int64_t from_ns = r->steps[0].time_ns, to_ns = r->steps[r->step_count - 1].time_ns;
    example shown = {.by = r->by, .from_ns = from_ns, .total_ns = to_ns - from_ns, .longest_ns = -1};
    m->requests++;
    add_time(m, &m->totals, shown.total_ns);
    series_add(&m->totals_series, to_ns, (double)shown.total_ns);
    measure_segments(m, r, &shown);
    measure_pairs(m, r);
    find_oddities(m, r, &shown);
    note_slow(m, r, &shown);
}

void measure_add(measure *m, const nl_record *record)
{
    gather_add(m->gatherer, record);
}

/* For segments and pairs, which both begin with the key. */
static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const guint64 *first = *(const guint64 *const *)a, *second = *(const guint64 *const *)b;
    return (*first > *second) - (*first < *second);
}

void measure_finish(measure *m)
{
    gather_finish(m->gatherer);
    g_ptr_array_sort(m->segments, compare_rows);
    g_ptr_array_sort(m->pairs, compare_rows);
    g_array_sort(m->slowest, slower_first);
}

segment *measure_find(const measure *m, const char *from, const char *to, const char *by)
{
    for (guint i = 0; i < m->segments->len; i++) {
        segment *s = g_ptr_array_index(m->segments, i);
        if (strcmp(m->definition->events[s->from], from) == 0 && strcmp(m->definition->events[s->to], to) == 0 &&
            strcmp(gather_by(m->gatherer, s->by), by) == 0)
            return s;
    }
    return NULL;
}

/* ---- life ---- */

static void clear_example(gpointer e)
{
    g_free(((example *)e)->name);
}

static GArray *new_examples(void)
{
    GArray *examples = g_array_new(FALSE, FALSE, sizeof(example));
    g_array_set_clear_func(examples, clear_example);
    return examples;
}

static void free_segment(gpointer s)
{
    nl_distribution_clear(&((segment *)s)->times);
    g_free(s);
}

static void free_pair(gpointer user)
{
    pair *p = user;
    nl_distribution_clear(&p->inclusive);
    nl_distribution_clear(&p->exclusive);
    g_free(p->name);
    g_free(p);
}

measure *measure_new(const drawing_lifeline *definition, const char *by, size_t memory_max, size_t slowest_max,
                     size_t examples_max)
{
    measure *m = g_new0(measure, 1);
    m->definition = definition;
    m->event_count = g_strv_length(definition->events);
    m->gatherer = gather_new(definition, by, memory_max, take_request, m);
    m->by = by != NULL;
    m->slowest_max = slowest_max;
    m->examples_max = examples_max;
    m->segments = g_ptr_array_new_with_free_func(free_segment);
    m->pairs = g_ptr_array_new_with_free_func(free_pair);
    m->slowest = new_examples();
    m->no_start.examples = new_examples();
    m->no_end.examples = new_examples();
    m->disordered.examples = new_examples();
    m->segment_rows = g_hash_table_new(hash64, g_int64_equal);
    m->pair_rows = g_hash_table_new(hash64, g_int64_equal);
    m->value_count_max = VALUES_MAX;
    m->stack = g_array_new(FALSE, FALSE, sizeof(open_pair));
    m->starts = g_new0(bool, m->event_count + 1);
    m->partners = g_new(uint16_t, m->event_count + 1);
    memset(m->partners, 0xff, (m->event_count + 1) * sizeof *m->partners);
    find_partners(m);
    return m;
}

void measure_free(measure *m)
{
    gather_free(m->gatherer);
    nl_distribution_clear(&m->totals);
    series_clear(&m->totals_series);
    g_hash_table_destroy(m->segment_rows);
    g_hash_table_destroy(m->pair_rows);
    g_ptr_array_free(m->segments, TRUE);
    g_ptr_array_free(m->pairs, TRUE);
    g_array_free(m->slowest, TRUE);
    g_array_free(m->no_start.examples, TRUE);
    g_array_free(m->no_end.examples, TRUE);
    g_array_free(m->disordered.examples, TRUE);
    g_array_free(m->stack, TRUE);
    g_free(m->starts);
    g_free(m->partners);
    g_free(m);
}
