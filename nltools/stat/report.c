#include "config.h"

#include "stat/report.h"

#include "requests/printable.h"
#include "base/time_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH_MIN = 30, NAME_WIDTH_MAX = 72, ROWS_MAX = 30 };

/* Prints a name from the log, without control characters. */
static void print_padded(const char *text, int width)
{
    char *shown = printable(text);
    printf("%s%*s", shown, (int)MAX(0, width - (int)g_utf8_strlen(shown, -1)), "");
    g_free(shown);
}

char *report_segment_name(const measure *m, uint16_t from, uint16_t to)
{
    if (from == to)
        return g_strdup_printf("%s (first to last)", m->definition->events[from]);
    return g_strdup_printf("%s -> %s", m->definition->events[from], m->definition->events[to]);
}

/* Returns the width of the column of segment names. */
static int width_of_names(const measure *m, const GPtrArray *segments)
{
    int width = NAME_WIDTH_MIN;
    for (guint i = 0; i < segments->len; i++) {
        const segment *s = g_ptr_array_index(segments, i);
        char *name = report_segment_name(m, s->from, s->to);
        width = CLAMP((int)strlen(name), width, NAME_WIDTH_MAX);
        g_free(name);
    }
    return width;
}

/* ---- one log ---- */

static void print_times(nl_distribution *d, double total_ns)
{
    static const double shares[] = {0.5, 0.9, 0.99};
    char text[UNITS_SIZE];
    printf(" %5.1f %% %9" PRIu64, total_ns > 0 ? 100 * d->total / total_ns : 0, d->count);
    printf(" %11s", units_time(nl_distribution_mean(d), text));
    for (size_t i = 0; i < G_N_ELEMENTS(shares); i++)
        printf(" %s%10s", nl_distribution_is_exact(d) ? " " : "~",
               units_time((double)nl_distribution_quantile(d, shares[i]), text));
    printf(" %11s\n", units_time((double)d->most, text));
}

static void print_head(const char *what, int width, const char *by)
{
    printf("\n  %-*s", width, what);
    if (by != NULL)
        printf(" %-16s", by);
    printf(" %7s %9s %11s %11s %11s %11s %11s\n", "share", "count", "mean", "p50", "p90", "p99", "max");
}

static void print_row(const measure *m, const char *name, int width, uint16_t by)
{
    printf("  ");
    print_padded(name, width);
    if (m->by) {
        printf(" ");
        print_padded(gather_by(m->gatherer, by), 16);
    }
}

static void print_segments(const measure *m, const char *by)
{
    int width = width_of_names(m, m->segments);
    print_head("segment", width, by);
    for (guint i = 0; i < m->segments->len; i++) {
        segment *s = g_ptr_array_index(m->segments, i);
        char *name = report_segment_name(m, s->from, s->to);
        print_row(m, name, width, s->by);
        print_times(&s->times, m->totals.total);
        g_free(name);
    }
}

static void print_pairs(const measure *m, const char *by)
{
    int width = NAME_WIDTH_MIN;
    for (guint i = 0; i < m->pairs->len; i++)
        width = CLAMP((int)strlen(((pair *)g_ptr_array_index(m->pairs, i))->name) + 18, width, NAME_WIDTH_MAX);
    if (m->pairs->len == 0)
        return;
    print_head("pair", width, by);
    for (guint i = 0; i < m->pairs->len; i++) {
        pair *p = g_ptr_array_index(m->pairs, i);
        print_row(m, p->name, width, p->by);
        print_times(&p->inclusive, m->totals.total);
        if (p->exclusive.total < p->inclusive.total) {
            print_row(m, "  exclusive", width, p->by);
            print_times(&p->exclusive, m->totals.total);
        }
        if (p->no_end > 0)
            printf("    %" PRIu64 " have no end\n", p->no_end);
        if (p->no_start > 0)
            printf("    %" PRIu64 " have no start\n", p->no_start);
    }
}

