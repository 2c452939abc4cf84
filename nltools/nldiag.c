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

typedef struct arguments {
    subject_options subject;
    const char *html;
    bool json, compare;
    char **files;
    int file_count;
} arguments;

static const nl_option options[] = {
    {.name = "compare",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, compare),
     .help = "Compare two SOURCEs, the first from before a change and the second from after it, and report the "
             "differences"},
    {.name = "html",
     .value = "FILE",
     NL_OPTION_MEMBER(arguments, html),
     .help = "Write a report with pictures to FILE, a single page"},
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, json),
     .help = "Print JSON; times are in nanoseconds"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0}, SUBJECT_GROUPS(arguments)},
    .operands = "[SOURCE...]",
    .summary = "Report why a program is slow, from its log: the causes, the most important first, with the share of "
               "the time that each explains, its certainty, its evidence, and what to try.",
    .notes = PROGRAM_SOURCES
    ". The more the log holds about hosts and kernel (nlsensor, nlkernel), the more causes nldiag can find.\n\n"
    "Exit status: 0 the log could be analysed, healthy or not; 1 something could not be read; 2 wrong use.",
};

static void nldiag_add(void *user, const nl_record *record)
{
    observed_add(user, record);
}

static observed *observe(arguments *a, char *const *files, int count, bool *good)
{
    observed *o = observed_new(a->subject.config, (const char *const *)a->subject.ids, subject_steps(&a->subject));
    for (int i = 0; i < count; i++)
        *good = subject_read(&a->subject, files[i], nldiag_add, o) && *good;
    observed_finish(o);
    return o;
}

static void nldiag_look(findings *f)
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
    observed *o = observe(a, sources.names, sources.count, &good);
    findings *f = findings_new(o);
    if (observed_objects(o)->len == 0)
        program_error("cannot find a request ID field; name one with --id; only resources are examined");
    nldiag_look(f);
    if (a->json)
        report_json(f, &sources);
    else
        report_text(f, &sources);
    if (a->html != NULL && !report_html(f, &sources, a->html)) {
        program_error("write %s: %s", a->html, nl_error_message());
        good = false;
    }
    findings_free(f);
    observed_free(o);
    return good;
}

static bool nldiag_compare(arguments *a)
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
    program_start("nldiag");
    arguments a = {0};
    int first = options_parse(&usage, argc, argv, &a);
    a.files = argv + first;
    a.file_count = argc - first;
    if (a.compare && a.file_count != 2)
        options_fail("--compare: needs two logs");
    if (a.compare && (a.json || a.html != NULL))
        options_fail("--compare: excludes --json and --html");
    bool good = a.compare ? nldiag_compare(&a) : diagnose(&a);
    good = subject_options_finish(&a.subject) && good;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
