/*
 * nldiag names the causes for which a program is slow, from its log: the most important first, each with its evidence.
 *
 * The log is read once into an observed log (diag/observed.h), in which the rules (diag/findings.h) search for causes.
 */
#include "config.h"

#include "diag/report.h"
#include "program/program.h"
#include "stat/subject.h"

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
    "Exit status: 0 there is a verdict; 1 something could not be read, or the log has no requests; 2 wrong use.",
};

static observed *observe(arguments *a, char *const *files, int count, bool *ok)
{
    observed *o = observed_new(&a->subject);
    for (int i = 0; i < count; i++)
        *ok = observed_read(o, files[i]) && *ok;
    observed_finish(o);
    const char *limits = report_limits(o);
    if (limits != NULL && a->compare)
        program_error("%s: %s", files[0], limits);
    else if (limits != NULL)
        program_error("%s", limits);
    return o;
}

/* Why a log with records has no requests. */
static const char *no_requests(const subject_options *o)
{
    if (o->config != NULL)
        return "no record belongs to a lifeline of --config";
    if (o->ids != NULL)
        return "no two events have the same values of --id";
    return "cannot find a request ID field; name one with --id";
}

static void run_rules(findings *f)
{
    static void (*const rules[])(findings *) = {
        find_clocks, find_peers,   find_kinds,  find_hosts,   find_network, find_queues,
        find_timers, find_unended, find_pauses, find_changes, find_courses,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++)
        rules[i](f);
    doubt_clocks(f);
    findings_rank(f);
}

static bool diagnose(arguments *a)
{
    static char *standard_input[] = {"-"};
    report_sources sources = {a->file_count > 0 ? a->files : standard_input, MAX(a->file_count, 1), a->subject.config};
    bool ok = true;
    observed *o = observe(a, sources.names, sources.count, &ok);
    if (!program_has_records(&a->subject.reading, observed_records(o), "cannot tell: ")) {
        observed_free(o);
        return false;
    }
    if (observed_objects(o)->len == 0) {
        program_error("%s", no_requests(&a->subject));
        ok = false;
    }
    findings *f = findings_new(o);
    run_rules(f);
    if (a->json)
        report_json(f, &sources);
    else
        report_text(f, &sources);
    if (a->html != NULL && !report_html(f, &sources, a->html)) {
        program_error("write %s: %s", a->html, nl_error_message());
        ok = false;
    }
    findings_free(f);
    observed_free(o);
    return ok;
}

/* Observes a log for a comparison. Returns NULL after reporting that the log has no requests. */
static observed *observe_requests(arguments *a, char *const *file, bool *ok)
{
    bool was_read = true;
    observed *o = observe(a, file, 1, &was_read);
    *ok = *ok && was_read;
    if (observed_objects(o)->len > 0)
        return o;
    if (observed_records(o) > 0)
        program_error("%s: %s", *file, no_requests(&a->subject));
    else if (was_read)
        program_error("%s: no records", *file);
    observed_free(o);
    return NULL;
}

static bool nldiag_compare(arguments *a)
{
    bool ok = true;
    a->subject.memory_max /= 2;
    observed *before = observe_requests(a, a->files, &ok), *after = observe_requests(a, a->files + 1, &ok);
    if (before != NULL && after != NULL)
        report_changes(before, after);
    else
        ok = false;
    observed_free(before);
    observed_free(after);
    return ok;
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
    bool ok = a.compare ? nldiag_compare(&a) : diagnose(&a);
    ok = subject_options_finish(&a.subject) && ok;
    return program_finish(ok ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
