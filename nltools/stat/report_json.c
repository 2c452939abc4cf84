#include "config.h"

#include "stat/report.h"

#include "program/json_document.h"

static void add_times(json_object *to, nl_distribution *d, double total_ns)
{
    json_add_int(to, "count", (int64_t)d->count);
    json_add_double(to, "share", total_ns > 0 ? d->total / total_ns : 0);
    json_add_int(to, "mean_ns", (int64_t)(nl_distribution_mean(d) + 0.5));
    json_add_int(to, "p50_ns", nl_distribution_quantile(d, 0.5));
    json_add_int(to, "p90_ns", nl_distribution_quantile(d, 0.9));
    json_add_int(to, "p99_ns", nl_distribution_quantile(d, 0.99));
    json_add_int(to, "max_ns", d->most);
    json_add_bool(to, "exact", nl_distribution_is_exact(d));
}

static void add_by(json_object *to, const measure *m, uint16_t by)
{
    if (m->by && by != 0)
        json_add_text(to, "by", gather_by(m->gatherer, by));
}

static json_object *example_object(const measure *m, const example *e, bool slowest)
{
    json_object *object = json_object_new_object();
    json_add_text(object, "name", e->name);
    json_add_int(object, "from_ns", e->from_ns);
    json_add_int(object, "total_ns", e->total_ns);
    add_by(object, m, e->by);
    if (!slowest || e->longest_ns >= 0) {
        json_add_text(object, slowest ? "longest_from" : "first", m->definition->events[e->first]);
        json_add_text(object, slowest ? "longest_to" : "then", m->definition->events[e->last]);
    }
    if (slowest && e->longest_ns >= 0)
        json_add_int(object, "longest_ns", e->longest_ns);
    return object;
}

static void add_examples(json_object *to, const measure *m, const char *name, const GArray *examples, bool slowest)
{
    json_object *list = json_object_new_array();
    for (guint i = 0; i < examples->len; i++)
        json_object_array_add(list, example_object(m, &g_array_index(examples, example, i), slowest));
    json_object_object_add(to, name, list);
}

static json_object *segment_object(const measure *m, segment *s)
{
    json_object *object = json_object_new_object();
    json_add_text(object, "from", m->definition->events[s->from]);
    json_add_text(object, "to", m->definition->events[s->to]);
    add_by(object, m, s->by);
    add_times(object, &s->times, m->totals.total);
    return object;
}

static json_object *pair_object(const measure *m, pair *p)
{
    json_object *object = json_object_new_object();
    json_add_text(object, "name", p->name);
    add_by(object, m, p->by);
    json_add_int(object, "never_ended", (int64_t)p->no_end);
    json_add_int(object, "never_started", (int64_t)p->no_start);
    add_times(object, &p->inclusive, m->totals.total);
    json_add_int(object, "exclusive_mean_ns", (int64_t)(nl_distribution_mean(&p->exclusive) + 0.5));
    json_add_int(object, "exclusive_p50_ns", nl_distribution_quantile(&p->exclusive, 0.5));
    return object;
}

json_object *report_measure_json(const measure *m)
{
    json_object *object = json_object_new_object(), *ids = json_object_new_array(), *segments = json_object_new_array(),
                *pairs = json_object_new_array();
    for (char **id = m->definition->ids; *id != NULL; id++)
        json_object_array_add(ids, json_text(*id));
    for (guint i = 0; i < m->segments->len; i++)
        json_object_array_add(segments, segment_object(m, g_ptr_array_index(m->segments, i)));
    for (guint i = 0; i < m->pairs->len; i++)
        json_object_array_add(pairs, pair_object(m, g_ptr_array_index(m->pairs, i)));
    json_object_object_add(object, "id", ids);
    json_add_int(object, "objects", (int64_t)m->requests);
    json_add_int(object, "without_first", (int64_t)m->no_start.count);
    json_add_int(object, "without_last", (int64_t)m->no_end.count);
    json_add_int(object, "disordered", (int64_t)m->disordered.count);
    json_add_int(object, "measured_early", (int64_t)gather_early(m->gatherer));
    json_add_int(object, "left_out", (int64_t)m->left_out);
    json_add_int(object, "total_ns", (int64_t)m->totals.total);
    json_object_object_add(object, "segments", segments);
    json_object_object_add(object, "pairs", pairs);
    add_examples(object, m, "slowest", m->slowest, true);
    add_examples(object, m, "without_first_examples", m->no_start.examples, false);
    add_examples(object, m, "without_last_examples", m->no_end.examples, false);
    add_examples(object, m, "disordered_examples", m->disordered.examples, false);
    return object;
}

json_object *report_throughput_json(throughput *t, int64_t interval_ns)
{
    json_object *object = json_object_new_object(), *intervals = json_object_new_array();
    json_add_text(object, "field", t->field);
    json_add_double(object, "total", t->total);
    json_add_int(object, "records", (int64_t)t->records);
    json_add_int(object, "unusable", (int64_t)t->unusable);
    json_add_double(object, "mean_per_second", throughput_mean(t));
    series_widen(&t->series, interval_ns);
    json_add_int(object, "interval_ns", t->series.width_ns);
    for (size_t i = 0; i < t->series.count; i++) {
        json_object *interval = json_object_new_object();
        json_add_int(interval, "from_ns", series_from_ns(&t->series, i));
        json_add_int(interval, "records", (int64_t)t->series.intervals[i].count);
        json_add_double(interval, "sum", t->series.intervals[i].sum);
        json_object_array_add(intervals, interval);
    }
    json_object_object_add(object, "intervals", intervals);
    return object;
}
