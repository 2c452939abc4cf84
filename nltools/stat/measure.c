#include "config.h"

#include "stat/measure.h"

#include "requests/hash64.h"

#include <string.h>

enum { PLACE_NONE = UINT16_MAX };

typedef struct open_pair {
    pair *pair;
    int64_t start_ns, within_ns;
} open_pair;

/* ---- segments ---- */

static segment *find_segment(measure *m, uint16_t from, uint16_t to, uint16_t by)
{
    guint64 key = (guint64)from << 32 | (guint64)to << 16 | by;
    segment *s = g_hash_table_lookup(m->segment_ids, &key);
    if (s == NULL) {
        s = g_new0(segment, 1);
        s->from = from;
        s->to = to;
        s->by = by;
        g_hash_table_insert(m->segment_ids, g_memdup2(&key, sizeof key), s);
        g_ptr_array_add(m->segments, s);
    }
    return s;
}

static void add_segment(measure *m, const gather_object *object, size_t i, size_t to, example *shown)
{
    const gather_step *steps = object->steps;
    int64_t time_ns = steps[to].time_ns - steps[i].time_ns;
    nl_distribution_add(&find_segment(m, steps[i].event, steps[to].event, object->by)->times, time_ns);
    if (time_ns >= shown->longest_ns) {
        shown->longest_ns = time_ns;
        shown->first = steps[i].event;
        shown->last = steps[to].event;
    }
}

static void measure_segments(measure *m, const gather_object *object, example *shown)
{
    const gather_step *steps = object->steps;
    for (size_t i = 0; i < object->step_count;) {
        size_t last = i;
        while (last + 1 < object->step_count && steps[last + 1].event == steps[i].event)
            last++;
        if (last > i)
            add_segment(m, object, i, last, shown);
        if (last + 1 < object->step_count)
            add_segment(m, object, last, last + 1, shown);
        i = last + 1;
    }
}

/* ---- pairs ---- */

/* NAME of NAME.start or NAME.end, as its length; 0 for an event that is called otherwise. */
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
        bool apart = strchr("._-", event[base - 1]) != NULL;
        if (!apart && !(g_ascii_isupper(known[i].suffix[0]) && g_ascii_islower(event[base - 1])))
            continue; /* "restart" and "backend" are words */
        *is_start = known[i].is_start;
        return apart ? base - 1 : base;
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
    guint64 key = (guint64)start << 16 | by;
    pair *p = g_hash_table_lookup(m->pair_ids, &key);
    if (p == NULL) {
        bool unused;
        const char *event = m->definition->events[start];
        p = g_new0(pair, 1);
        p->start = start;
        p->end = m->partners[start];
        p->by = by;
        p->name = g_strndup(event, base_of(event, &unused));
        g_hash_table_insert(m->pair_ids, g_memdup2(&key, sizeof key), p);
        g_ptr_array_add(m->pairs, p);
    }
    return p;
}

/* Closes the innermost open one of p. What was opened within it may go on: work overlaps, too. */
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
    nl_distribution_add(&p->inclusive, inclusive_ns);
    nl_distribution_add(&p->exclusive, inclusive_ns - closed.within_ns);
    if (depth > 1)
        g_array_index(m->stack, open_pair, depth - 2).within_ns += inclusive_ns;
}

static void measure_pairs(measure *m, const gather_object *object)
{
    g_array_set_size(m->stack, 0);
    for (size_t i = 0; i < object->step_count; i++) {
        const gather_step *step = &object->steps[i];
        uint16_t partner = m->partners[step->event];
        if (partner == PLACE_NONE)
            continue;
        if (m->starts[step->event]) {
            open_pair opened = {find_pair(m, step->event, object->by), step->time_ns, 0};
            g_array_append_val(m->stack, opened);
        } else {
            close_pair(m, find_pair(m, partner, object->by), step->time_ns);
        }
    }
    for (guint i = 0; i < m->stack->len; i++)
        g_array_index(m->stack, open_pair, i).pair->no_end++;
}

/* ---- examples ---- */

static char *measure_name_of(const gather_object *object)
{
    char *name = g_strndup(object->name, object->name_size);
    for (size_t i = 0; i < object->name_size; i++)
        name[i] = object->name[i] == '\0' ? ' ' : object->name[i];
    return name;
}

static void note_oddity(measure *m, oddity *o, const gather_object *object, const example *shown, uint16_t first,
                        uint16_t last)
{
    if (o->count++ >= m->examples_most)
        return;
    example kept = *shown;
    kept.name = measure_name_of(object);
    kept.first = first;
    kept.last = last;
    g_array_append_val(o->examples, kept);
}

static void find_oddities(measure *m, const gather_object *object, const example *shown)
{
    bool has_first = false, has_last = false;
    uint16_t furthest = 0;
    size_t back = 0; /* the first step against the order */
    for (size_t i = 0; i < object->step_count; i++) {
        uint16_t event = object->steps[i].event;
        has_first |= event == 0;
        has_last |= event + 1u == m->event_count;
        furthest = MAX(furthest, event);
        if (back == 0 && i > 0 && event < object->steps[i - 1].event)
            back = i;
    }
    if (!has_first)
        note_oddity(m, &m->no_start, object, shown, 0, 0);
    if (!has_last)
        note_oddity(m, &m->no_end, object, shown, (uint16_t)(furthest + 1), (uint16_t)(furthest + 1));
    if (back > 0)
        note_oddity(m, &m->disordered, object, shown, object->steps[back - 1].event, object->steps[back].event);
}

