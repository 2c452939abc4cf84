/*
 * nlstat: the time of lifelines in numbers: each segment's share, mean, percentiles, what is missing, what took
 * longest; how much went through; several logs side by side.
 *
 * Records are read once and not kept: each goes to the measures (stat/measure.h) as it comes, once it is known what the
 * lifelines are (stat/subject.h).
 */
#include "config.h"

#include "program/program.h"
#include "stat/measure.h"
#include "charts/chart.h"
#include "stat/plot.h"
#include "stat/report.h"
#include "stat/subject_options.h"
#include "stat/throughput.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    subject_options subject;
    const char *by;
    const char *size;
    const char *plot;
    bool json, compare;
    int64_t interval_ns;
    size_t slowest, examples;
    char **files;
    int file_count;
} arguments;

/* What is found out about one log, or about all of them together. */
typedef struct study {
    measure **measures; /* of each lifeline; NULL until the lifelines are known */
    throughput throughput;
} study;

typedef struct work {
    const arguments *arguments;
    subject *subject;
    const drawing *drawing; /* the subject's, NULL until the lifelines are known */
    study *studies;
    study *current; /* what is read now belongs to it */
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
     NL_OPTION_MEMBER(arguments, examples),
     .help = "Print at most COUNT requests that lack their first or last event, or that ran in another order"},
    {.name = "size",
     .value = "FIELD",
     NL_OPTION_MEMBER(arguments, size),
     .help = "Measure throughput: the sum of FIELD (bytes) over time"},
    {.name = "interval",
     .type = NL_OPTION_DURATION,
     .initial = "(about 30 intervals)",
     .minimum = 1000000,
     NL_OPTION_MEMBER(arguments, interval_ns),
     .help = "Length of the intervals of --size"},
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

static void check_together(const arguments *a)
{
    if (a->compare && a->file_count < 2)
        options_fail("--compare: needs at least two logs");
    if (a->compare && (a->by != NULL || a->size != NULL || a->json || a->plot != NULL))
        options_fail("--compare: excludes --by, --size, --json and --plot");
    if (a->interval_ns > 0 && a->size == NULL)
        options_fail("--interval: needs --size");
}

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0}, SUBJECT_GROUPS(arguments)},
    .operands = "[SOURCE...]",
    .summary = "Report where the time of requests, blocks and jobs goes: the time between each event of a request and "
               "the next. Without SOURCE, read standard input. " PROGRAM_SOURCES ".",
    .notes = "Examples:\n  nlstat --id BLOCK.ID --by HOST dpss.log\n  nlstat --slowest 10 --size SEND.SZ dpss.log\n"
             "  nlstat --compare before.log after.log",
};

/* ---- what is measured ---- */

static void nlstat_take(void *user, const nl_record *record)
{
    work *w = user;
    study *s = w->current;
    if (s->throughput.field != NULL)
        throughput_add(&s->throughput, record);
    for (guint i = 0; i < w->drawing->lifelines->len; i++)
        measure_add(s->measures[i], record);
}

static void nlstat_begin(void *user, const drawing *d)
{
    work *w = user;
    const arguments *a = w->arguments;
    guint count = d->lifelines->len;
    w->drawing = d;
    for (int i = 0; i < w->count; i++) {
        w->studies[i].measures = g_new0(measure *, count + 1);
        w->studies[i].throughput.field = a->size;
        for (guint k = 0; k < count; k++)
            w->studies[i].measures[k] = measure_new(g_ptr_array_index(d->lifelines, k), a->by,
                                                    subject_steps(&a->subject) / count, a->slowest, a->examples);
    }
}

/* ---- reading ---- */

static void nlstat_add(void *user, const nl_record *record)
{
    subject_add(user, record);
}

static void finish(work *w)
{
    subject_settle(w->subject);
    for (guint i = 0; i < w->drawing->lifelines->len; i++)
        measure_finish(w->current->measures[i]);
}

static bool read_logs(work *w, arguments *a)
{
    static char *standard_input[] = {"-"};
    char **files = a->file_count > 0 ? a->files : standard_input;
    int count = a->file_count > 0 ? a->file_count : 1;
    bool good = true;
    for (int i = 0; i < count; i++) {
        w->current = &w->studies[a->compare ? i : 0];
        good = subject_read(&a->subject, files[i], nlstat_add, w->subject) && good;
        if (a->compare || i == count - 1)
            finish(w);
    }
    return good;
}

/* ---- the answer ---- */

static void report_json(work *w)
{
    study *s = &w->studies[0];
    int count = (int)w->drawing->lifelines->len;
    printf("[\n");
    for (int i = 0; i < count; i++) {
        report_measure_json(s->measures[i]);
        printf("%s\n", i + 1 < count || s->throughput.field != NULL ? "," : "");
    }
    if (s->throughput.field != NULL) {
        report_throughput_json(&s->throughput, w->arguments->interval_ns);
        printf("\n");
    }
    printf("]\n");
}

static void report_side_by_side(const work *w)
{
    measure **logs = g_new(measure *, w->count);
    for (guint i = 0; i < w->drawing->lifelines->len; i++) {
        for (int k = 0; k < w->count; k++)
            logs[k] = w->studies[k].measures[i];
        report_comparison(logs, w->arguments->files, w->count);
    }
    g_free(logs);
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
    bool good = plot_write(path, s->measures, count, s->throughput.field != NULL ? &s->throughput : NULL);
    if (!good)
        program_error("write %s: %s", path, nl_error_message());
    return good;
}

static bool nlstat_report(work *w)
{
    const arguments *a = w->arguments;
    bool good = w->drawing->lifelines->len > 0 || a->size != NULL;
    if (!good)
        program_error(a->subject.ids != NULL ? "no two different events share those ids"
                                             : "cannot find a request ID field; name one with --id");
    uint64_t late = subject_late(w->subject);
    if (late > 0)
        program_error("%" G_GUINT64_FORMAT
                      " records of events that the first %d did not have belong to no lifeline: say "
                      "with --config what they are",
                      late, SUBJECT_SAMPLE);
    if (a->json) {
        report_json(w);
    } else if (a->compare) {
        report_side_by_side(w);
    } else {
        for (guint i = 0; i < w->drawing->lifelines->len; i++)
            report_measure(w->studies[0].measures[i], a->by);
        if (a->size != NULL)
            report_throughput(&w->studies[0].throughput, a->interval_ns);
    }
    return plot(w) && good;
}

static void nlstat_end(work *w)
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
    check_together(&a);
    work w = {.arguments = &a, .count = a.compare ? a.file_count : 1};
    w.studies = g_new0(study, w.count);
    w.subject = subject_new(a.subject.config, (const char *const *)a.subject.ids,
                            (subject_user){nlstat_begin, nlstat_take, &w});
    bool good = read_logs(&w, &a);
    good = nlstat_report(&w) && good;
    nlstat_end(&w);
    good = subject_options_finish(&a.subject) && good;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
