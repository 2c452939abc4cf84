#include "config.h"

#include "stat/report.h"

#include "program/json_document.h"

/* Adds a sum of nanoseconds. If the sum does not fit into an integer, adds the largest integer. */
static void add_sum(json_object *to, const char *name, double sum_ns)
{
    const double limit = 9223372036854775808.0; /* 2^63 */
    json_add_int(to, name, sum_ns >= limit ? INT64_MAX : sum_ns <= -limit ? INT64_MIN : (int64_t)sum_ns);
}

static void add_times(json_object *to, nl_distribution *d)
{
    json_add_int(to, "count", (int64_t)d->count);
    add_sum(to, "sum_ns", d->total);
    add_sum(to, "mean_ns", nl_distribution_mean(d) + 0.5);
    json_add_int(to, "p50_ns", nl_distribution_quantile(d, 0.5));
    json_add_int(to, "p90_ns", nl_distribution_quantile(d, 0.9));
    json_add_int(to, "p99_ns", nl_distribution_quantile(d, 0.99));
    json_add_int(to, "max_ns", d->maximum);
    json_add_bool(to, "exact", nl_distribution_is_exact(d));
}

/* Adds the members that identify a row. */
static void add_key(json_object *to, const report_subject *r, const tally_key *key)
{
    static const char *const kinds[] = {"span", "edge", "part"};
    const request_reader *reader = assembler_reader(r->assembler);
    const event_names *names = request_reader_names(reader);
    json_add_text(to, "kind", kinds[key->kind]);
    if (key->kind != TALLY_EDGE) {
        json_add_text(to, "span", event_names_text(names, key->span));
        json_add_text(to, "program", request_reader_program(reader, key->program));
    }
    if (key->kind != TALLY_SPAN) {
        json_add_text(to, "from", key->from == REQUEST_NONE ? NULL : event_names_text(names, key->from));
        json_add_text(to, "to", key->to == REQUEST_NONE ? NULL : event_names_text(names, key->to));
    }
    if (key->kind == TALLY_EDGE)
        json_add_bool(to, "inferred", key->inferred);
    if (r->by != NULL)
        json_add_text(to, "by", report_group(r, key->by));
}

static json_object *report_row_json(const report_subject *r, tally_row *row)
{
    json_object *object = json_object_new_object();
    double all_ns = r->tally->totals.total;
    add_key(object, r, &row->key);
    json_add_double(object, "share", all_ns > 0 ? row->path_ns / all_ns : 0);
    add_sum(object, "path_ns", row->path_ns);
    if (row->key.inferred)
        json_add_double(object, "certainty", row->certainty / (double)row->path_count);
    if (row->key.kind == TALLY_SPAN) {
        add_sum(object, "self_ns", row->self_ns);
        json_add_int(object, "failed", (int64_t)row->failed);
    }
    add_times(object, &row->times);
    return object;
}

static json_object *group_object(const report_subject *r, tally_row *row)
{
    json_object *object = json_object_new_object();
    double all_ns = r->tally->totals.total;
    json_add_text(object, "by", report_group(r, row->key.by));
    json_add_double(object, "share", all_ns > 0 ? row->path_ns / all_ns : 0);
    json_add_int(object, "failed", (int64_t)row->failed);
    add_times(object, &row->times);
    return object;
}

static json_object *span_object(const report_subject *r, const request_span *s)
{
    const request_reader *reader = assembler_reader(r->assembler);
    json_object *object = json_object_new_object();
    json_add_text(object, "span", event_names_text(request_reader_names(reader), s->name));
    json_add_text(object, "program", request_reader_program(reader, s->program));
    json_add_text(object, "host", request_reader_host(reader, s->host));
    json_add_int(object, "parent", s->parent == REQUEST_NONE ? -1 : (int64_t)s->parent);
    json_add_int(object, "begin_ns", s->begin_ns);
    json_add_int(object, "end_ns", s->end_ns);
    json_add_int(object, "self_ns", s->self_ns);
    json_add_int(object, "path_ns", s->path_ns);
    json_add_bool(object, "failed", s->failed);
    return object;
}

static json_object *example_object(const report_subject *r, const tally_example *e)
{
    json_object *object = json_object_new_object(), *longest = json_object_new_object(),
                *spans = json_object_new_array(), *path = json_object_new_array();
    json_add_text(object, "name", e->name);
    json_add_int(object, "from_ns", e->from_ns);
    json_add_int(object, "total_ns", e->total_ns);
    json_add_bool(object, "failed", e->failed);
    json_add_bool(object, "uncertain", e->doubts != 0);
    if (r->by != NULL)
        json_add_text(object, "by", report_group(r, e->by));
    if (e->longest_ns > 0) {
        add_key(longest, r, &e->longest);
        add_sum(longest, "path_ns", e->longest_ns);
    }
    json_object_object_add(object, "longest", longest);
    for (size_t i = 0; i < e->span_count; i++)
        json_object_array_add(spans, span_object(r, &e->spans[i]));
    json_object_object_add(object, "spans", spans);
    for (size_t i = 0; i < e->path_count; i++) {
        json_object *step = json_object_new_object();
        add_key(step, r, &e->path[i].key);
        json_add_int(step, "from_ns", e->path[i].from_ns);
        json_add_int(step, "took_ns", e->path[i].took_ns);
        json_object_array_add(path, step);
    }
    json_object_object_add(object, "path", path);
    return object;
}

