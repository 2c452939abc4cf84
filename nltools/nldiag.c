/*
 * nldiag: why a program is slow, out of its log: the causes, the weightiest first, each with its evidence.
 *
 * The log is read once into an observed (diag/observed.h); each principle (diag/findings.h) looks at that.
 */
#include "config.h"

#include "diag/report.h"
#include "program/program.h"
#include "stat/gather.h"

#include <stdlib.h>

#define DEFAULT_MEMORY ((size_t)1 << 30)

enum { OPTION_FROM = 0x1000, OPTION_TO, OPTION_HTML, OPTION_COMPARE, OPTION_MEMORY };

typedef struct arguments {
    char **ids;
    const char *config, *html;
    bool json, compare;
    int64_t from_ns, to_ns;
    size_t memory;
    char **files;
    int file_count;
    nl_filter *where;
    program_reading reading;
} arguments;

static const struct argp_option options[] = {
    {"id", 'i', "FIELD,...", 0, "The fields that name an object (default: found from the log)", 0},
    {"config", 'c', "FILE", 0, "Take the lifelines from an nlv file", 0},
    {"from", OPTION_FROM, "TIME", 0,
     "Only records of then or later: 2026-01-31T12:00:00.5, 20260131120000.5 or seconds since 1970", 0},
    {"to", OPTION_TO, "TIME", 0, "Only records before that", 0},
    {"compare", OPTION_COMPARE, NULL, 0, "Of two SOURCEs, before and after: say what changed", 0},
    {"html", OPTION_HTML, "FILE", 0, "Write a report to be mailed into FILE, with nlv's pictures", 0},
    {"json", 'j', NULL, 0, "Print JSON; times are nanoseconds", 0},
    {"memory", OPTION_MEMORY, "SIZE", 0, "Keep at most so much of objects under way (default 1G)", 0},
    {0},
};

static const struct argp_child children[] = {
    {&program_where_argp, 0, NULL, 0}, {&program_reading_argp, 0, NULL, 1}, {0}};

static void check(struct argp_state *state, const arguments *a)
{
    if (a->from_ns >= a->to_ns)
        argp_error(state, "--from is not before --to");
    if (a->compare && a->file_count != 2)
        argp_error(state, "--compare wants two logs");
    if (a->compare && (a->json || a->html != NULL))
        argp_error(state, "--compare goes with neither --json nor --html");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->where;
        state->child_inputs[1] = &a->reading;
        return 0;
    case 'i':
        g_strfreev(a->ids);
        a->ids = g_strsplit(argument, ",", 0);
        if (*argument == '\0')
            argp_error(state, "--id needs a field's name");
        return 0;
    case 'c':
        a->config = argument;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case OPTION_FROM:
        a->from_ns = program_parse_time(state, argument);
        return 0;
    case OPTION_TO:
        a->to_ns = program_parse_time(state, argument);
        return 0;
    case OPTION_HTML:
        a->html = argument;
        return 0;
    case OPTION_COMPARE:
        a->compare = true;
        return 0;
    case OPTION_MEMORY:
        if (!nl_size_parse(argument, &a->memory) || a->memory < (1 << 20))
            argp_error(state, "--memory %s: a size of 1M or more is wanted", argument);
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
    options,
    parse,
    "[SOURCE...]",
    "Says why a program is slow, out of its log: the causes, the weightiest first, how much of the time each explains, "
    "how "
    "sure that is, what shows it, and what to try.\v" PROGRAM_SOURCES
    ". The more the log holds of what hosts and kernel did meanwhile (nlsensor, nlkernel), the more can be told.\n\n"
    "Exit status: 0 when it could be looked at, healthy or not; 1 when something could not be read; 2 wrong use.",
    children,
    NULL,
    NULL};

static bool read_log(observed *o, arguments *a, const char *name)
{
    program_log *log = program_log_open(&a->reading, name, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    while ((status = program_log_next(log, a->where, &record)) == NL_OK)
        if (record->time_ns >= a->from_ns && record->time_ns < a->to_ns)
            observed_add(o, record);
    program_log_close(log);
    return status != NL_FAILED;
}

static observed *observe(arguments *a, char *const *files, int count, bool *good)
{
    observed *o = observed_new(a->config, (const char *const *)a->ids, a->memory / 2 / sizeof(gather_step));
    for (int i = 0; i < count; i++)
        *good = read_log(o, a, files[i]) && *good;
    observed_finish(o);
    return o;
}

static void look(findings *f)
{
    static void (*const principles[])(findings *) = {find_clocks,  find_peers,  find_hosts,  find_network,
                                                     find_waiting, find_pauses, find_changes};
    for (size_t i = 0; i < G_N_ELEMENTS(principles); i++)
        principles[i](f);
    findings_rank(f);
}

static bool diagnose(arguments *a)
{
    static char *standard_input[] = {"-"};
    report_sources sources = {a->file_count > 0 ? a->files : standard_input, a->file_count > 0 ? a->file_count : 1,
                              a->config};
    bool good = true;
    char *message = NULL;
    observed *o = observe(a, sources.names, sources.count, &good);
    findings *f = findings_new(o);
    if (observed_objects(o)->len == 0)
        program_error("no field ties events together: say with --id which one does; only resources are looked at");
    look(f);
    if (a->json)
        report_json(f, &sources);
    else
        report_text(f, &sources);
    if (a->html != NULL && !report_html(f, &sources, a->html, &message)) {
        program_error("write %s: %s", a->html, message);
        good = false;
    }
    g_free(message);
    findings_free(f);
    observed_free(o);
    return good;
}

static bool compare(arguments *a)
{
    bool good = true;
    observed *before = observe(a, a->files, 1, &good), *after = observe(a, a->files + 1, 1, &good);
    report_changes(before, after);
    observed_free(before);
    observed_free(after);
    return good;
}

int main(int argc, char **argv)
{
    program_start("nldiag", argv);
    arguments a = {.from_ns = INT64_MIN, .to_ns = INT64_MAX, .memory = DEFAULT_MEMORY};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    bool good = a.compare ? compare(&a) : diagnose(&a);
    g_strfreev(a.ids);
    nl_filter_free(a.where);
    good = program_reading_finish(&a.reading) == PROGRAM_DONE && good;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
