#include "config.h"

#include "stat/report.h"

#include "base/text.h"
#include "requests/printable.h"
#include "base/time_internal.h"
#include "stat/subject.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH_MIN = 30, NAME_WIDTH_MAX = 72, GROUP_WIDTH = 12 };

static void report_print_padded(const char *text, int width)
{
    char *shown = printable(text);
    printf("%s%*s", shown, (int)MAX(0, width - (int)g_utf8_strlen(shown, -1)), "");
    g_free(shown);
}

static const char *event_text(const report_subject *r, uint32_t name)
{
    return name == REQUEST_NONE ? "?" : event_names_text(request_reader_names(assembler_reader(r->assembler)), name);
}

/* Returns the name of a span, edge or part. If `with_program` is true, the name of a span contains its program. The
 * caller frees the name with g_free. */
static char *report_row_name(const report_subject *r, const tally_key *key, bool with_program)
{
    const char *inferred = key->inferred ? " (inferred)" : "";
    if (key->kind == TALLY_PART)
        return g_strdup_printf("  %s -> %s", event_text(r, key->from), event_text(r, key->to));
    if (key->kind == TALLY_EDGE && key->from == REQUEST_NONE)
        return g_strdup_printf("before %s", event_text(r, key->to));
    if (key->kind == TALLY_EDGE)
        return g_strdup_printf("%s -> %s%s", event_text(r, key->from), event_text(r, key->to), inferred);
    const char *program = request_reader_program(assembler_reader(r->assembler), key->program);
    return g_strdup_printf(with_program && *program != '\0' ? "%s @%s" : "%s", event_text(r, key->span), program);
}

const char *report_group(const report_subject *r, uint32_t by)
{
    return by == TALLY_BY_OTHERS ? "(others)" : assembler_by(r->assembler, by);
}

/* Returns whether the spans come from several programs. A span's name is then not unique without the program. */
static bool has_programs(const tally *t)
{
    uint32_t first = REQUEST_NONE;
    for (guint i = 0; i < t->rows->len; i++) {
        const tally_row *row = g_ptr_array_index(t->rows, i);
        if (row->key.kind == TALLY_SPAN && first == REQUEST_NONE)
            first = row->key.program;
        if (row->key.kind == TALLY_SPAN && row->key.program != first)
            return true;
    }
    return false;
}

static int report_name_width(const report_subject *r, bool programs)
{
    int width = NAME_WIDTH_MIN;
    for (guint i = 0; i < r->tally->rows->len; i++) {
        char *name = report_row_name(r, &((const tally_row *)g_ptr_array_index(r->tally->rows, i))->key, programs);
        width = CLAMP((int)g_utf8_strlen(name, -1), width, NAME_WIDTH_MAX);
        g_free(name);
    }
    return width;
}

/* ---- one log ---- */

/* Prints the columns that follow the name of a row: share, count, total, self time, mean, percentiles and maximum. */
static void print_times(const report_subject *r, tally_row *row)
{
    static const double shares[] = {0.5, 0.9, 0.99};
    double all_ns = r->tally->totals.total;
    char text[UNITS_SIZE];
    nl_distribution *d = &row->times;
    printf(" %5.1f %% %8" PRIu64, all_ns > 0 ? 100 * row->path_ns / all_ns : 0, d->count);
    printf(" %10s", units_time(d->total, text));
    if (row->key.kind != TALLY_GROUP)
        printf(" %10s", row->key.kind == TALLY_SPAN ? units_time(row->self_ns, text) : "");
    printf(" %10s", units_time(nl_distribution_mean(d), text));
    for (size_t i = 0; i < G_N_ELEMENTS(shares); i++)
        printf("%s%10s", nl_distribution_is_exact(d) ? " " : "~",
               units_time((double)nl_distribution_quantile(d, shares[i]), text));
    printf(" %10s", units_time((double)d->maximum, text));
    if (row->key.kind == TALLY_GROUP)
        printf(" %8" PRIu64, row->failed);
    printf("\n");
}

static void print_row(const report_subject *r, tally_row *row, int width, bool programs)
{
    char *name = report_row_name(r, &row->key, programs);
    printf("  ");
    report_print_padded(name, width);
    if (r->by != NULL) {
        printf(" ");
        report_print_padded(report_group(r, row->key.by), GROUP_WIDTH);
    }
    print_times(r, row);
    g_free(name);
}

static void print_groups(const report_subject *r)
{
    const GPtrArray *groups = r->tally->groups;
    if (groups == NULL)
        return;
    printf("\n  %-*s %7s %8s %10s %10s %10s %10s %10s %10s %8s\n", NAME_WIDTH_MIN, r->by, "share", "requests", "total",
           "mean", "p50", "p90", "p99", "max", "failed");
    for (guint i = 0; i < groups->len; i++) {
        tally_row *row = g_ptr_array_index(groups, i);
        const char *name = report_group(r, row->key.by);
        printf("  ");
        report_print_padded(*name != '\0' ? name : "(without the field)", NAME_WIDTH_MIN);
        print_times(r, row);
    }
}