static json_object *doubtful_clocks(const report_subject *r)
{
    json_object *list = json_object_new_array();
    const request_reader *reader = assembler_reader(r->assembler);
    size_t count;
    const clock_doubt *doubts = clock_doubts_list(assembler_clock_doubts(r->assembler), &count);
    for (size_t i = 0; i < count; i++) {
        json_object *doubt = json_object_new_object();
        json_add_text(doubt, "host", request_reader_host(reader, doubts[i].host));
        json_add_text(doubt, "other", request_reader_host(reader, doubts[i].other));
        json_add_int(doubt, "ahead_ns", doubts[i].ahead_ns);
        json_object_array_add(list, doubt);
    }
    return list;
}

json_object *report_requests_json(const report_subject *r)
{
    json_object *object = json_object_new_object(), *ids = json_object_new_array(), *rows = json_object_new_array(),
                *slowest = json_object_new_array(), *times = json_object_new_object(), *zones = json_object_new_array();
    tally *t = r->tally;
    for (char *const *id = r->ids; *id != NULL; id++)
        json_object_array_add(ids, json_text(*id));
    for (guint i = 0; i < t->rows->len; i++)
        json_object_array_add(rows, report_row_json(r, g_ptr_array_index(t->rows, i)));
    for (guint i = 0; i < t->slowest->len; i++)
        json_object_array_add(slowest, example_object(r, &g_array_index(t->slowest, tally_example, i)));
    json_object_object_add(object, "id", ids);
    json_add_int(object, "requests", (int64_t)t->requests);
    json_add_int(object, "failed", (int64_t)t->failed);
    add_sum(object, "total_ns", t->totals.total);
    add_times(times, &t->totals);
    json_object_object_add(object, "times", times);
    uint32_t name;
    json_add_int(object, "without_first", (int64_t)tally_count_without(t, false, &name));
    json_add_int(object, "without_last", (int64_t)tally_count_without(t, true, &name));
    json_add_int(object, "spans_without_end", t->problems.no_end);
    json_add_int(object, "spans_without_begin", t->problems.no_begin);
    json_add_int(object, "missing_parents", t->problems.no_parent);
    json_add_int(object, "cycles", t->problems.cycles);
    json_add_int(object, "violations", t->problems.violations);
    json_add_int(object, "violations_by_one_clock", t->problems.one_clock);
    json_add_int(object, "imprecise", t->problems.imprecise);
    json_add_int(object, "unknown_clocks", t->problems.unknown_clocks);
    json_add_int(object, "asynchronous", t->problems.async);
    json_add_int(object, "late", t->problems.late);
    json_add_int(object, "awaited", t->problems.awaited);
    json_add_int(object, "missing_events", t->problems.missing);
    json_add_int(object, "uncertain", (int64_t)t->doubtful);
    add_sum(object, "uncertain_ns", t->doubtful_ns);
    json_add_int(object, "uncertain_by_records", (int64_t)t->lossy);
    json_add_int(object, "uncertain_by_clocks", (int64_t)t->skewed);
    json_add_int(object, "uncertain_by_times", (int64_t)t->contradictory);
    json_add_int(object, "unselected", (int64_t)assembler_unselected(r->assembler));
    json_add_int(object, "overlapping_spans", (int64_t)assembler_overlapping(r->assembler));
    for (size_t i = 0; i < t->zone_count; i++) {
        json_object *zone = json_object_new_object();
        const request_reader *reader = assembler_reader(r->assembler);
        json_add_text(zone, "event", event_names_text(request_reader_names(reader), t->zones[i].event));
        json_add_text(zone, "host", request_reader_host(reader, t->zones[i].host));
        json_add_int(zone, "zone_ns", t->zones[i].zone_ns);
        json_add_int(zone, "count", (int64_t)t->zones[i].count);
        json_object_array_add(zones, zone);
    }
    json_object_object_add(object, "time_zones", zones);
    int64_t corrected_ns;
    json_add_int(object, "corrected_hosts", (int64_t)assembler_corrected_hosts(r->assembler, &corrected_ns));
    json_add_int(object, "corrected_ns", corrected_ns);
    json_object_object_add(object, "doubtful_clocks", doubtful_clocks(r));
    json_add_int(object, "measured_early", (int64_t)t->cut);
    json_add_int(object, "left_out", (int64_t)t->left_out);
    json_object *groups = json_object_new_array();
    for (guint i = 0; t->groups != NULL && i < t->groups->len; i++)
        json_object_array_add(groups, group_object(r, g_ptr_array_index(t->groups, i)));
    json_object_object_add(object, "groups", groups);
    json_object_object_add(object, "rows", rows);
    json_object_object_add(object, "slowest", slowest);
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
