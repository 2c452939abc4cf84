#include "config.h"

#include "model/statistics.h"

#include <stdlib.h>

enum { SAMPLE = 100000 };

typedef struct range {
    const store *store;
    uint32_t from, to; /* records */
    statistics *result;
    float *sample;
} range;

static int by_size(const void *a, const void *b)
{
    float first = *(const float *)a, second = *(const float *)b;
    return (first > second) - (first < second);
}

static size_t step_for(range *r, size_t count)
{
    size_t step = (count + SAMPLE - 1) / SAMPLE;
    r->result->sampled = r->result->sampled || step > 1;
    return MAX(step, 1);
}

static double quantile(const float *sorted, size_t count, double share)
{
    return sorted[(size_t)((double)(count - 1) * share + 0.5)];
}

static void add_segment(range *r, size_t lifeline, unsigned from_row, unsigned to_row, const list *l)
{
    segment_measure measure = {r->store, r->store->spec->lifelines[lifeline].layer};
    size_t from = list_find(l, r->from, l->start), to = list_find(l, r->to, from), taken = 0;
    if (from == to)
        return;
    size_t step = step_for(r, to - from);
    segment_statistics s = {.lifeline = lifeline, .from = from_row, .to = to_row, .count = to - from};
    for (size_t i = from; i < to; i += step)
        r->sample[taken++] = store_segment_ns(&measure, list_at(l, i));
    qsort(r->sample, taken, sizeof *r->sample, by_size);
    s.p50_ns = quantile(r->sample, taken, 0.5);
    s.p90_ns = quantile(r->sample, taken, 0.9);
    s.p99_ns = quantile(r->sample, taken, 0.99);
    list_extremes e = list_find_extremes(l, from, to, store_segment_ns, &measure);
    s.min_ns = MIN(e.min, r->sample[0]);
    s.max_ns = MAX(e.max, r->sample[taken - 1]);
    g_array_append_val(r->result->segments, s);
}

static void add_loadline(range *r, size_t loadline, const host_list *own)
{
    const list *l = own->list;
    size_t from = list_find(l, r->from, l->start), to = list_find(l, r->to, from);
    if (from == to)
        return;
    list_extremes e = list_find_extremes(l, from, to, NULL, NULL);
    loadline_statistics s = {loadline, own->host, to - from, e.min, e.sum / (double)e.count, e.max};
    g_array_append_val(r->result->loadlines, s);
}

static gint by_count(gconstpointer a, gconstpointer b)
{
    const event_count *first = a, *second = b;
    return (first->count < second->count) - (first->count > second->count);
}

static void count_events(range *r)
{
    size_t *counts = g_new0(size_t, NAMES_NONE + 1);
    for (uint32_t record = r->from; record < r->to; record++)
        counts[store_event(r->store, record)]++;
    for (unsigned event = 0; event <= NAMES_NONE; event++)
        if (counts[event] > 0) {
            event_count one = {(uint16_t)event, counts[event]};
            g_array_append_val(r->result->events, one);
        }
    g_array_sort(r->result->events, by_count);
    g_free(counts);
}

statistics *statistics_new(const model *m, int64_t from_ns, int64_t to_ns)
{
    const store *s = model_store(m);
    statistics *result = g_new0(statistics, 1);
    result->segments = g_array_new(FALSE, FALSE, sizeof(segment_statistics));
    result->loadlines = g_array_new(FALSE, FALSE, sizeof(loadline_statistics));
    result->events = g_array_new(FALSE, FALSE, sizeof(event_count));
    range r = {.store = s, .result = result, .sample = g_new(float, SAMPLE + 1)};
    r.from = store_find_time(s, from_ns);
    r.to = to_ns == INT64_MAX ? s->count : store_find_time(s, to_ns + 1);
    r.to = MAX(r.from, r.to);
    result->records = r.to - r.from;
    for (size_t i = 0; i < s->spec->lifeline_count; i++) {
        const lifeline_lists *l = &s->lifelines[i];
        for (unsigned from = 0; from < l->rows; from++)
            for (unsigned to = 0; to < l->rows; to++)
                if (l->segments[from * l->rows + to] != NULL)
                    add_segment(&r, i, from, to, l->segments[from * l->rows + to]);
    }
    for (size_t i = 0; i < s->spec->drawn_loadlines; i++)
        for (size_t j = 0; j < s->loadlines[i].count; j++)
            add_loadline(&r, i, &s->loadlines[i].hosts[j]);
    count_events(&r);
    g_free(r.sample);
    return result;
}

void statistics_free(statistics *s)
{
    if (s == NULL)
        return;
    g_array_free(s->segments, TRUE);
    g_array_free(s->loadlines, TRUE);
    g_array_free(s->events, TRUE);
    g_free(s);
}