static void print_rows(const report_subject *r)
{
    const tally *t = r->tally;
    bool programs = has_programs(t), exact = true, inferred = false;
    double minimum = 1; /* the minimum certainty of all rows */
    int width = report_name_width(r, programs);
    printf("\n  %-*s", width, "span or edge");
    if (r->by != NULL)
        printf(" %-*s", GROUP_WIDTH, r->by);
    printf(" %7s %8s %10s %10s %10s %10s %10s %10s %10s\n", "share", "count", "total", "self", "mean", "p50", "p90",
           "p99", "max");
    for (guint i = 0; i < t->rows->len; i++) {
        tally_row *row = g_ptr_array_index(t->rows, i);
        print_row(r, row, width, programs);
        exact = exact && nl_distribution_is_exact(&row->times);
        if (row->key.inferred) {
            inferred = true;
            minimum = MIN(minimum, row->certainty / (double)row->path_count);
        }
    }
    if (minimum < 1)
        printf("  inferred: this order holds in at least %.1f %% of the requests\n",
               floor(1000 * minimum + 0.001) / 10);
    else if (inferred)
        printf("  inferred: this order holds in all requests\n");
    if (!exact)
        printf("  ~: accurate to 1 %%, because there are too many values to keep all\n");
}

static void print_tree(const report_subject *r, const tally_example *e)
{
    char text[UNITS_SIZE];
    if (e->span_count > 0)
        printf("      %-30s %-12s %14s %11s %11s\n", "span", "host", "begins after", "takes", "self");
    for (size_t i = 0; i < e->span_count; i++) {
        const request_span *s = &e->spans[i];
        tally_key key = {.kind = TALLY_SPAN, .span = s->name, .program = s->program};
        char *name = report_row_name(r, &key, true);
        int indent = (int)(2 * MIN(s->depth, 20));
        printf("    %s %*s", s->path_ns > 0 ? "*" : " ", indent, "");
        report_print_padded(name, MAX(0, NAME_WIDTH_MIN - indent));
        printf(" ");
        report_print_padded(request_reader_host(assembler_reader(r->assembler), s->host), 12);
        printf(" %14s", units_time((double)(s->begin_ns - e->from_ns), text));
        printf(" %11s", s->end == REQUEST_NONE ? "no end" : units_time((double)(s->end_ns - s->begin_ns), text));
        printf(" %11s%s\n", units_time((double)s->self_ns, text), s->failed ? "  failed" : "");
        g_free(name);
    }
}

static void print_path(const report_subject *r, const tally_example *e)
{
    char text[UNITS_SIZE];
    if (e->path_count > 0)
        printf("      %-30s %-12s %14s %11s\n", "critical path", "", "begins after", "takes");
    for (size_t i = 0; i < e->path_count; i++) {
        const tally_step *step = &e->path[i];
        char *name = report_row_name(r, &step->key, true);
        printf("      ");
        report_print_padded(name, NAME_WIDTH_MIN + 13);
        printf(" %14s", units_time((double)(step->from_ns - e->from_ns), text));
        printf(" %11s\n", units_time((double)step->took_ns, text));
        g_free(name);
    }
}

static void print_slowest(const report_subject *r)
{
    const tally *t = r->tally;
    bool tree = false;
    if (t->slowest->len == 0)
        return;
    printf("\n  slowest requests\n");
    for (guint i = 0; i < t->slowest->len; i++) {
        const tally_example *e = &g_array_index(t->slowest, tally_example, i);
        char text[UNITS_SIZE], time[NL_TIME_TEXT_SIZE], *name = report_row_name(r, &e->longest, true);
        nl_time_format_iso(e->from_ns, time);
        printf("    ");
        report_print_padded(e->name, NAME_WIDTH_MIN - 2);
        printf(" %s  %s%s", time, units_time((double)e->total_ns, text), e->failed ? ", failed" : "");
        if (e->doubts != 0)
            printf(", uncertain");
        if (e->longest_ns > 0) {
            printf(", of which %s in ", units_time(e->longest_ns, text));
            report_print_padded(name, 0);
        }
        printf("\n");
        print_tree(r, e);
        print_path(r, e);
        tree = tree || e->span_count > 0;
        g_free(name);
    }
    if (tree)
        printf("  *: on the critical path\n");
}

static void print_count(uint64_t count, const char *one, const char *many)
{
    if (count > 0)
        printf("  %" PRIu64 " %s\n", count, count == 1 ? one : many);
}

