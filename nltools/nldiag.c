/*
 * From a program's log, nldiag finds the causes that make the program slow. nldiag prints the answer in one sentence,
 * then each cause with its evidence.
 *
 * nldiag reads the log as visits (diag/visits.h), and searches for the causes of the visits' times (diag/findings.h).
 * If clocks are wrong and all sources are files, nldiag reads the log again with corrected times (diag/host_clocks.h).
 */
#include "config.h"

#include "compare/compare.h"
#include "diag/follow.h"
#include "diag/host_clocks.h"
#include "diag/repeats.h"
#include "diag/report.h"
#include "program/program.h"

enum { STATUS_FINDING = 3, STATUS_CANNOT_TELL = 4 };

typedef struct arguments {
    subject_options subject;
    const char *html;
    compare_options compare;
    follow_options follow;
    bool json, explain;
    char **files;
    int file_count;
} arguments;

static const nl_option options[] = {
    {.name = "explain",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, explain),
     .help = "Print all evidence, all places, all alternative causes, and every tested explanation that affects the "
             "requests' time"},
    {.name = "html",
     .value = "FILE",
     NL_OPTION_MEMBER(arguments, html),
     .help = "Write a report with pictures to FILE, as one HTML page"},
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, json),
     .help = "Print JSON; times are in nanoseconds"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Comparing", compare_option_rows, offsetof(arguments, compare)},
                                      {"Watching", follow_option_rows, offsetof(arguments, follow)},
                                      SUBJECT_GROUPS(arguments)},
    .operands = "[SOURCE...]",
    .summary =
        "Find out from a log why a program is slow. The report begins with the answer in one sentence. For each cause, "
        "it prints the share of the requests' time, the evidence, a remedy to try, the expected gain and the "
        "confidence.",
    .notes = PROGRAM_SOURCES
    ". nldiag can find more causes if the log also contains records of the hosts (nlsensor) and of the kernel "
    "(nlkernel).\n\nExit status: 0 healthy; 1 a source could not be read, was malformed or had no records; 2 usage "
    "error; 3 a cause was found, or, with --compare, requests are slower or more of them fail; 4 cannot tell, for "
    "example because "
    "--compare has too few logs or requests to find a change of 25 %.",
};

static visits *read_log(arguments *a, char *const *names, int count, host_clocks *clocks, bool *ok)
{
    visits_reader *r = visits_reader_new(&a->subject, host_clocks_time, clocks);
    for (int i = 0; i < count; i++)
        *ok = visits_read(r, names[i]) && *ok;
    return visits_finish(r);
}

static bool can_read_again(char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (!g_file_test(names[i], G_FILE_TEST_IS_REGULAR | G_FILE_TEST_IS_DIR))
            return false;
    return true;
}

static int diagnose(arguments *a)
{
    static char *standard_input[] = {"-"};
    report_sources sources = {a->file_count > 0 ? a->files : standard_input, MAX(a->file_count, 1), a->subject.config,
                              false};
    bool ok = true, corrected = false;
    host_clocks *clocks = host_clocks_new();
    a->subject.has_sources = sources.count > 1;
    visits *v = read_log(a, sources.names, sources.count, clocks, &ok);
    if (a->subject.repeated != NULL)
        program_error("cannot tell: %s", a->subject.repeated);
    if (a->subject.repeated != NULL || !program_has_records(&a->subject.reading, v->records, "cannot tell: ")) {
        visits_free(v);
        host_clocks_free(clocks);
        return PROGRAM_PROBLEM;
    }
    const bool clocks_wrong = host_clocks_decide(clocks, v);
    sources.fix_clocks = host_clocks_are_measured(clocks);
    if (clocks_wrong && can_read_again(sources.names, sources.count)) {
        visits_free(v);
        v = read_log(a, sources.names, sources.count, clocks, &ok);
        host_clocks_note(clocks, v);
        corrected = true;
    }
    if (v->has_nanoseconds)
        program_error("%s", REQUEST_NANOSECONDS);
    visits_join_repeats(v);
    findings *f = findings_find(v);
    host_clocks_report(clocks, f, corrected);
    findings_judge(f, subject_reason_no_requests(&a->subject));
    if (a->json)
        report_json(f, &sources);
    else
        report_text(f, &sources, a->explain);
    if (a->html != NULL && !report_html(f, &sources, a->html)) {
        program_error("write %s: %s", a->html, nl_error_message());
        ok = false;
    }
    int status = !ok                      ? PROGRAM_PROBLEM
                 : findings_have_fault(f) ? STATUS_FINDING
                 : f->healthy             ? PROGRAM_DONE
                                          : STATUS_CANNOT_TELL;
    findings_free(f);
    visits_free(v);
    host_clocks_free(clocks);
    return status;
}

int main(int argc, char **argv)
{
    program_start("nldiag");
    arguments a = {0};
    int first = options_parse(&usage, argc, argv, &a);
    a.files = argv + first;
    a.file_count = argc - first;
    compare_options_check(&a.compare, a.file_count);
    follow_options_check(&a.follow, a.file_count);
    if ((a.compare.compare || a.follow.follow) && a.html != NULL)
        options_fail("--html cannot be used with --compare or --follow");
    if (a.compare.compare && a.follow.follow)
        options_fail("--follow cannot be used with --compare");
    int status;
    if (a.compare.compare)
        status = compare_logs(&a.compare, &a.subject, a.files, a.file_count, a.json);
    else if (a.follow.follow)
        status = follow_source(&a.follow, &a.subject, a.file_count > 0 ? a.files[0] : "-", a.json);
    else
        status = diagnose(&a);
    compare_options_finish(&a.compare);
    if (!subject_options_finish(&a.subject))
        status = PROGRAM_PROBLEM;
    return program_finish(status);
}
