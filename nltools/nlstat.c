/*
 * nlstat measures where the time of requests goes: each segment's share, mean and percentiles, missing events, the
 * slowest requests, throughput, and several logs side by side.
 *
 * nlstat reads the records once and does not keep them. The subject (stat/subject.h) finds the lifelines and passes on
 * the records; each lifeline has a measure (stat/measure.h).
 */
#include "config.h"

#include "program/program.h"
#include "stat/measure.h"
#include "charts/chart.h"
#include "stat/plot.h"
#include "stat/report.h"
#include "program/json_document.h"
#include "stat/subject.h"
#include "stat/throughput.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    subject_options subject;
    const char *by;
    const char *throughput;
    const char *plot;
    bool json, compare;
    int64_t interval_ns;
    size_t slowest, missing;
    char **files;
    int file_count;
} arguments;

/* The results for one log (with --compare), or for all logs together. */
typedef struct study {
    measure **measures; /* one for each lifeline, ended by NULL; NULL until the lifelines are known */
    throughput throughput;
} study;

typedef struct work {
    const arguments *arguments;
    subject *subject;
    const drawing *drawing; /* owned by the subject; NULL until the lifelines are known */
    study *studies;
    study *current; /* of the log that is being read */
    int count;
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
     .help = "Group requests by FIELD; HOST means the host that the fewest requests visit"},
    {.name = "slowest",
     .type = NL_OPTION_COUNT,
     .initial = "0",
     .maximum = 1000000,
     NL_OPTION_MEMBER(arguments, slowest),
     .help = "Print the COUNT slowest requests, and the segment of each that took the most time"},
    {.name = "missing",
     .type = NL_OPTION_COUNT,
     .initial = "3",
     .maximum = 1000000,
     NL_OPTION_MEMBER(arguments, missing),
     .help = "Print at most COUNT requests that lack their first or last event, or that ran in another order"},
    {.name = "throughput",
     .value = "FIELD",
     NL_OPTION_MEMBER(arguments, throughput),
     .help = "Measure throughput: the sum of FIELD (bytes) over time"},
    {.name = "interval",
     .type = NL_OPTION_DURATION,
     .initial = "(about 30 intervals)",
     .minimum = 1000000,
     NL_OPTION_MEMBER(arguments, interval_ns),
     .help = "Length of the intervals of --throughput"},
    {.name = "compare",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, compare),
     .help = "Measure each SOURCE separately, print the results side by side, and compare the last with the first"},
    {.name = "plot",
     .value = "FILE",
     .set = set_plot,
     NL_OPTION_MEMBER(arguments, plot),
     .help = "Draw durations and throughput in FILE.png or FILE.svg; - prints histograms"},
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, json),
     .help = "Print JSON; times are in nanoseconds"},
    {0},
};

static void check_arguments(const arguments *a)
{
    if (a->compare && a->file_count < 2)
        options_fail("--compare: needs at least two logs");
    if (a->compare && (a->by != NULL || a->throughput != NULL || a->json || a->plot != NULL))
        options_fail("--compare: excludes --by, --throughput, --json and --plot");
    if (a->interval_ns > 0 && a->throughput == NULL)
        options_fail("--interval: needs --throughput");
}

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0}, SUBJECT_GROUPS(arguments)},
    .operands = "[SOURCE...]",
    .summary = "Report where the time of requests, blocks and jobs goes: the time between each event of a request and "
               "the next. Without SOURCE, read standard input. " PROGRAM_SOURCES ".",
    .notes =
        "Examples:\n  nlstat --id BLOCK.ID --by HOST dpss.log\n  nlstat --slowest 10 --throughput SEND.SZ dpss.log\n"
        "  nlstat --compare before.log after.log",
};

/* ---- reading ---- */

static void nlstat_begin(void *user, const drawing *d)
{
    work *w = user;
    const arguments *a = w->arguments;
    guint count = d->lifelines->len;
    w->drawing = d;
    for (int i = 0; i < w->count; i++) {
        w->studies[i].measures = g_new0(measure *, count + 1);
        w->studies[i].throughput.field = a->throughput;
        for (guint k = 0; k < count; k++)
            w->studies[i].measures[k] = measure_new(g_ptr_array_index(d->lifelines, k), a->by,
                                                    a->subject.memory_max / count, a->slowest, a->missing);
    }
}