static void print_without(const report_subject *r, bool last)
{
    uint32_t name = 0;
    uint64_t count = tally_count_without(r->tally, last, &name);
    if (count == 0 || strcmp(r->ids[0], "thread") == 0)
        return;
    printf("  %" PRIu64 " request%s ", count, count == 1 ? " lacks" : "s lack");
    report_print_padded(event_text(r, name), 0);
    printf(", the usual %s event\n", last ? "last" : "first");
}

/* For each reason, prints the number of requests with an uncertain critical path, and their part of the time. */
static void print_doubts(const tally *t)
{
    const struct {
        uint64_t count;
        const char *one, *many;
    } reasons[] = {
        {t->lossy, "lacks records", "lack records"},
        {t->skewed, "depends on clocks that are wrong or unknown", "depend on clocks that are wrong or unknown"},
        {t->contradictory, "has times or parents that contradict each other",
         "have times or parents that contradict each other"}};
    if (t->doubtful == 0)
        return;
    printf("  %" PRIu64 " request%s uncertain:", t->doubtful, t->doubtful == 1 ? " is" : "s are");
    const char *separator = "";
    for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++) {
        if (reasons[i].count == 0)
            continue;
        printf("%s %" PRIu64 " %s", separator, reasons[i].count,
               reasons[i].count == 1 ? reasons[i].one : reasons[i].many);
        separator = ",";
    }
    if (t->totals.total > 0)
        printf("; they take %.1f %% of the time, which may be attributed to the wrong spans",
               100 * t->doubtful_ns / t->totals.total);
    printf("\n");
}

static void print_zones(const report_subject *r)
{
    char text[UNITS_SIZE];
    for (size_t i = 0; i < r->tally->zone_count; i++) {
        const tally_zone *z = &r->tally->zones[i];
        const char *host = request_reader_host(assembler_reader(r->assembler), z->host);
        printf("  the time%s of %" PRIu64 " ", nl_plural(z->count), z->count);
        report_print_padded(event_text(r, z->event), 0);
        printf(" event%s%s", nl_plural(z->count), *host != '\0' ? " on host " : "");
        report_print_padded(host, 0);
        printf(" %s corrected by %s, because the durations of these spans show another time zone\n",
               z->count == 1 ? "is" : "are", units_time((double)z->zone_ns, text));
    }
}

/* Prints at most PAIRS_MAX pairs of hosts whose clocks seem to differ. */
static void print_corrected_hosts(const report_subject *r)
{
    int64_t max_ns;
    char text[UNITS_SIZE];
    const size_t hosts = assembler_corrected_hosts(r->assembler, &max_ns);
    if (hosts > 0)
        printf("  the times of %zu host%s are corrected by up to %s, because messages seemed to arrive before they "
               "were sent\n",
               hosts, nl_plural(hosts), units_time((double)max_ns, text));
}

static void print_doubtful_clocks(const report_subject *r)
{
    enum { PAIRS_MAX = 5 };
    const request_reader *reader = assembler_reader(r->assembler);
    size_t count;
    const clock_doubt *doubts = clock_doubts_list(assembler_clock_doubts(r->assembler), &count);
    char text[UNITS_SIZE];
    for (size_t i = 0; i < MIN(count, PAIRS_MAX); i++) {
        printf("  the clock of ");
        report_print_padded(request_reader_host(reader, doubts[i].host), 0);
        printf(" seems to be %s ahead of the clock of ", units_time((double)doubts[i].ahead_ns, text));
        report_print_padded(request_reader_host(reader, doubts[i].other), 0);
        printf(", unless messages take that long; log ClockOffset records\n");
    }
    if (count > PAIRS_MAX)
        printf("  the clocks of %zu other pair%s of hosts seem to differ\n", count - PAIRS_MAX,
               nl_plural(count - PAIRS_MAX));
}

/* Prints at most EDGES_MAX edges whose minimum duration is a multiple of half an hour, plus at most 10 minutes. The two
 * events of these edges are probably in different time zones. Ignores edges that occur fewer than COUNT_MIN times. */
static void print_zones_of_edges(const report_subject *r)
{
    enum { COUNT_MIN = 10, EDGES_MAX = 5 };
    const double half_hour_ns = 1800e9, delay_ns = 600e9;
    int left = EDGES_MAX;
    for (guint i = 0; i < r->tally->rows->len && left > 0; i++) {
        const tally_row *row = g_ptr_array_index(r->tally->rows, i);
        double minimum_ns = (double)row->times.minimum,
               zone_ns = half_hour_ns * (double)(int64_t)(minimum_ns / half_hour_ns);
        if (row->key.kind != TALLY_EDGE || row->times.count < COUNT_MIN || zone_ns == 0 ||
            minimum_ns - zone_ns > delay_ns)
            continue;
        char text[UNITS_SIZE], *name = report_row_name(r, &row->key, true);
        printf("  each ");
        report_print_padded(name, 0);
        printf(" takes at least %s: the two events are in different time zones, or the clock of a host is wrong; log "
               "times in UTC\n",
               units_time(zone_ns, text));
        g_free(name);
        left--;
    }
}

