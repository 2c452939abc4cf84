#include "config.h"

#include "reporting.h"

#include "base/memory.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CDF_STEPS = 100 };

static bool add_parameter(void *settings, const nl_option *row, const char *value)
{
    reporting_options *o = settings;
    (void)row;
    if (strchr(value, '=') == NULL) {
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not NAME=VALUE", value);
    }
    o->parameters = nl_memory_check(reallocarray(o->parameters, o->parameter_count + 2, sizeof *o->parameters));
    o->parameters[o->parameter_count++] = value;
    o->parameters[o->parameter_count] = NULL;
    return true;
}

const nl_option reporting_rows[] = {
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(reporting_options, json),
     .help = "Print JSON, with all rows"},
    {.name = "draw",
     .value = "FILE",
     NL_OPTION_MEMBER(reporting_options, picture),
     .help = "Write a picture of the report to FILE.png or FILE.svg"},
    {.name = "perl",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(reporting_options, perl),
     .help = "Print the events as Perl hashes, in the form of KLogger, instead of the report"},
    {.name = "made",
     .value = "FILE",
     NL_OPTION_MEMBER(reporting_options, output),
     .help = "Write the records that the rules derived to FILE: in the binary format if the name ends in .nlb, "
             "otherwise as text"},
    {.name = "top",
     .type = NL_OPTION_COUNT,
     .initial = "(set by the rules)",
     .maximum = 1000000000,
     NL_OPTION_MEMBER(reporting_options, top),
     .help = "Maximum number of lines of each table; 0 prints all"},
    {.name = "cdf",
     .value = "NAME",
     NL_OPTION_MEMBER(reporting_options, cdf),
     .help = "Print the cumulative distribution of NAME in the first report that is drawn as a CDF: each line has a "
             "value (times in microseconds) and the share of values up to it"},
    {.name = "set",
     .value = "NAME=VALUE",
     .repeatable = true,
     .set = add_parameter,
     .help = "Set a parameter of the rules; nlkernel rules show lists the parameters"},
    {0},
};

void reporting_options_free(reporting_options *o)
{
    free(o->parameters);
    o->parameters = NULL;
}

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
    program_error("there is nothing called \"%s\" in the report of %s that is drawn as a CDF", label, run->file.name);
    return PROGRAM_PROBLEM;
}

/* Whether anything came of the rules: a log of other events would make an empty report. */
static bool is_empty(const rules_run *run)
{
    for (size_t i = 0; i < run->summaries.count; i++)
        if (run->summaries.list[i].row_count > 0)
            return false;
    return true;
}

static void explain_empty(const rules_run *run)
{
    char patterns[512] = "";
    size_t size = 0;
    for (size_t i = 0; i < run->file.pattern_count && size < sizeof patterns; i++) {
        const char *pattern = run->file.patterns[i];
        if (*pattern != '?')
            size += (size_t)snprintf(patterns + size, sizeof patterns - size, " -e %s", pattern);
    }
    program_error("there is nothing of what the rules %s are about in these records: it is made of nlkernel record%s",
                  run->file.name, patterns);
}

int reporting_say(rules_run *run, const reporting_options *o)
{
    nl_synthesis_stats stats;
    int status = PROGRAM_DONE;
    nl_synthesis_get_stats(run->rules, &stats);
    if (is_empty(run)) {
        explain_empty(run);
        return PROGRAM_PROBLEM;
    }
    if (stats.late > 0) {
        program_error("%" PRIu64 " records came too late to be taken in order", stats.late);
        status = PROGRAM_PROBLEM;
    }
    if (o->picture != NULL && !summaries_draw(&run->summaries, o->picture)) {
        program_error("%s", nl_error_message());
        status = PROGRAM_PROBLEM;
    }
    if (o->cdf != NULL)
        return print_cdf(run, o->cdf) == PROGRAM_DONE ? status : PROGRAM_PROBLEM;
    if (o->json)
        summaries_print_json(&run->summaries);
    else
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

static void print_perl_field(const char *indent, nl_string name, nl_string value)
{
    fputs(indent, stdout);
    print_perl_string(name);
    fputs(" => ", stdout);
    print_perl_string(value);
    fputs(",\n", stdout);
}

static nl_string string_of(const char *text)
{
    return (nl_string){text, strlen(text)};
}

enum { SERIALS = 8192 };

/* An event is numbered within its CPU; what was lost has numbers too. */
static void print_perl(const nl_record *record, uint64_t serials[SERIALS + 1])
{
    char scratch[NL_FIELD_TEXT_SIZE], number[32];
    nl_field field;
    int64_t cpu = -1, lost = 0;
    if (!nl_record_find(record, "CPU", &field) || !nl_field_int(&field, &cpu) || cpu < 0 || cpu >= SERIALS)
        cpu = SERIALS;
    bool is_lost = record->event.size == 14 && memcmp(record->event.data, "NetLogger.Lost", 14) == 0;
    if (is_lost && nl_record_find(record, "COUNT", &field) && nl_field_int(&field, &lost))
        serials[cpu] += (uint64_t)lost;
    printf("{\n    header => {\n");
    print_perl_field("        ", string_of("type"), record->event);
    snprintf(number, sizeof number, "%" PRIu64, serials[cpu]++);
    print_perl_field("        ", string_of("serial"), string_of(number));
    snprintf(number, sizeof number, "%" PRId64, record->time_ns);
    print_perl_field("        ", string_of("timestamp"), string_of(number));
    print_perl_field("        ", string_of("host"), record->host);
    print_perl_field("        ", string_of("prog"), record->prog);
    printf("    },\n");
    for (size_t i = 0; i < record->field_count; i++)
        print_perl_field("    ", record->fields[i].name, nl_field_text(&record->fields[i], scratch));
    printf("},\n");
}

int reporting_print_perl(reporting_options *o, char *const *logs, size_t count)
{
    static uint64_t serials[SERIALS + 1];
    int status = PROGRAM_DONE;
    printf("[\n");
    for (size_t i = 0; i < count; i++) {
        program_log *log = program_log_open(&o->reading, logs[i], false, false);
        const nl_record *record;
        nl_status read = NL_FAILED;
        while (log != NULL && (read = program_log_next(log, NULL, &record)) == NL_OK)
            print_perl(record, serials);
        program_log_close(log);
        status = read == NL_FAILED ? PROGRAM_PROBLEM : status;
    }
    printf("]\n");
    return program_reading_finish(&o->reading) != PROGRAM_DONE ? PROGRAM_PROBLEM : status;
}