static void nlstat_take(void *user, const nl_record *record)
{
    work *w = user;
    study *s = w->current;
    if (s->throughput.field != NULL)
        throughput_add(&s->throughput, record);
    for (measure **m = s->measures; *m != NULL; m++)
        measure_add(*m, record);
}

static bool read_logs(work *w)
{
    static char *standard_input[] = {"-"};
    const arguments *a = w->arguments;
    char **files = a->file_count > 0 ? a->files : standard_input;
    int count = MAX(a->file_count, 1);
    bool ok = true;
    for (int i = 0; i < count; i++) {
        w->current = &w->studies[a->compare ? i : 0];
        ok = subject_read(w->subject, files[i]) && ok;
        if (!a->compare && i < count - 1)
            continue;
        subject_settle(w->subject);
        for (measure **m = w->current->measures; *m != NULL; m++)
            measure_finish(*m);
    }
    return ok;
}

/* ---- reports ---- */

static void print_json(const work *w)
{
    study *s = &w->studies[0];
    json_object *document = json_object_new_array();
    for (measure **m = s->measures; *m != NULL; m++)
        json_object_array_add(document, report_measure_json(*m));
    if (s->throughput.field != NULL)
        json_object_array_add(document, report_throughput_json(&s->throughput, w->arguments->interval_ns));
    json_document_write(document, stdout);
}

static void print_comparison(const work *w)
{
    measure **logs = g_new(measure *, w->count);
    for (guint i = 0; i < w->drawing->lifelines->len; i++) {
        for (int k = 0; k < w->count; k++)
            logs[k] = w->studies[k].measures[i];
        report_comparison(logs, w->arguments->files, w->count);
    }
    g_free(logs);
}

static void print_report(const work *w)
{
    const arguments *a = w->arguments;
    study *s = &w->studies[0];
    for (measure **m = s->measures; *m != NULL; m++)
        report_measure(*m, a->by);
    if (a->throughput != NULL)
        report_throughput(&s->throughput, a->interval_ns);
}

static bool plot(const work *w)
{
    study *s = &w->studies[0];
    int count = (int)w->drawing->lifelines->len;
    const char *path = w->arguments->plot;
    if (path == NULL)
        return true;
    if (strcmp(path, "-") == 0) {
        plot_print(s->measures, count);
        return true;
    }
    bool ok = plot_write(path, s->measures, count, s->throughput.field != NULL ? &s->throughput : NULL);
    if (!ok)
        program_error("write %s: %s", path, nl_error_message());
    return ok;
}

static bool nlstat_report(const work *w, bool ok)
{
    const arguments *a = w->arguments;
    if (subject_records(w->subject) == 0) {
        if (ok)
            program_error("%s: no records", a->file_count > 0 ? a->files[0] : "-");
        return false;
    }
    if (w->drawing->lifelines->len == 0 && a->throughput == NULL) {
        program_error(a->subject.ids != NULL ? "no two events have the same values of --id"
                                             : "cannot find a request ID field; name one with --id");
        return false;
    }
    uint64_t late = subject_late(w->subject);
    if (late > 0)
        program_error("%" PRIu64 " records were not measured: their events do not occur at the beginning; describe the "
                      "lifelines with --config",
                      late);
    if (a->json)
        print_json(w);
    else if (a->compare)
        print_comparison(w);
    else
        print_report(w);
    return plot(w) && ok;
}

static void nlstat_free(work *w)
{
    for (int i = 0; i < w->count; i++) {
        for (measure **m = w->studies[i].measures; *m != NULL; m++)
            measure_free(*m);
        g_free(w->studies[i].measures);
        throughput_clear(&w->studies[i].throughput);
    }
    g_free(w->studies);
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
    work w = {.arguments = &a, .count = a.compare ? a.file_count : 1};
    w.studies = g_new0(study, w.count);
    w.subject = subject_new(&a.subject, (subject_user){nlstat_begin, nlstat_take, &w});
    bool ok = read_logs(&w);
    ok = nlstat_report(&w, ok);
    nlstat_free(&w);
    ok = subject_options_finish(&a.subject) && ok;
    return program_finish(ok ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
