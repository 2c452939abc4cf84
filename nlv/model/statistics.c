#include "config.h"

#include "model/edges.h"
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

/* Completes `s` from the first `count` values of the sample, and adds `s` to the result. */
static void add_sample(range *r, segment_statistics s, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)r->sample[i];
    s.sum_ns = sum * (double)s.count / (double)count;
    qsort(r->sample, count, sizeof *r->sample, by_size);
    s.p50_ns = quantile(r->sample, count, 0.5);
    s.p90_ns = quantile(r->sample, count, 0.9);
    s.p99_ns = quantile(r->sample, count, 0.99);
    s.min_ns = MIN(s.min_ns, r->sample[0]);
    s.max_ns = MAX(s.max_ns, r->sample[count - 1]);
    g_array_append_val(r->result->segments, s);
}

/* Adds the durations of the spans that end in a row, unless a segment has the same durations. */
static void add_span(range *r, size_t lifeline, unsigned row, const size_t *counts)
{
    const store *s = r->store;
    const spec_lifeline *l = &s->spec->lifelines[lifeline];
    int begin = l->order != NULL ? l->order->begin_of[row] : -1;
    if (begin < 0 || s->lifelines[lifeline].segments[(unsigned)begin * l->rows + row] != NULL)
        return;
    size_t count = 0, taken = 0;
    for (unsigned event = 0; event < s->spec->event_count; event++)
        if (spec_step_of(s->spec, (uint16_t)event, l->layer).lifeline == lifeline &&
            spec_step_of(s->spec, (uint16_t)event, l->layer).row == row)
            count += counts[event];
    size_t step = step_for(r, count), seen = 0;
    float longest = -1;
    uint32_t max_record = r->from;
    for (uint32_t record = r->from; record < r->to && count > 0; record++) {
        spec_step what = spec_step_of(s->spec, store_event(s, record), l->layer);
        if (what.lifeline != lifeline || what.row != row || seen++ % step != 0 || taken > SAMPLE)
            continue;
        uint32_t from = edges_find_begin(s, record, l->layer);
        if (from == STORE_NONE)
            continue;
        r->sample[taken++] = (float)(store_time(s, record) - store_time(s, from));
        max_record = r->sample[taken - 1] > longest ? record : max_record;
        longest = MAX(longest, r->sample[taken - 1]);
    }
    if (taken > 0)
        add_sample(r,
                   (segment_statistics){.lifeline = lifeline,
                                        .from = (unsigned)begin,
                                        .to = row,
                                        .count = count,
                                        .is_span = true,
                                        .min_ns = r->sample[0],
                                        .max_record = max_record},
                   taken);
}

static void add_segment(range *r, size_t lifeline, unsigned from_row, unsigned to_row, const list *l)
{
    size_t from = list_find(l, r->from, l->start), to = list_find(l, r->to, from), taken = 0;
    if (from == to)
        return;
    size_t step = step_for(r, to - from);
    segment_statistics s = {.lifeline = lifeline, .from = from_row, .to = to_row, .count = to - from};
    for (size_t i = from; i < to; i += step)
        r->sample[taken++] = list_value(l, i);
    list_extremes e = list_find_extremes(l, from, to, NULL, NULL);
    s.min_ns = e.min;
    s.max_ns = e.max;
    s.max_record = list_at(l, e.max_at);
    add_sample(r, s, taken);
}

static void add_loadline(range *r, size_t loadline, const host_list *own)
{
    const list *l = own->list;
    size_t from = list_find(l, r->from, l->start), to = list_find(l, r->to, from);
    if (from == to)
        return;
    list_extremes e = list_find_extremes(l, from, to, NULL, NULL);
    loadline_statistics s = {loadline, own->host,           to - from, e.min, e.sum / (double)e.count,
                             e.max,    list_at(l, e.max_at)};
    g_array_append_val(r->result->loadlines, s);
}

static gint by_count(gconstpointer a, gconstpointer b)
{
    const event_count *first = a, *second = b;
    return (first->count < second->count) - (first->count > second->count);
}

/* Returns the number of records of each event. */
static size_t *count_events(range *r)
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
    return counts;
}

/* Adds the requests that end in the range. */
static void add_requests(range *r, const model *m, int64_t from_ns, int64_t to_ns)
{
    const request_list *l = model_requests(m);
    request_statistics *s = &r->result->requests;
    GArray *took = g_array_new(FALSE, FALSE, sizeof(float));
    for (uint32_t i = 0; l != NULL && i < l->count; i++) {
        const request_summary *request = request_list_at(l, i);
        const int64_t end_ns = request->start_ns + request->duration_ns;
        if (end_ns < from_ns || end_ns > to_ns)
            continue;
        const float long_ns = (float)request->duration_ns;
        if (s->count == 0 || (double)long_ns > s->max_ns) {
            s->max_ns = (double)long_ns;
            s->max_index = i;
        }
        s->count++;
        s->failed += (request->errors & REQUEST_FAILED) != 0;
        g_array_append_val(took, long_ns);
    }
    qsort(took->data, took->len, sizeof(float), by_size);
    if (took->len > 0) {
        const float *sorted = (const float *)(const void *)took->data;
        s->p50_ns = quantile(sorted, took->len, 0.5);
        s->p90_ns = quantile(sorted, took->len, 0.9);
        s->p99_ns = quantile(sorted, took->len, 0.99);
    }
    s->is_partial = (l != NULL && l->dropped > 0) || (model_requests_progress(m) > 0 && model_requests_progress(m) < 1);
    g_array_free(took, TRUE);
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
    size_t *counts = count_events(&r);
    add_requests(&r, m, from_ns, to_ns);
    for (size_t i = 0; i < s->spec->lifeline_count; i++) {
        const lifeline_lists *l = &s->lifelines[i];
        for (unsigned from = 0; from < l->rows; from++)
            for (unsigned to = 0; to < l->rows; to++)
                if (l->segments[from * l->rows + to] != NULL)
                    add_segment(&r, i, from, to, l->segments[from * l->rows + to]);
        for (unsigned row = 0; row < l->rows; row++)
            add_span(&r, i, row, counts);
    }
    for (size_t i = 0; i < s->spec->drawn_loadlines; i++)
        for (size_t j = 0; j < s->loadlines[i].count; j++)
            add_loadline(&r, i, &s->loadlines[i].hosts[j]);
    g_free(counts);
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
