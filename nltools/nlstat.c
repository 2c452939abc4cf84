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

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_EXAMPLES = 3 };

enum { OPTION_SIZE = 0x1000, OPTION_INTERVAL, OPTION_COMPARE, OPTION_PLOT, OPTION_MISSING };

typedef struct arguments {
    subject_options subject;
    char *by;
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

static const struct argp_option options[] = {
    {"by", 'b', "FIELD", 0, "Tell objects apart by that field; HOST is the least common host that an object visits", 0},
    {"slowest", 'n', "COUNT", 0, "Name the COUNT slowest objects, and where most of their time went", 0},
    {"missing", OPTION_MISSING, "COUNT", 0,
     "Of objects that lack their first or last event, or ran in another order, name the first COUNT (default 3)", 0},
    {"size", OPTION_SIZE, "FIELD", 0, "How much of what FIELD counts (bytes) went through, over time", 0},
    {"interval", OPTION_INTERVAL, "SECONDS", 0, "Of --size: how long an interval is (default: what gives some 30)", 0},
    {"compare", OPTION_COMPARE, NULL, 0,
     "Measure each SOURCE by itself and print them side by side; the last one's means are compared with the first "
     "one's",
     0},
    {"plot", OPTION_PLOT, "FILE", 0,
     "Draw how long objects took, and the throughput, into FILE.png or .svg; - prints histograms", 0},
    {"json", 'j', NULL, 0, "Print JSON; times are nanoseconds", 0},
    {0},
};

static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};

static size_t parse_count(struct argp_state *state, const char *text)
{
    size_t count;
    if (!nl_size_parse(text, &count) || count > 1000000)
        argp_error(state, "\"%s\" is no number up to 1000000", text);
    return count;
}

static void parse_interval(struct argp_state *state, arguments *a, const char *text)
{
    char *end;
    double seconds = g_ascii_strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0.001 && seconds <= 1e8))
        argp_error(state, "--interval %s: seconds, 0.001 or more, are wanted", text);
    a->interval_ns = (int64_t)(seconds * 1e9);
}

static void check(struct argp_state *state, const arguments *a)
{
    if (a->compare && a->file_count < 2)
        argp_error(state, "--compare wants two logs or more");
    if (a->compare && (a->by != NULL || a->size != NULL || a->json || a->plot != NULL))
        argp_error(state, "--compare goes with none of --by, --size, --json, --plot");
    if (a->interval_ns > 0 && a->size == NULL)
        argp_error(state, "--interval is for --size");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->subject;
        return 0;
    case 'b':
        a->by = argument;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case 'n':
        a->slowest = parse_count(state, argument);
        return 0;
    case OPTION_MISSING:
        a->examples = parse_count(state, argument);
        return 0;
    case OPTION_SIZE:
        a->size = argument;
        return 0;
    case OPTION_INTERVAL:
        parse_interval(state, a, argument);
        return 0;
    case OPTION_COMPARE:
        a->compare = true;
        return 0;
    case OPTION_PLOT:
        a->plot = argument;
        if (strcmp(argument, "-") != 0 && !chart_knows(argument))
            argp_error(state, "--plot %s: the name has to end in .png or .svg", argument);
        return 0;
    case ARGP_KEY_ARGS:
        a->files = state->argv + state->next;
        a->file_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        check(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[SOURCE...]",
    .doc = "Say where the time of requests, blocks, jobs goes: the time between each event of an object and its next. "
           "Without SOURCE, standard input. " PROGRAM_SOURCES "."
           "\vExamples: nlstat --id BLOCK.ID --by HOST dpss.log\n  nlstat --slowest 10 --size SEND.SZ dpss.log\n"
           "  nlstat --compare before.log after.log",
    .children = children,
};

/* ---- what is measured ---- */

static void take(void *user, const nl_record *record)
{
    work *w = user;
    study *s = w->current;
    if (s->throughput.field != NULL)
        throughput_add(&s->throughput, record);
    for (guint i = 0; i < w->drawing->lifelines->len; i++)
        measure_add(s->measures[i], record);
}

static void begin(void *user, const drawing *d)
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

static void add(void *user, const nl_record *record)
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
        good = subject_read(&a->subject, files[i], add, w->subject) && good;
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
    char *message = NULL;
    if (path == NULL)
        return true;
    if (strcmp(path, "-") == 0) {
        plot_print(s->measures, count);
        return true;
    }
    if (!plot_write(path, s->measures, count, s->throughput.field != NULL ? &s->throughput : NULL, &message))
        program_error("write %s: %s", path, message);
    bool good = message == NULL;
    g_free(message);
    return good;
}

static bool report(work *w)
{
    const arguments *a = w->arguments;
    bool good = w->drawing->lifelines->len > 0 || a->size != NULL;
    if (!good)
        program_error(a->subject.ids != NULL ? "no two different events share those ids"
                                             : "no field ties events together: say with --id which one does");
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

static void end(work *w)
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
    program_start("nlstat", argv);
    arguments a = {.examples = DEFAULT_EXAMPLES};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    work w = {.arguments = &a, .count = a.compare ? a.file_count : 1};
    w.studies = g_new0(study, w.count);
    w.subject = subject_new(a.subject.config, (const char *const *)a.subject.ids, (subject_user){begin, take, &w});
    bool good = read_logs(&w, &a);
    good = report(&w) && good;
    end(&w);
    good = subject_options_finish(&a.subject) && good;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
