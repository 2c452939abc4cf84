/*
 * nlstat shows where requests spend their time. nlstat reports the share of each span and edge in the critical paths,
 * means and percentiles of the durations, the slowest requests as trees, and the throughput. With --compare, nlstat
 * compares logs.
 *
 * nlstat reads the records once and does not keep them. The subject (stat/subject.h) finds the ID fields and passes the
 * records on. For each kind of request, an assembler (requests/assembler.h) builds a graph of each request, and a tally
 * (stat/tally.h) adds up the graphs.
 */
#include "config.h"

#include "compare/compare.h"
#include "program/program.h"
#include "charts/chart.h"
#include "stat/connections.h"
#include "stat/plot.h"
#include "stat/report.h"
#include "program/json_document.h"
#include "stat/subject.h"
#include "stat/throughput.h"
#include "base/error.h"

#include <string.h>

typedef struct arguments {
    subject_options subject;
    compare_options compare;
    const char *by;
    const char *throughput;
    const char *plot;
    const char *derived;
    bool json, connections;
    unsigned sort;
    int64_t interval_ns;
    size_t slowest;
    char **files;
    int file_count;
} arguments;

typedef struct work {
    arguments *arguments;
    subject *subject;
    const drawing *drawing; /* owned by the subject; NULL until the lifelines are known */
    report_subject *kinds;  /* an element for each lifeline; NULL until the lifelines are known */
    int kind_count;
    throughput throughput;
} work;

static bool set_plot(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    ((arguments *)settings)->plot = value;
    if (strcmp(value, "-") == 0 || chart_knows(value))
        return true;
    return nl_error_false(NL_ERROR_INVALID, "%s: the name must end in .png or .svg", value);
}

static const nl_option options[] = {
    {.name = "by",
     .value = "FIELD",
     NL_OPTION_MEMBER(arguments, by),
     .help =
         "Group requests by FIELD. With HOST, a request counts for one of the hosts that it visits: the host that the "
         "fewest requests visit. With --connections, FIELD is hosts, program or port"},
    {.name = "connections",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, connections),
     .help = "Report on TCP connections instead of requests: what limits each connection, according to the "
             "TcpConnection records of nlsensor"},
    {.name = "sort",
     .type = NL_OPTION_CHOICE,
     .choices = CONNECTIONS_SORTS,
     .initial = "bytes",
     NL_OPTION_MEMBER(arguments, sort),
     .help = "With --connections, sort by this value in descending order; rate sorts in ascending order"},
    {.name = "derived",
     .value = "FILE",
     .is_path = true,
     NL_OPTION_MEMBER(arguments, derived),
     .help = "With --connections, write the rate and the limits of each connection over time to FILE, as records. nlv "
             "--config connections draws these records"},
    {.name = "slowest",
     .type = NL_OPTION_COUNT,
     .initial = "0",
     .maximum = 1000000,
     NL_OPTION_MEMBER(arguments, slowest),
     .help = "Print the COUNT slowest requests, each as a tree of its spans"},
    {.name = "throughput",
     .value = "FIELD",
     NL_OPTION_MEMBER(arguments, throughput),
     .help = "Measure throughput: the sum of FIELD (bytes) over time"},
    {.name = "interval",
     .type = NL_OPTION_DURATION,
     .initial = "(about 30 intervals)",
     .minimum = 1000000,
     NL_OPTION_MEMBER(arguments, interval_ns),
     .help =
         "Length of a throughput interval. With --connections, also print the rate and the causes in each interval"},
    {.name = "plot",
     .value = "FILE",
     .set = set_plot,
     NL_OPTION_MEMBER(arguments, plot),
     .help = "Write a plot of durations and throughput to FILE.png or FILE.svg; with -, print histograms"},
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, json),
     .help = "Print JSON; times are in nanoseconds"},
    {0},
};