/* Whether a gives way to b among the slowest: of two that took as long, the later one does. */
static bool gives_way(const example *a, const example *b)
{
    return a->total_ns != b->total_ns ? a->total_ns < b->total_ns : a->from_ns > b->from_ns;
}

/* The heap of the slowest, that on top which gives way to all others. */
static void sift_down(GArray *heap, guint at)
{
    example *e = (example *)(void *)heap->data;
    for (guint child; (child = 2 * at + 1) < heap->len; at = child) {
        if (child + 1 < heap->len && gives_way(&e[child + 1], &e[child]))
            child++;
        if (!gives_way(&e[child], &e[at]))
            return;
        example moved = e[at];
        e[at] = e[child];
        e[child] = moved;
    }
}

static void note_slow(measure *m, const gather_object *object, const example *shown)
{
    GArray *heap = m->slowest;
    example kept = *shown;
    if (m->slowest_most == 0)
        return;
    if (heap->len < m->slowest_most) {
        kept.name = measure_name_of(object);
        g_array_append_val(heap, kept);
        for (guint i = heap->len / 2 + 1; heap->len == m->slowest_most && i-- > 0;)
            sift_down(heap, i);
    } else if (gives_way(&g_array_index(heap, example, 0), shown)) {
        kept.name = measure_name_of(object);
        g_free(g_array_index(heap, example, 0).name);
        g_array_index(heap, example, 0) = kept;
        sift_down(heap, 0);
    }
}

/* ---- all of it ---- */

static void take_object(void *user, const gather_object *object)
{
    measure *m = user;
    int64_t from_ns = object->steps[0].time_ns, to_ns = object->steps[object->step_count - 1].time_ns;
    example shown = {.by = object->by, .from_ns = from_ns, .total_ns = to_ns - from_ns, .longest_ns = -1};
    m->objects++;
    nl_distribution_add(&m->totals, shown.total_ns);
    series_add(&m->totals_series, to_ns, (double)shown.total_ns);
    measure_segments(m, object, &shown);
    measure_pairs(m, object);
    find_oddities(m, object, &shown);
    note_slow(m, object, &shown);
}

void measure_add(measure *m, const nl_record *record)
{
    gather_add(m->gatherer, record);
}

static gint compare_places(guint64 first, guint64 second)
{
    return (first > second) - (first < second);
}

static gint compare_segments(gconstpointer a, gconstpointer b)
{
    const segment *first = *(segment *const *)a, *second = *(segment *const *)b;
    return compare_places((guint64)first->from << 32 | (guint64)first->to << 16 | first->by,
                          (guint64)second->from << 32 | (guint64)second->to << 16 | second->by);
}

static gint compare_pairs(gconstpointer a, gconstpointer b)
{
    const pair *first = *(pair *const *)a, *second = *(pair *const *)b;
    return compare_places((guint64)first->start << 16 | first->by, (guint64)second->start << 16 | second->by);
}

static gint slower_first(gconstpointer a, gconstpointer b)
{
    return gives_way(a, b) ? 1 : gives_way(b, a) ? -1 : 0;
}

void measure_finish(measure *m)
{
    gather_finish(m->gatherer);
    g_ptr_array_sort(m->segments, compare_segments);
    g_ptr_array_sort(m->pairs, compare_pairs);
    g_array_sort(m->slowest, slower_first);
}

double measure_total_ns(const measure *m)
{
    return m->totals.total;
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

measure *measure_new(const drawing_lifeline *definition, const char *by, size_t steps_most, size_t slowest_most,
                     size_t examples_most)
{
    measure *m = g_new0(measure, 1);
    m->definition = definition;
    m->event_count = g_strv_length(definition->events);
    m->gatherer = gather_new(definition, by, steps_most, take_object, m);
    m->by = by != NULL;
    m->slowest_most = slowest_most;
    m->examples_most = examples_most;
    m->segments = g_ptr_array_new_with_free_func(free_segment);
    m->pairs = g_ptr_array_new_with_free_func(free_pair);
    m->slowest = new_examples();
    m->no_start.examples = new_examples();
    m->no_end.examples = new_examples();
    m->disordered.examples = new_examples();
    m->segment_ids = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    m->pair_ids = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    m->stack = g_array_new(FALSE, FALSE, sizeof(open_pair));
    m->starts = g_new0(bool, m->event_count + 1);
    m->partners = g_new(uint16_t, m->event_count + 1);
    memset(m->partners, 0xff, (m->event_count + 1) * sizeof *m->partners);
    find_partners(m);
    return m;
}

void measure_free(measure *m)
{
    if (m == NULL)
        return;
    gather_free(m->gatherer);
    nl_distribution_clear(&m->totals);
    series_clear(&m->totals_series);
    g_ptr_array_free(m->segments, TRUE);
    g_ptr_array_free(m->pairs, TRUE);
    g_array_free(m->slowest, TRUE);
    g_array_free(m->no_start.examples, TRUE);
    g_array_free(m->no_end.examples, TRUE);
    g_array_free(m->disordered.examples, TRUE);
    g_hash_table_destroy(m->segment_ids);
    g_hash_table_destroy(m->pair_ids);
    g_array_free(m->stack, TRUE);
    g_free(m->starts);
    g_free(m->partners);
    g_free(m);
}