void report_requests(const report_subject *r)
{
    tally *t = r->tally;
    char *ids = g_strjoinv(", ", (char **)r->ids), text[UNITS_SIZE];
    printf("Requests by %s: %" PRIu64 ", %s in total", ids, t->requests, units_time(t->totals.total, text));
    printf(", %s each", units_time(nl_distribution_mean(&t->totals), text));
    printf("; p99 %s", units_time((double)nl_distribution_quantile(&t->totals, 0.99), text));
    printf(", max %s\n", units_time((double)t->totals.maximum, text));
    g_free(ids);
    const request_problems *p = &t->problems;
    print_count(t->failed, "request failed", "requests failed");
    print_without(r, false);
    print_without(r, true);
    print_count(p->no_end, "span has no end", "spans have no end");
    print_count(p->no_begin, "span has no start", "spans have no start");
    print_count(p->no_parent, "parent is missing", "parents are missing");
    print_count(p->cycles, "span is its own ancestor", "spans are their own ancestors");
    print_count(p->violations - p->one_clock, "effect is before its cause; check the clocks of the hosts",
                "effects are before their causes; check the clocks of the hosts");
    print_count(p->one_clock, "effect is before its cause on the same clock; check the parents and times of the spans",
                "effects are before their causes on the same clock; check the parents and times of the spans");
    print_count(p->unknown_clocks, "effect is before its cause, on a host whose clock's error is unknown",
                "effects are before their causes, on hosts whose clocks' errors are unknown");
    print_count(p->async, "span is asynchronous: it ends after its parent",
                "spans are asynchronous: they end after their parents");
    print_count(p->late,
                "span ends after its parent: the span is asynchronous, or a clock with an unknown error is wrong",
                "spans end after their parents: the spans are asynchronous, or a clock with an unknown error is wrong");
    print_count(
        p->awaited,
        "span ends after its parent, which waited for it: the clocks differ, or the program logs the end late",
        "spans end after their parents, which waited for them: the clocks differ, or programs log the ends late");
    print_count(p->missing, "event that requests usually have is missing",
                "events that requests usually have are missing");
    print_count(p->imprecise, "effect is before its cause, within the error of the hosts' clocks",
                "effects are before their causes, within the errors of the hosts' clocks");
    print_zones(r);
    print_zones_of_edges(r);
    print_corrected_hosts(r);
    print_doubtful_clocks(r);
    print_doubts(t);
    if (r->selects_records)
        printf("  " SUBJECT_SELECTED_RECORDS "\n");
    print_count(assembler_unselected(r->assembler), "request does not match --where", "requests do not match --where");
    print_count(assembler_overlapping(r->assembler), REPORT_OVERLAPPING_SPANS, REPORT_OVERLAPPING_SPANS);
    print_count(t->cut, "request was measured before it ended; allow more memory with --memory",
                "requests were measured before they ended; allow more memory with --memory");
    print_count(t->left_out, "duration is not in the table: too many spans and groups",
                "durations are not in the table: too many spans and groups");
    print_groups(r);
    print_rows(r);
    print_slowest(r);
    printf("\n");
}

/* ---- throughput ---- */

void report_throughput(throughput *t, int64_t interval_ns)
{
    char text[UNITS_SIZE], time[NL_TIME_TEXT_SIZE];
    printf("%s: %s", t->field, units_quantity(t->total, text));
    printf(" in %" PRIu64 " record%s", t->records, nl_plural(t->records));
    printf(", %s per second\n", units_quantity(throughput_mean(t), text));
    if (t->unusable > 0)
        printf("  not numbers: %" PRIu64 " value%s\n", t->unusable, nl_plural(t->unusable));
    if (interval_ns == 0)
        interval_ns = series_nice_width_ns((double)t->series.width_ns * (double)t->series.count);
    series_widen(&t->series, interval_ns);
    double maximum = 0;
    for (size_t i = 0; i < t->series.count; i++)
        maximum = MAX(maximum, t->series.intervals[i].sum);
    printf("\n  %-28s %9s %11s %12s\n", "from", "records", "sum", "per second");
    for (size_t i = 0; i < t->series.count; i++) {
        const series_interval *interval = &t->series.intervals[i];
        nl_time_format_iso(series_from_ns(&t->series, i), time);
        printf("  %-28s %9" PRIu64 " %11s", time, interval->count, units_quantity(interval->sum, text));
        printf(" %12s ", units_quantity(interval->sum / ((double)t->series.width_ns / 1e9), text));
        for (int bar = 0; maximum > 0 && bar < (int)(30 * interval->sum / maximum + 0.5); bar++)
            printf("#");
        printf("\n");
    }
    printf("\n");
}