static void check_arguments(const arguments *a)
{
    compare_options_check(&a->compare, a->file_count);
    if (a->compare.compare && (a->slowest > 0 || a->by != NULL || a->throughput != NULL || a->plot != NULL))
        options_fail("--compare cannot be used with --by, --slowest, --throughput or --plot");
    if (a->json && a->plot != NULL && strcmp(a->plot, "-") == 0)
        options_fail("--json cannot be used with --plot -, which prints text");
    if (a->connections && (a->compare.compare || a->slowest > 0 || a->throughput != NULL || a->plot != NULL ||
                           a->subject.ids != NULL || a->subject.config != NULL))
        options_fail("--connections cannot be used with --compare, --slowest, --throughput, --plot, --id or --config");
    if (a->connections && a->subject.requests != NULL)
        options_fail("--connections cannot be used with --where expressions that select requests");
    if (a->sort != SORT_BYTES && !a->connections)
        options_fail("--sort requires --connections");
    if (a->derived != NULL && !a->connections)
        options_fail("--derived requires --connections");
    if (a->connections && a->by != NULL && !connections_can_group(a->by))
        options_fail("--by %s: connections can be grouped by hosts, program or port", a->by);
}

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Comparing", compare_option_rows, offsetof(arguments, compare)},
                                      SUBJECT_GROUPS(arguments)},
    .operands = "[SOURCE...]",
    .summary = "Report where requests, blocks or jobs spend their time: in which spans, and in which edges of their "
               "critical paths. Without SOURCE, read standard input. " PROGRAM_SOURCES ".",
    .notes =
        "Examples:\n  nlstat --id BLOCK.ID --by HOST dpss.log\n  nlstat --slowest 10 --throughput SEND.SZ dpss.log\n"
        "  nlstat --compare before.log --with after.log",
};

/* ---- reading ---- */

static void nlstat_take_request(void *user, const request_graph *graph, const char *name, uint32_t by, bool cut)
{
    const report_subject *kind = user;
    if (graph->overlaps)
        return;
    tally_add(kind->tally, assembler_reader(kind->assembler), graph, name, by, cut);
}

static void nlstat_pack(void *user, const nl_record *record, nl_buffer *buffer)
{
    const report_subject *kind = user;
    (void)record;
    tally_pack(assembler_reader(kind->assembler), buffer);
}

/* The ID field that reports show for requests without ID fields. */
static char *thread_ids[] = {"thread", NULL};
static const drawing_lifeline thread_lifeline = {.ids = thread_ids};

static void nlstat_begin(void *user, const drawing *d)
{
    work *w = user;
    const arguments *a = w->arguments;
    /* without ID fields, the outermost spans of threads are requests */
    bool threads = d->lifelines->len == 0 && a->subject.ids == NULL && a->subject.config == NULL;
    GPtrArray *lifelines = threads ? g_ptr_array_new() : drawing_find_requests(d, a->subject.config != NULL);
    if (threads)
        g_ptr_array_add(lifelines, (void *)&thread_lifeline);
    int count = (int)lifelines->len;
    w->drawing = d;
    w->kinds = g_new0(report_subject, count + 1);
    w->kind_count = count;
    w->throughput.field = a->throughput;
    for (int k = 0; k < count; k++) {
        const drawing_lifeline *lifeline = g_ptr_array_index(lifelines, k);
        const assembler_options options = {
            .ids = threads ? NULL : (const char *const *)lifeline->ids,
            .events = a->subject.config != NULL ? (const char *const *)lifeline->events : NULL,
            .again = lifeline->again,
            .untraced = !lifeline->traced && ((drawing_lifeline *)g_ptr_array_index(lifelines, 0))->traced,
            .splits_unnamed = drawing_splits_unnamed(d),
            .fraction = a->subject.reading.fraction,
            .by = a->by,
            .where = a->subject.requests,
            .memory_max = a->subject.memory_max / (size_t)count,
            .pack = nlstat_pack,
            .take = nlstat_take_request,
            .user = &w->kinds[k],
        };
        w->kinds[k] = (report_subject){lifeline->ids, a->by, assembler_new(&options),
                                       tally_new(a->slowest, a->by != NULL), a->subject.where.filter != NULL};
    }
    g_ptr_array_free(lifelines, TRUE);
}

static void nlstat_take(void *user, const nl_record *record)
{
    work *w = user;
    if (w->throughput.field != NULL)
        throughput_add(&w->throughput, record);
    for (int i = 0; i < w->kind_count; i++)
        assembler_add(w->kinds[i].assembler, record);
}

static bool read_logs(work *w)
{
    static char *standard_input[] = {"-"};
    const arguments *a = w->arguments;
    char **files = a->file_count > 0 ? a->files : standard_input;
    bool ok = true;
    for (int i = 0; i < MAX(a->file_count, 1); i++)
        ok = subject_read(w->subject, files[i]) && ok;
    subject_settle(w->subject);
    for (int k = 0; k < w->kind_count; k++) {
        assembler_finish(w->kinds[k].assembler);
        tally_finish(w->kinds[k].tally);
    }
    return ok;
}

/* ---- reports ---- */

