/*
 * nldiag: why a program is slow, out of its log: the causes, the weightiest first, each with its evidence.
 *
 * The log is read once into an observed (diag/observed.h); each principle (diag/findings.h) looks at that.
 */
#include "config.h"

#include "diag/report.h"
#include "program/program.h"
#include "stat/subject_options.h"

#include <stdlib.h>

enum { OPTION_HTML = 0x1000, OPTION_COMPARE };

typedef struct arguments {
    subject_options subject;
    const char *html;
    bool json, compare;
    char **files;
    int file_count;
} arguments;

static const struct argp_option options[] = {
    {"compare", OPTION_COMPARE, NULL, 0, "Of two SOURCEs, before and after: say what changed", 0},
    {"html", OPTION_HTML, "FILE", 0, "Write a report to be mailed into FILE, with nlv's pictures", 0},
    {"json", 'j', NULL, 0, "Print JSON; times are nanoseconds", 0},
    {0},
};

static const struct argp_child children[] = {{&subject_argp, 0, NULL, 0}, {0}};

static void check(struct argp_state *state, const arguments *a)
{
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
        state->child_inputs[0] = &a->subject;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case OPTION_HTML:
        a->html = argument;
        return 0;
    case OPTION_COMPARE:
        a->compare = true;
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
    .doc = "Say why a program is slow, out of its log: the causes, the weightiest first, how much of the time each "
           "explains, how sure that is, what shows it, and what to try.\v" PROGRAM_SOURCES
           ". The more the log holds of what hosts and kernel did meanwhile (nlsensor, nlkernel), the more can be told."
           "\n\nExit status: 0 when it could be looked at, healthy or not; 1 when something could not be read; 2 wrong "
           "use.",
    .children = children,
};

static void add(void *user, const nl_record *record)
{
    observed_add(user, record);
}

static observed *observe(arguments *a, char *const *files, int count, bool *good)
{
    observed *o = observed_new(a->subject.config, (const char *const *)a->subject.ids, subject_steps(&a->subject));
    for (int i = 0; i < count; i++)
        *good = subject_read(&a->subject, files[i], add, o) && *good;
    observed_finish(o);
    return o;
}

static void look(findings *f)
{
    static void (*const principles[])(findings *) = {
        find_clocks, find_peers,   find_kinds,  find_hosts,   find_network, find_queues,
        find_timers, find_unended, find_pauses, find_changes, find_courses,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(principles); i++)
        principles[i](f);
    doubt_clocks(f);
    findings_rank(f);
}

static bool diagnose(arguments *a)
{
    static char *standard_input[] = {"-"};
    report_sources sources = {a->file_count > 0 ? a->files : standard_input, a->file_count > 0 ? a->file_count : 1,
                              a->subject.config};
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
    arguments a = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    bool good = a.compare ? compare(&a) : diagnose(&a);
    good = subject_options_finish(&a.subject) && good;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
