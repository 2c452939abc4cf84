/* The options of programs that read logs, and reports about malformed and missing records. */
#include "config.h"

#include "program/foreign.h"
#include "program/program.h"
#include "program/reading.h"
#include "record/format.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { SHOWN = 5, TEXT_SHOWN = 60 };

/* Parses a time, a day, which begins at midnight in local time, or a local time as `uptime -s` prints it. */
static bool reading_set_base(void *settings, const nl_option *row, const char *value)
{
    program_reading *reading = settings;
    struct tm day = {.tm_isdst = -1};
    const char *end = strptime(value, strchr(value, ' ') != NULL ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d", &day);
    (void)row;
    if (end == NULL || *end != '\0')
        reading->has_base = nl_time_parse(value, strlen(value), NL_FRACTION_DECIMAL, &reading->base_ns) == NL_OK;
    else
        reading->has_base = !__builtin_mul_overflow((int64_t)mktime(&day), NL_NS_PER_SECOND, &reading->base_ns);
    return reading->has_base ||
           nl_error_false(NL_ERROR_INVALID, "invalid time \"%s\"; use YYYY-MM-DD or a time", value);
}

const nl_option program_reading_options[] = {
    {.name = "from-format",
     .value = "FORMAT",
     .initial = "(detected from the content)",
     .set = program_set_from_format,
     .help = "Format of the sources; nlconv --formats lists the formats"},
    {.name = "base",
     .value = "TIME",
     .set = reading_set_base,
     .help =
         "Origin of times without a date: the day (YYYY-MM-DD) of strace -tt, or the time at which perf's clock was 0"},
    {.name = "fraction",
     .type = NL_OPTION_CHOICE,
     .choices = "decimal|microseconds",
     .initial = "decimal",
     NL_OPTION_MEMBER(program_reading, fraction),
     .help = "Interpretation of a time's fraction with fewer than six digits: decimal reads .2102 as 0.2102 s; "
             "microseconds reads it as 2102 microseconds, as old GridFTP servers write it"},
    {.name = "reject",
     .value = "FILE",
     NL_OPTION_MEMBER(program_reading, reject_path),
     .help = "Append malformed input to FILE unchanged, one piece per line"},
    {0},
};

const nl_option program_strict_options[] = {
    {.name = "strict",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(program_reading, strict),
     .help = "Stop at the first malformed input, with exit status 1"},
    {0},
};

static void keep_rejected(program_reading *reading, const nl_malformed *what)
{
    if (reading->reject_path == NULL)
        return;
    if (reading->reject_file == NULL) {
        reading->reject_file = fopen(reading->reject_path, "ae");
        if (reading->reject_file == NULL)
            program_fail(PROGRAM_PROBLEM, "open %s: %s", reading->reject_path, strerror(errno));
    }
    fwrite(what->text.data, 1, what->text.size, reading->reject_file);
    fputc('\n', reading->reject_file);
}

/* Copies text with "." for bytes that are not printable ASCII. */
static void printable(nl_string text, char out[TEXT_SHOWN + 1])
{
    size_t size = text.size < TEXT_SHOWN ? text.size : TEXT_SHOWN;
    for (size_t i = 0; i < size; i++)
        out[i] = text.data[i] >= ' ' && text.data[i] < 127 ? text.data[i] : '.';
    out[size] = '\0';
}

void program_malformed(void *user, const nl_malformed *what)
{
    program_reading *reading = user;
    keep_rejected(reading, what);
    if (reading->malformed++ >= SHOWN)
        return;
    char text[TEXT_SHOWN + 1];
    printable(what->text, text);
    if (what->line == 0)
        program_error("%s: byte %" PRIu64 ": %s", what->source, what->offset, what->reason);
    else
        program_error("%s:%" PRIu64 ": %s: \"%s\"%s", what->source, what->line, what->reason, text,
                      what->text.size > TEXT_SHOWN ? "..." : "");
    if (reading->strict)
        program_fail(PROGRAM_PROBLEM, "stopped because of --strict");
}

void program_lost(void *user, const nl_lost *what)
{
    program_reading *reading = user;
    reading->lost += what->count;
    if (reading->gaps++ >= SHOWN)
        return;
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    nl_time_format_ulm(what->from_ns, from);
    nl_time_format_ulm(what->to_ns, to);
    program_error("%s: %" PRIu64 " record%s missing between %s and %s; the program that logged dropped %" PRIu64
                  " of them",
                  what->source, what->count, what->count == 1 ? " is" : "s are", from, to, what->dropped);
}

nl_sequences *program_reading_numbers(program_reading *reading)
{
    if (reading->sequences == NULL)
        reading->sequences = nl_sequences_new();
    return reading->sequences;
}

/* Call it when all sources were read. Keeps the set, because logs may be closed later. */
static void report_missing(program_reading *reading)
{
    if (reading->sequences == NULL || reading->left_early)
        return;
    nl_sequences_list_missing(reading->sequences, program_lost, reading);
    if (!nl_sequences_is_complete(reading->sequences))
        program_error("too many streams or gaps to check all of them; more records may be missing");
}

nl_decoder_options program_decoder_options(program_reading *reading, const char *source)
{
    return (nl_decoder_options){.source = source,
                                .format = reading->format,
                                .fraction = reading->fraction,
                                .on_malformed = program_malformed,
                                .on_lost = program_lost,
                                .sequences = program_reading_numbers(reading),
                                .once = program_archive_numbers(reading, source),
                                .user = reading};
}

void program_add_stats(program_reading *reading, const nl_decoder_stats *stats)
{
    reading->unterminated += stats->unterminated;
    reading->repeated += stats->repeated;
}

nl_decoder *program_reading_decoder(program_reading *reading, const char *source)
{
    nl_decoder_options options = program_decoder_options(reading, source);
    return nl_decoder_new(&options);
}

void program_reading_close_decoder(program_reading *reading, nl_decoder *decoder)
{
    program_add_stats(reading, nl_decoder_get_stats(decoder));
    nl_decoder_free(decoder);
}

int program_reading_finish(program_reading *reading)
{
    report_missing(reading);
    program_archives_end(reading);
    int status = reading->malformed > 0 || reading->lost > 0 ? PROGRAM_PROBLEM : PROGRAM_DONE;
    if (reading->malformed > SHOWN)
        program_error("%" PRIu64 " more malformed lines", reading->malformed - SHOWN);
    if (reading->gaps > SHOWN)
        program_error("%" PRIu64 " records are missing in all", reading->lost);
    if (reading->repeated > 0)
        program_error("%" PRIu64 " records are stored twice in an archive; they were read once", reading->repeated);
    if (reading->unterminated > 0)
        program_error("%" PRIu64 " last line%s without a newline; the last value may be incomplete",
                      reading->unterminated, reading->unterminated == 1 ? "" : "s");
    if (reading->reject_file != NULL) {
        bool failed = ferror(reading->reject_file) != 0;
        if (fclose(reading->reject_file) != 0 || failed) {
            program_error("write %s: %s", reading->reject_path, strerror(errno));
            status = PROGRAM_PROBLEM;
        }
        reading->reject_file = NULL;
    }
    return status;
}