static void print_json(work *w)
{
    json_object *document = json_object_new_array();
    for (int i = 0; i < w->kind_count; i++) {
        json_object *kind = report_requests_json(&w->kinds[i]);
        if (transfers_count(w->kinds[i].tally->transfers) > 0)
            json_object_object_add(kind, "transfers",
                                   transfers_json(w->kinds[i].tally->transfers, w->arguments->interval_ns));
        json_object_array_add(document, kind);
    }
    if (w->throughput.field != NULL)
        json_object_array_add(document, report_throughput_json(&w->throughput, w->arguments->interval_ns));
    json_document_write(document, stdout);
}

static void print_report(work *w)
{
    const arguments *a = w->arguments;
    for (int i = 0; i < w->kind_count; i++) {
        const tally *t = w->kinds[i].tally;
        if (a->throughput == NULL || t->totals.maximum > 0) /* requests of single events have no durations */
            report_requests(&w->kinds[i]);
        if (transfers_count(w->kinds[i].tally->transfers) > 0)
            transfers_print(w->kinds[i].tally->transfers, a->interval_ns);
    }
    if (a->throughput != NULL)
        report_throughput(&w->throughput, a->interval_ns);
}

static bool plot(work *w)
{
    int count = w->kind_count;
    const char *path = w->arguments->plot;
    if (path == NULL)
        return true;
    if (strcmp(path, "-") == 0) {
        plot_print(w->kinds, count);
        return true;
    }
    bool ok = plot_write(path, w->kinds, count, w->throughput.field != NULL ? &w->throughput : NULL);
    if (!ok)
        program_error("write %s: %s", path, nl_error_message());
    return ok;
}

static uint64_t count_requests(const work *w)
{
    uint64_t count = 0;
    for (int k = 0; k < w->kind_count; k++)
        count += w->kinds[k].tally->requests;
    return count;
}

static uint64_t count_overlapping_spans(const work *w)
{
    uint64_t count = 0;
    for (int k = 0; k < w->kind_count; k++)
        count += assembler_overlapping(w->kinds[k].assembler);
    return count;
}

static bool has_nanoseconds(const work *w)
{
    bool has = false;
    for (int k = 0; k < w->kind_count; k++)
        has |= request_reader_has_nanoseconds(assembler_reader(w->kinds[k].assembler));
    return has;
}

static void report_no_match(const subject_options *o)
{
    /* do not report absent fields with --where, because the excluded records may have them */
    char *absent = absent_fields_describe(o->where.filter == NULL ? o->absent : NULL);
    program_error("no request matches --where%s", absent);
    free(absent);
}

static bool nlstat_report(work *w, bool ok)
{
    const arguments *a = w->arguments;
    if (!subject_has_records(w->subject))
        return false;
    if (a->subject.repeated != NULL) {
        program_error("%s", a->subject.repeated);
        return false;
    }
    if (has_nanoseconds(w))
        program_error("%s", REQUEST_NANOSECONDS);
    if (count_requests(w) == 0 && a->throughput == NULL) {
        uint64_t overlapping = count_overlapping_spans(w);
        if (a->subject.requests != NULL)
            report_no_match(&a->subject);
        else if (overlapping > 0)
            program_error("%" PRIu64 " " REPORT_OVERLAPPING_SPANS, overlapping);
        else
            program_error("%s", subject_reason_no_requests(&w->arguments->subject));
        return false;
    }
    if (a->json)
        print_json(w);
    else
        print_report(w);
    return plot(w) && ok;
}

static void nlstat_free(work *w)
{
    for (int k = 0; k < w->kind_count; k++) {
        assembler_free(w->kinds[k].assembler);
        tally_free(w->kinds[k].tally);
    }
    g_free(w->kinds);
    throughput_clear(&w->throughput);
    subject_free(w->subject);
}

int main(int argc, char **argv)
{
    program_start("nlstat");
    arguments a = {0};
    int first = options_parse(&usage, argc, argv, &a);
    a.files = argv + first;
    a.file_count = argc - first;
    check_arguments(&a);
    int status;
    if (a.compare.compare) {
        status = compare_logs(&a.compare, &a.subject, a.files, a.file_count, a.json);
    } else if (a.connections) {
        status =
            connections_report(&(connections_options){a.json, (connections_sort)a.sort, a.interval_ns, a.derived, a.by},
                               &a.subject, a.files, a.file_count);
    } else {
        work w = {.arguments = &a};
        a.subject.has_sources = a.file_count > 1;
        w.subject = subject_new(&a.subject, (subject_user){nlstat_begin, nlstat_take, &w});
        bool ok = read_logs(&w);
        status = nlstat_report(&w, ok) ? PROGRAM_DONE : PROGRAM_PROBLEM;
        nlstat_free(&w);
    }
    compare_options_finish(&a.compare);
    if (!subject_options_finish(&a.subject))
        status = PROGRAM_PROBLEM;
    return program_finish(status);
}
