#include "config.h"

#include "stat/report.h"

#include "requests/json.h"

#include <inttypes.h>
#include <stdio.h>

static void append_name(GString *out, const char *name, const char *text)
{
    g_string_append_printf(out, ", \"%s\": ", name);
    json_append_string(out, text);
}

static void append_times(GString *out, nl_distribution *d, double total_ns)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}};
    g_string_append_printf(out, ", \"count\": %" PRIu64 ", \"share\": %.6f, \"mean_ns\": %.0f", d->count,
                           total_ns > 0 ? d->total / total_ns : 0, nl_distribution_mean(d));
    for (size_t i = 0; i < G_N_ELEMENTS(quantiles); i++)
        g_string_append_printf(out, ", \"%s\": %" PRId64, quantiles[i].name,
                               nl_distribution_quantile(d, quantiles[i].share));
    g_string_append_printf(out, ", \"max_ns\": %" PRId64 ", \"exact\": %s", d->most,
                           nl_distribution_is_exact(d) ? "true" : "false");
}

static void append_by(GString *out, const measure *m, uint16_t by)
{
    if (m->by && by != 0)
        append_name(out, "by", gather_by(m->gatherer, by));
}

static void append_examples(GString *out, const measure *m, const char *name, const GArray *examples, bool slowest)
{
    g_string_append_printf(out, ", \"%s\": [", name);
    for (guint i = 0; i < examples->len; i++) {
        const example *e = &g_array_index(examples, example, i);
        g_string_append_printf(out, "%s{\"from_ns\": %" PRId64 ", \"total_ns\": %" PRId64, i == 0 ? "" : ", ",
                               e->from_ns, e->total_ns);
        append_name(out, "name", e->name);
        append_by(out, m, e->by);
        if (!slowest || e->longest_ns >= 0) {
            append_name(out, slowest ? "longest_from" : "first", m->definition->events[e->first]);
            append_name(out, slowest ? "longest_to" : "then", m->definition->events[e->last]);
        }
        if (slowest && e->longest_ns >= 0)
            g_string_append_printf(out, ", \"longest_ns\": %" PRId64, e->longest_ns);
        g_string_append_c(out, '}');
    }
    g_string_append_c(out, ']');
}

static void append_segments(GString *out, const measure *m)
{
    g_string_append(out, ", \"segments\": [");
    for (guint i = 0; i < m->segments->len; i++) {
        segment *s = g_ptr_array_index(m->segments, i);
        g_string_append_printf(out, "%s\n    {\"from\": ", i == 0 ? "" : ",");
        json_append_string(out, m->definition->events[s->from]);
        append_name(out, "to", m->definition->events[s->to]);
        append_by(out, m, s->by);
        append_times(out, &s->times, measure_total_ns(m));
        g_string_append_c(out, '}');
    }
    g_string_append(out, "]");
}

static void append_pairs(GString *out, const measure *m)
{
    g_string_append(out, ", \"pairs\": [");
    for (guint i = 0; i < m->pairs->len; i++) {
        pair *p = g_ptr_array_index(m->pairs, i);
        g_string_append_printf(out, "%s\n    {\"never_ended\": %" PRIu64 ", \"never_started\": %" PRIu64,
                               i == 0 ? "" : ",", p->no_end, p->no_start);
        append_name(out, "name", p->name);
        append_by(out, m, p->by);
        append_times(out, &p->inclusive, measure_total_ns(m));
        g_string_append_printf(out, ", \"exclusive_mean_ns\": %.0f, \"exclusive_p50_ns\": %" PRId64 "}",
                               nl_distribution_mean(&p->exclusive), nl_distribution_quantile(&p->exclusive, 0.5));
    }
    g_string_append(out, "]");
}

void report_measure_json(const measure *m)
{
    GString *out = g_string_new("  {\"id\": [");
    for (char **id = m->definition->ids; *id != NULL; id++) {
        g_string_append(out, id == m->definition->ids ? "" : ", ");
        json_append_string(out, *id);
    }
    g_string_append_printf(out,
                           "], \"objects\": %" PRIu64 ", \"without_first\": %" PRIu64 ", \"without_last\": %" PRIu64
                           ", \"disordered\": %" PRIu64 ", \"measured_early\": %" PRIu64 ", \"total_ns\": %.0f",
                           m->objects, m->no_start.count, m->no_end.count, m->disordered.count,
                           gather_early(m->gatherer), measure_total_ns(m));
    append_segments(out, m);
    append_pairs(out, m);
    append_examples(out, m, "slowest", m->slowest, true);
    append_examples(out, m, "without_first_examples", m->no_start.examples, false);
    append_examples(out, m, "without_last_examples", m->no_end.examples, false);
    append_examples(out, m, "disordered_examples", m->disordered.examples, false);
    g_string_append(out, "\n  }");
    fputs(out->str, stdout);
    g_string_free(out, TRUE);
}

void report_throughput_json(throughput *t, int64_t interval_ns)
{
    GString *out = g_string_new("  {\"field\": ");
    json_append_string(out, t->field);
    g_string_append_printf(
        out, ", \"total\": %.17g, \"records\": %" PRIu64 ", \"unusable\": %" PRIu64 ", \"mean_per_second\": %.17g",
        t->total, t->records, t->unusable, throughput_mean(t));
    series_widen(&t->series, interval_ns);
    g_string_append_printf(out, ", \"interval_ns\": %" PRId64 ", \"intervals\": [", t->series.width_ns);
    for (size_t i = 0; i < t->series.count; i++)
        g_string_append_printf(out, "%s{\"from_ns\": %" PRId64 ", \"records\": %" PRIu64 ", \"sum\": %.17g}",
                               i == 0 ? "" : ", ", series_from_ns(&t->series, i), t->series.intervals[i].count,
                               t->series.intervals[i].sum);
    g_string_append(out, "]\n  }");
    fputs(out->str, stdout);
    g_string_free(out, TRUE);
}
