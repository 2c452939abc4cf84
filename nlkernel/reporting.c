#include "config.h"

#include "reporting.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

enum { CDF_STEPS = 100, SERIALS_MAX = 8192 };

const nl_option reporting_rows[] = {
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(reporting_options, json),
     .help = "Print JSON, with all rows"},
    {.name = "plot",
     .value = "FILE",
     NL_OPTION_MEMBER(reporting_options, picture),
     .help = "Write a plot of the report to FILE.png or FILE.svg"},
    {.name = "perl",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(reporting_options, perl),
     .help = "Print the events as Perl hashes, as KLogger does, instead of the report"},
    {.name = "derived",
     .value = "FILE",
     NL_OPTION_MEMBER(reporting_options, derived),
     .help = "Write the derived records to FILE, in the binary format if the name ends in .nlb, otherwise as text"},
    {.name = "top",
     .type = NL_OPTION_COUNT,
     .initial = "(set by the rules)",
     .maximum = 1000000000,
     NL_OPTION_MEMBER(reporting_options, top),
     .help = "Maximum number of rows of each table; 0 prints all rows"},
    {.name = "cdf",
     .value = "NAME",
     NL_OPTION_MEMBER(reporting_options, cdf),
     .help = "Print the cumulative distribution (CDF) of row NAME in the first report that has this row. Each line has "
             "a value and the share of values up to this value. Times are in microseconds"},
    {0},
};

/* ---- reports ---- */

static int print_cdf(const rules_run *run, const char *label)
{
    for (size_t i = 0; i < run->summaries.count; i++) {
        const summary *s = &run->summaries.list[i];
        double unit = strcmp(s->unit, "ns") == 0 ? 1e3 : 1;
        for (size_t j = 0; s->plot == PLOT_CDF && j < s->row_count; j++) {
            summary_row *row = s->rows[j];
            if (s->by_count == 0 || strcmp(row->labels[0], label) != 0)
                continue;
            for (int step = 1; step <= CDF_STEPS; step++)
                printf("%.3f %.2f\n", (double)nl_distribution_quantile(&row->values, (double)step / CDF_STEPS) / unit,
                       (double)step / CDF_STEPS);
            return PROGRAM_DONE;
        }
        if (s->plot == PLOT_CDF)
            break;
    }
    program_error("--cdf: the CDF of %s has no row \"%s\"", run->file.name, label);
    return PROGRAM_PROBLEM;
}

/* Returns whether all reports are empty. */
static bool report_is_empty(const rules_run *run)
{
    for (size_t i = 0; i < run->summaries.count; i++)
        if (run->summaries.list[i].row_count > 0)
            return false;
    return true;
}

static void report_error_empty(const rules_run *run)
{
    char patterns[512] = "";
    size_t size = 0;
    for (size_t i = 0; i < run->file.pattern_count && size < sizeof patterns; i++)
        if (*run->file.patterns[i] != '?')
            size += (size_t)snprintf(patterns + size, sizeof patterns - size, " -e %s", run->file.patterns[i]);
    program_error(
        "no records for the rules %s; record their events with nlkernel record%s, and check which fields they "
        "need with nlkernel rules show %s",
        run->file.name, patterns, run->file.name);
}

int reporting_print(rules_run *run, const reporting_options *o)
{
    nl_synthesis_stats stats;
    int status = PROGRAM_DONE;
    nl_synthesis_get_stats(run->synthesis, &stats);
    if (report_is_empty(run)) {
        report_error_empty(run);
        return PROGRAM_PROBLEM;
    }
    if (stats.late > 0) {
        program_error("%" PRIu64 " record%s arrived too late to be put in order", stats.late, nl_plural(stats.late));
        status = PROGRAM_PROBLEM;
    }
    if (o->picture != NULL && !summaries_draw(&run->summaries, o->picture)) {
        program_print_error();
        status = PROGRAM_PROBLEM;
    }
    if (o->cdf != NULL)
        return print_cdf(run, o->cdf) == PROGRAM_DONE ? status : PROGRAM_PROBLEM;
    if (o->json)
        return summaries_print_json(&run->summaries) ? status : PROGRAM_PROBLEM;
    summaries_print(&run->summaries, o->top);
    return status;
}

/* ---- Perl ---- */

static void print_perl_string(nl_string text)
{
    putchar('"');
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte == '"' || byte == '\\' || byte == '$' || byte == '@')
            printf("\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            printf("\\x%02x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void print_perl_field(const char *indent, const char *name, nl_string value)
{
    printf("%s\"%s\" => ", indent, name);
    print_perl_string(value);
    fputs(",\n", stdout);
}

static void print_perl_number(const char *name, int64_t number)
{
    printf("        \"%s\" => \"%" PRId64 "\",\n", name, number);
}

/* The serial number of the next event on each CPU. Lost events also have serial numbers. */
typedef struct perl_serials {
    bool begun; /* the function has printed the "[" of the list */
    int64_t next[SERIALS_MAX + 1];
} perl_serials;

static void print_perl(void *user, const nl_record *record)
{
    perl_serials *serials = user;
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_field field;
    int64_t cpu = -1, lost = 0;
    if (!nl_record_find(record, "CPU", &field) || !nl_field_int(&field, &cpu) || cpu < 0 || cpu >= SERIALS_MAX)
        cpu = SERIALS_MAX;
    bool is_lost = nl_string_is(record->event, "NetLogger.Lost");
    if (is_lost && nl_record_find(record, "COUNT", &field) && nl_field_int(&field, &lost))
        serials->next[cpu] += lost;
    printf("%s{\n    header => {\n", serials->begun ? "" : "[\n");
    serials->begun = true;
    print_perl_field("        ", "type", record->event);
    print_perl_number("serial", serials->next[cpu]++);
    print_perl_number("timestamp", record->time_ns);
    print_perl_field("        ", "host", record->host);
    print_perl_field("        ", "prog", record->prog);
    printf("    },\n");
    for (size_t i = 0; i < record->field_count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)record->fields[i].name.size, record->fields[i].name.data);
        print_perl_field("    ", name, nl_field_text(&record->fields[i], scratch));
    }
    printf("},\n");
}

int reporting_print_perl(log_input *input, char *const *logs, size_t count)
{
    static perl_serials serials;
    int status = PROGRAM_DONE;
    for (size_t i = 0; i < count; i++)
        if (!log_input_read(input, logs[i], print_perl, &serials))
            status = PROGRAM_PROBLEM;
    if (input->reading.records > 0)
        printf("%s]\n", serials.begun ? "" : "[\n");
    return status;
}
