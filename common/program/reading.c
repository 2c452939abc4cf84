/* The options of programs that read logs, and the reports about malformed and missing records. */
#include "config.h"

#include "base/text.h"
#include "program/absent_fields.h"
#include "program/foreign.h"
#include "program/program.h"
#include "program/reading.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHOWN = 5, TEXT_SHOWN = 60 };

/* Information about malformed input before the first record. */
struct program_held {
    char *messages[SHOWN];
    size_t count;
    bool in_lines; /* the first piece is a line, not a part of a binary file */
    char *first;   /* place of the first piece, and the reason why it is malformed */
};

/*
 * Parses a time, a day (which begins at midnight in local time), or a local time as `uptime -s` prints it. Returns
 * false on failure.
 */
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
           nl_error_false(NL_ERROR_INVALID, "invalid time \"%s\"; use a date (YYYY-MM-DD), or a date and time", value);
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
     .help = "For strace -tt: date of the trace (YYYY-MM-DD), because its times have no date. For perf, ftrace and "
             "CTF: time at "
             "which "
             "the clock was 0"},
    {.name = "fraction",
     .type = NL_OPTION_CHOICE,
     .choices = "decimal|microseconds",
     .initial = "decimal",
     NL_OPTION_MEMBER(program_reading, fraction),
     .help = "Rule for reading fractional seconds of fewer than six digits. With decimal, .2102 means 0.2102 s; with "
             "microseconds, it means 2102 microseconds, as in the logs of old GridFTP servers"},
    {.name = "time-field",
     .value = "NAME",
     .initial = "(time, timestamp or @timestamp; for pairs, END, START, TIMESTAMP or TIME)",
     NL_OPTION_MEMBER(program_reading, time_field),
     .help = "Field that contains the time of a record, in formats such as json, csv and pairs"},
    {.name = "reject",
     .value = "FILE",
     NL_OPTION_MEMBER(program_reading, reject_path),
     .help = "Append each piece of malformed input to FILE, on its own line. If a piece exceeds the maximum size of a "
             "record, append only its beginning"},
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

/* Returns a text that describes where the input is malformed, and why. */
static char *describe_place(const nl_malformed *what)
{
    if (what->line == 0)
        return program_format("%s: byte %" PRIu64 ": %s", what->source, what->offset, what->reason);
    return program_format("%s:%" PRIu64 ": %s", what->source, what->line, what->reason);
}

static char *describe_malformed(const nl_malformed *what)
{
    char text[TEXT_SHOWN + 1], *place = describe_place(what);
    if (what->line == 0)
        return place;
    printable(what->text, text);
    char *message = program_format("%s: \"%s\"%s", place, text, what->text.size > TEXT_SHOWN ? "..." : "");
    free(place);
    return message;
}

/* Keeps a message until the first record. If there are no records, one message about all input replaces it. */
static void hold_message(program_reading *reading, const nl_malformed *what, char *message)
{
    if (reading->held == NULL) {
        reading->held = nl_memory_check(calloc(1, sizeof *reading->held));
        reading->held->in_lines = what->line > 0;
        reading->held->first = describe_place(what);
    }
    reading->held->messages[reading->held->count++] = message;
}

static void free_held(program_reading *reading)
{
    struct program_held *held = reading->held;
    if (held == NULL)
        return;
    for (size_t i = 0; i < held->count; i++)
        free(held->messages[i]);
    free(held->first);
    free(held);
    reading->held = NULL;
}

void program_malformed(void *user, const nl_malformed *what)
{
    program_reading *reading = user;
    keep_rejected(reading, what);
    if (reading->keeps_malformed && !reading->strict) {
        if (reading->first_malformed == NULL)
            reading->first_malformed = describe_malformed(what);
        reading->malformed++; /* set after first_malformed, because another thread may read both */
        return;
    }
    if (reading->malformed++ >= SHOWN)
        return;
    char *message = describe_malformed(what);
    if (reading->strict)
        program_fail(PROGRAM_PROBLEM, "%s; stopped because of --strict", message);
    if (reading->records == 0 && !reading->live) {
        hold_message(reading, what, message);
        return;
    }
    program_error("%s", message);
    free(message);
}

void program_count_records(program_reading *reading, uint64_t count)
{
    reading->records += count;
    if (reading->held == NULL || (reading->records == 0 && !reading->live))
        return;
    for (size_t i = 0; i < reading->held->count; i++)
        program_error("%s", reading->held->messages[i]);
    free_held(reading);
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
    program_error("%s: %" PRIu64 " record%s missing between %s and %s (dropped by the program: %" PRIu64 ")",
                  what->source, what->count, what->count == 1 ? " is" : "s are", from, to, what->dropped);
}

/*
 * The sets of all readings. A program may close logs after program_reading_finish, and threads may read until the
 * process ends. Therefore, the module never frees the sets.
 */
static nl_sequences **sets;
static size_t set_count;

nl_sequences *program_reading_numbers(program_reading *reading)
{
    if (reading->sequences != NULL)
        return reading->sequences;
    sets = nl_memory_check(realloc(sets, (set_count + 1) * sizeof *sets));
    reading->sequences = sets[set_count++] = nl_sequences_new();
    return reading->sequences;
}

/*
 * Reports the records that are missing from all sources. Call this function after all sources were read. Keeps the set
 * of sequence numbers, because logs may be closed later.
 */