static void print_example(const measure *m, const example *e)
{
    char time[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(e->from_ns, time);
    printf("    ");
    print_padded(e->name, NAME_WIDTH_MIN - 2);
    if (m->by) {
        printf(" ");
        print_padded(gather_by(m->gatherer, e->by), 16);
    }
    printf(" %s", time);
}

static void print_oddity(const measure *m, const oddity *o, const char *what, bool missing)
{
    if (o->count == 0)
        return;
    printf("  %" PRIu64 " request%s ", o->count, o->count == 1 ? "" : "s");
    print_padded(what, 0);
    printf("\n");
    for (guint i = 0; i < o->examples->len; i++) {
        const example *e = &g_array_index(o->examples, example, i);
        print_example(m, e);
        printf("  %s", missing ? "lacks " : "");
        print_padded(m->definition->events[e->first], 0);
        if (!missing) {
            printf(" before ");
            print_padded(m->definition->events[e->last], 0);
        }
        printf("\n");
    }
    if (o->examples->len > 0 && o->examples->len < o->count)
        printf("    ...\n");
}

static void print_slowest(const measure *m)
{
    if (m->slowest->len == 0)
        return;
    printf("\n  slowest requests\n");
    for (guint i = 0; i < m->slowest->len; i++) {
        const example *e = &g_array_index(m->slowest, example, i);
        char text[UNITS_SIZE];
        print_example(m, e);
        printf("  %s", units_time((double)e->total_ns, text));
        if (e->longest_ns >= 0) {
            char *name = report_segment_name(m, e->first, e->last);
            printf(", of which %s in ", units_time((double)e->longest_ns, text));
            print_padded(name, 0);
            g_free(name);
        }
        printf("\n");
    }
}

void report_measure(const measure *m, const char *by)
{
    char *ids = g_strjoinv(", ", m->definition->ids), text[UNITS_SIZE];
    printf("Requests by %s: %" PRIu64 ", %s in total", ids, m->requests, units_time(m->totals.total, text));
    printf(", %s each\n", units_time(nl_distribution_mean(&m->totals), text));
    g_free(ids);
    char *without = g_strdup_printf("without %s, the first event", m->definition->events[0]);
    print_oddity(m, &m->no_start, without, true);
    g_free(without);
    without = g_strdup_printf("without %s, the last event", m->definition->events[m->event_count - 1]);
    print_oddity(m, &m->no_end, without, true);
    g_free(without);
    print_oddity(m, &m->disordered, "with events in another order", false);
    if (gather_early(m->gatherer) > 0)
        printf("  %" PRIu64 " requests were measured before they ended; allow more with --memory\n",
               gather_early(m->gatherer));
    if (m->left_out > 0)
        printf("  %" PRIu64 " times were left out: too many segments and groups\n", m->left_out);
    print_segments(m, by);
    print_pairs(m, by);
    bool exact = true;
    for (guint i = 0; i < m->segments->len; i++)
        exact = exact && nl_distribution_is_exact(&((segment *)g_ptr_array_index(m->segments, i))->times);
    if (!exact)
        printf("  ~: within 1 %%, because of the number of values\n");
    print_slowest(m);
    printf("\n");
}

/* ---- throughput ---- */

/* Returns 1, 2 or 5 times a power of ten, so that there are at most ROWS_MAX rows. */
static int64_t nice_interval_ns(double span_ns)
{
    static const int steps[] = {1, 2, 5};
    for (int64_t power_ns = 1000000; power_ns < INT64_MAX / 50; power_ns *= 10)
        for (size_t i = 0; i < G_N_ELEMENTS(steps); i++)
            if (span_ns / (double)(steps[i] * power_ns) <= ROWS_MAX)
                return steps[i] * power_ns;
    return INT64_MAX / 50;
}

void report_throughput(throughput *t, int64_t interval_ns)
{
    char text[UNITS_SIZE], time[NL_TIME_TEXT_SIZE];
    printf("%s: %s", t->field, units_quantity(t->total, text));
    printf(" in %" PRIu64 " records", t->records);
    printf(", %s per second\n", units_quantity(throughput_mean(t), text));
    if (t->unusable > 0)
        printf("  %" PRIu64 " values are not numbers\n", t->unusable);
    if (interval_ns == 0)
        interval_ns = nice_interval_ns((double)t->series.width_ns * (double)t->series.count);
    series_widen(&t->series, interval_ns);
    double most = 0;
    for (size_t i = 0; i < t->series.count; i++)
        most = MAX(most, t->series.intervals[i].sum);
    printf("\n  %-28s %9s %11s %12s\n", "from", "records", "sum", "per second");
    for (size_t i = 0; i < t->series.count; i++) {
        const series_interval *interval = &t->series.intervals[i];
        nl_time_format_iso(series_from_ns(&t->series, i), time);
        printf("  %-28s %9" PRIu64 " %11s", time, interval->count, units_quantity(interval->sum, text));
        printf(" %12s ", units_quantity(interval->sum / ((double)t->series.width_ns / 1e9), text));
        for (int bar = 0; most > 0 && bar < (int)(30 * interval->sum / most + 0.5); bar++)
            printf("#");
        printf("\n");
    }
    printf("\n");
}

/* ---- several logs ---- */

static void print_compared(measure *const *logs, int count, const segment *s)
{
    const measure *first_log = logs[0];
    char text[UNITS_SIZE];
    double first_ns = -1, last_ns = -1;
    for (int i = 0; i < count; i++) {
        segment *other =
            measure_find(logs[i], first_log->definition->events[s->from], first_log->definition->events[s->to], "");
        if (other == NULL) {
            printf(" %11s %11s %7s", "-", "-", "-");
            continue;
        }
        double total_ns = logs[i]->totals.total;
        printf(" %11s", units_time(nl_distribution_mean(&other->times), text));
        printf(" %11s %5.1f %%", units_time((double)nl_distribution_quantile(&other->times, 0.99), text),
               total_ns > 0 ? 100 * other->times.total / total_ns : 0);
        first_ns = i == 0 ? nl_distribution_mean(&other->times) : first_ns;
        last_ns = i == count - 1 ? nl_distribution_mean(&other->times) : last_ns;
    }
    if (first_ns > 0 && last_ns >= 0)
        printf(" %8.2f\n", last_ns / first_ns);
    else
        printf(" %8s\n", "-");
}

/* Returns the segments of all logs, in the order of their events. */
static GPtrArray *all_segments(measure *const *logs, int count)
{
    GPtrArray *all = g_ptr_array_new();
    for (int i = 0; i < count; i++)
        for (guint k = 0; k < logs[i]->segments->len; k++) {
            segment *s = g_ptr_array_index(logs[i]->segments, k);
            guint at = 0;
            while (at < all->len) {
                const segment *other = g_ptr_array_index(all, at);
                if (other->from > s->from || (other->from == s->from && other->to >= s->to))
                    break;
                at++;
            }
            const segment *there = at < all->len ? g_ptr_array_index(all, at) : NULL;
            if (there == NULL || there->from != s->from || there->to != s->to)
                g_ptr_array_insert(all, (gint)at, s);
        }
    return all;
}

void report_comparison(measure *const *logs, char *const *names, int count)
{
    char *ids = g_strjoinv(", ", logs[0]->definition->ids), text[UNITS_SIZE];
    GPtrArray *all = all_segments(logs, count);
    printf("Requests by %s\n", ids);
    for (int i = 0; i < count; i++) {
        printf("  %d  ", i + 1);
        print_padded(names[i], 0);
        printf(": %" PRIu64 ", %s each", logs[i]->requests, units_time(nl_distribution_mean(&logs[i]->totals), text));
        printf("; %" PRIu64 " without the first event, %" PRIu64 " without the last, %" PRIu64 " in another order\n",
               logs[i]->no_start.count, logs[i]->no_end.count, logs[i]->disordered.count);
    }
    int width = width_of_names(logs[0], all);
    printf("\n  %-*s", width, "segment");
    for (int i = 0; i < count; i++)
        printf(" %9s %d %9s %d %5s %d", "mean", i + 1, "p99", i + 1, "share", i + 1);
    printf(" %6s/%d\n", count > 1 ? "mean" : "", 1);
    for (guint i = 0; i < all->len; i++) {
        const segment *s = g_ptr_array_index(all, i);
        char *name = report_segment_name(logs[0], s->from, s->to);
        printf("  ");
        print_padded(name, width);
        print_compared(logs, count, s);
        g_free(name);
    }
    printf("\n");
    g_ptr_array_free(all, TRUE);
    g_free(ids);
}
