/*
 * nldiag finds the causes that make a program slow, from its log. It prints the answer in one sentence, then each cause
 * with its evidence.
 *
 * nldiag reads the log as visits (diag/visits.h), and searches for what explains the times of the visits
 * (diag/findings.h). If clocks are wrong, it reads the log again with corrected times (diag/host_clocks.h).
 */
#include "config.h"

#include "diag/compare.h"
#include "diag/host_clocks.h"
#include "diag/report.h"
#include "program/program.h"

enum { STATUS_FINDING = 3, STATUS_CANNOT_TELL = 4 };

typedef struct arguments {
    subject_options subject;
    const char *html;
    bool json, explain, compare;
    char **after; /* of --with; ended by NULL */
    char **files;
    int file_count;
} arguments;

static bool nldiag_set_with(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    arguments *a = settings;
    guint count = a->after != NULL ? g_strv_length(a->after) : 0;
    a->after = g_renew(char *, a->after, count + 2);
    a->after[count] = g_strdup(value);
    a->after[count + 1] = NULL;
    return true;
}

static const nl_option options[] = {
    {.name = "compare",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, compare),
     .help = "Compare SOURCEs from before a change with those of --with, or two SOURCEs, and report what changed"},
    {.name = "with",
     .value = "SOURCE",
     .set = nldiag_set_with,
     .repeatable = true,
     .help = "A SOURCE from after the change, for --compare"},
    {.name = "explain",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, explain),
     .help = "Print all places and the explanations that were tried"},
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
    .summary = "Report why a program is slow, from its log: the answer in one sentence, then each cause with the share "
               "of the requests' time that it claims, its evidence, what to try, the expected gain and the confidence.",
    .notes = PROGRAM_SOURCES
    ". The more the log holds about hosts and kernel (nlsensor, nlkernel), the more causes nldiag can find.\n\n"
    "Exit status: 0 healthy; 1 a source could not be read or has no records; 2 wrong use; 3 a cause was found, "
    "or with --compare, requests are slower; 4 cannot tell.",
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

/* Returns the reason why a log with records has no requests. */
static const char *no_requests(const subject_options *o)
{
    if (o->config != NULL)
        return "no record belongs to a lifeline of --config";
    if (o->ids != NULL)
        return "no two events have the same values of --id";
    return "cannot find a request ID field; name one with --id, or log a request ID (TRACE.ID) with every event";
}

/* Reads one side of a comparison. Returns NULL after reporting that it has no requests. */
static visits *read_side(arguments *a, char *const *names, int count)
{
    bool ok = true;
    uint64_t read_before = a->subject.reading.records;
    host_clocks *clocks = host_clocks_new();
    visits *v = read_log(a, names, count, clocks, &ok);
    if (host_clocks_decide(clocks, v) && can_read_again(names, count)) {
        visits_free(v);
        v = read_log(a, names, count, clocks, &ok);
    }
    host_clocks_free(clocks);
    if (ok && v->requests->len > 0)
        return v;
    bool empty =
        a->subject.reading.records == read_before && read_before > 0; /* this side is empty, but not the other side */
    if (empty && ok && a->subject.reading.malformed == 0 && !a->subject.reading.checked)
        program_error("cannot tell: %s: no records%s", names[0], count > 1 ? ", and none in the other sources" : "");
    else if (program_has_records(&a->subject.reading, v->records, "cannot tell: ") && ok)
        program_error("%s: cannot tell: %s", names[0], no_requests(&a->subject));
    visits_free(v);
    return NULL;
}

static int compare(arguments *a)
{
    bool split = a->after == NULL;
    int before_count = split ? 1 : a->file_count, after_count = split ? 1 : (int)g_strv_length(a->after);
    a->subject.memory_max /= 2;
    visits *before = read_side(a, a->files, before_count),
           *after = read_side(a, split ? a->files + 1 : a->after, after_count);
    int status = PROGRAM_PROBLEM;
    if (before != NULL && after != NULL) {
        compare_result result = compare_print(before, after, a->json);
        status = result == COMPARE_SLOWER        ? STATUS_FINDING
                 : result == COMPARE_CANNOT_TELL ? STATUS_CANNOT_TELL
                                                 : PROGRAM_DONE;
    }
    if (before != NULL)
        visits_free(before);
    if (after != NULL)
        visits_free(after);
    return status;
}

static int diagnose(arguments *a)
{
    static char *standard_input[] = {"-"};
    report_sources sources = {a->file_count > 0 ? a->files : standard_input, MAX(a->file_count, 1), a->subject.config,
                              false};
    bool ok = true, corrected = false;
    host_clocks *clocks = host_clocks_new();
    visits *v = read_log(a, sources.names, sources.count, clocks, &ok);
    if (!program_has_records(&a->subject.reading, v->records, "cannot tell: ")) {
        visits_free(v);
        host_clocks_free(clocks);
        return PROGRAM_PROBLEM;
    }
    sources.clocks_wrong = host_clocks_decide(clocks, v);
    if (sources.clocks_wrong && can_read_again(sources.names, sources.count)) {
        visits_free(v);
        v = read_log(a, sources.names, sources.count, clocks, &ok);
        corrected = true;
    }
    findings *f = findings_find(v);
    host_clocks_report(clocks, f, corrected);
    findings_judge(f, no_requests(&a->subject));
    if (a->json)
        report_json(f, &sources);
    else
        report_text(f, &sources, a->explain);
    if (a->html != NULL && !report_html(f, &sources, a->html)) {
        program_error("write %s: %s", a->html, nl_error_message());
        ok = false;
    }
    int status = !ok                ? PROGRAM_PROBLEM
                 : f->list->len > 0 ? STATUS_FINDING
                 : f->healthy       ? PROGRAM_DONE
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
    if (a.compare && (a.after == NULL ? a.file_count != 2 : a.file_count < 1))
        options_fail("--compare: needs SOURCEs from before and after");
    if (a.compare && a.html != NULL)
        options_fail("--compare: excludes --html");
    if (!a.compare && a.after != NULL)
        options_fail("--with: needs --compare");
    int status = a.compare ? compare(&a) : diagnose(&a);
    g_strfreev(a.after);
    if (!subject_options_finish(&a.subject))
        status = PROGRAM_PROBLEM;
    return program_finish(status);
}