static void report_missing(program_reading *reading)
{
    if (reading->sequences == NULL || reading->left_early)
        return;
    nl_sequences_list_missing(reading->sequences, program_lost, reading);
    if (!nl_sequences_is_complete(reading->sequences))
        program_error("the sources have too many streams or gaps for a complete check; more records may be missing");
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

void program_add_stats(program_reading *reading, const nl_decoder_stats *stats, const char *source)
{
    program_add_unterminated(reading, stats->unterminated, source);
    reading->repeated += stats->repeated;
}

void program_add_unterminated(program_reading *reading, uint64_t count, const char *source)
{
    if (count > 0 && reading->unterminated_name == NULL)
        reading->unterminated_name = program_copy(source);
    reading->unterminated += count;
}

nl_decoder *program_reading_decoder(program_reading *reading, const char *source)
{
    nl_decoder_options options = program_decoder_options(reading, source);
    return nl_decoder_new(&options);
}

void program_reading_close_decoder(program_reading *reading, nl_decoder *decoder, const char *source)
{
    const nl_decoder_stats *stats = nl_decoder_get_stats(decoder);
    program_count_records(reading, stats->records);
    program_add_stats(reading, stats, source);
    nl_decoder_free(decoder);
}

/* ---- sources without records ---- */

void program_add_source(program_reading *reading, const char *name)
{
    if (reading->source == NULL)
        reading->source = program_copy(name);
    else
        reading->several = reading->several || strcmp(reading->source, name) != 0;
}

bool program_input_failed(program_reading *reading)
{
    reading->failed = true;
    return program_print_error();
}

/* Returns the text that names a source in a message. */
static const char *name_in_message(const char *source)
{
    return source == NULL || strcmp(source, "-") == 0 ? "standard input" : source;
}

static void report_malformed_only(const program_reading *reading, const char *context)
{
    const struct program_held *held = reading->held;
    bool remedy = held->in_lines && reading->format == NL_FORMAT_UNKNOWN && reading->foreign == NULL;
    if (reading->malformed == 1)
        program_error("%s%s", context, held->messages[0]);
    else
        program_error("%s%s; all %" PRIu64 " %s are malformed%s", context, held->first, reading->malformed,
                      held->in_lines ? "lines" : "parts", remedy ? "; name the format with --from-format" : "");
}

static void report_no_match(const program_reading *reading, const char *context)
{
    /* The parts that indexes excluded may have records with these fields. */
    char *absent = absent_fields_describe(reading->skipped ? NULL : reading->absent);
    program_error("%sno records match --where, --since and --until%s", context, absent);
    free(absent);
}

bool program_has_records(program_reading *reading, uint64_t selected, const char *context)
{
    if (selected > 0)
        return true;
    /* If one of several inputs failed, the malformed lines are in another input. */
    const bool malformed_only = reading->held != NULL && reading->records == 0;
    if (!reading->checked && malformed_only && (!reading->failed || reading->several)) {
        report_malformed_only(reading, context);
    } else if (!reading->checked && !reading->failed) {
        if (reading->records > 0 || reading->ranged || reading->skipped)
            report_no_match(reading, context);
        else if (reading->malformed == 0)
            program_error("%s%s: no records%s", context, name_in_message(reading->source),
                          reading->several ? ", and no records in the other sources" : "");
    }
    reading->checked = true;
    return false;
}

static void report_unterminated(const program_reading *reading)
{
    if (reading->unterminated == 1)
        program_error("%s: the last line has no newline; its last value may be incomplete",
                      name_in_message(reading->unterminated_name));
    else
        program_error("%s: the last line has no newline, as in %" PRIu64
                      " other source%s; its last value may be incomplete",
                      name_in_message(reading->unterminated_name), reading->unterminated - 1,
                      nl_plural(reading->unterminated - 1));
}

int program_reading_finish(program_reading *reading)
{
    program_count_records(reading, 0);
    report_missing(reading);
    program_archives_end(reading);
    bool complete = reading->malformed == 0 && reading->lost == 0 && !reading->failed && reading->unterminated == 0;
    int status = complete ? PROGRAM_DONE : PROGRAM_PROBLEM;
    if (!reading->live && !reading->ranged && !reading->skipped && reading->source != NULL &&
        !program_has_records(reading, reading->records, ""))
        status = PROGRAM_PROBLEM;
    if (reading->malformed > SHOWN && !reading->checked && !reading->keeps_malformed)
        program_error("%" PRIu64 " more malformed line%s", reading->malformed - SHOWN,
                      nl_plural(reading->malformed - SHOWN));
    if (reading->gaps > SHOWN)
        program_error("%" PRIu64 " record%s missing in total", reading->lost, reading->lost == 1 ? " is" : "s are");
    if (reading->repeated > 0)
        program_error("ignored %" PRIu64 " duplicate record%s of an archive", reading->repeated,
                      nl_plural(reading->repeated));
    /* If reading failed, the last line ends at the position of the failure, and this is not a defect of the log. */
    if (reading->unterminated > 0 && !reading->failed)
        report_unterminated(reading);
    if (reading->reject_file != NULL) {
        bool failed = ferror(reading->reject_file) != 0;
        if (fclose(reading->reject_file) != 0 || failed) {
            program_error("write %s: %s", reading->reject_path, strerror(errno));
            status = PROGRAM_PROBLEM;
        }
        reading->reject_file = NULL;
    }
    free_held(reading);
    absent_fields_free(reading->absent);
    reading->absent = NULL;
    free(reading->unterminated_name);
    free(reading->source);
    reading->unterminated_name = reading->source = NULL;
    return status;
}
