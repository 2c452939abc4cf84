/* nlwrite: writes one event to a log, or copies the records of logs to a log. */
#include "config.h"

#include "base/text.h"
#include "record/text.h"
#include "program/own_log.h"
#include "program/program.h"
#include "record/format.h"
#include "base/error.h"
#include "transport/dial.h"
#include "transport/log_options.h"
#include "transport/source_collector.h"
#include "transport/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char *destination;
    const char *prog;
    const char *host;
    nl_level level;
    char **operands; /* the event and its fields */
    int operand_count;
    bool opened; /* the log has been opened */
    program_reading reading;
    program_where where;
    /* Options of URLs, which only --help=json shows. */
    nl_log_options url_options;
    nl_dialer_options tls_options;
    nl_subscription_options subscription_options;
} arguments;

/* Maximum time for which a record waits for a destination. */
#define PATIENCE_NS (10 * NL_NS_PER_SECOND)

enum { FLUSH_EVERY = 1000 };

static const nl_option options[] = {
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     .initial = "-",
     .environment = "NETLOGGER_DEST",
     NL_OPTION_MEMBER(arguments, destination),
     .help = "Send records to URL: a file, x-netlog://HOST, unix:SOCKET, x-syslog://, or - for standard output"},
    {.name = "prog",
     .letter = 'p',
     .value = "NAME",
     .initial = "nlwrite",
     NL_OPTION_MEMBER(arguments, prog),
     .help = "Value of PROG"},
    {.name = "host",
     .value = "NAME",
     .initial = "(this host's name)",
     NL_OPTION_MEMBER(arguments, host),
     .help = "Value of HOST"},
    {.name = "level",
     .type = NL_OPTION_LEVEL,
     .initial = "(Usage)",
     NL_OPTION_MEMBER(arguments, level),
     .help = "Value of LVL: " NL_LEVEL_NAMES},
    {0},
};

static nl_format format_of_destination(const char *destination)
{
    nl_url *url = nl_url_parse(destination);
    nl_format format = url != NULL ? nl_writer_url_format(url) : NL_FORMAT_UNKNOWN;
    nl_url_free(url);
    return format;
}

/* Returns a text that explains how to set a standard field, or NULL if `name` is not a standard field of `format`. */
static const char *standard_field(const char *name, size_t size, nl_format format)
{
    static const char *const instead[] = {[NL_MEMBER_TIME] = "nlwrite sets it to the current time",
                                          [NL_MEMBER_HOST] = "use --host",
                                          [NL_MEMBER_PROG] = "use --prog",
                                          [NL_MEMBER_LEVEL] = "use --level",
                                          [NL_MEMBER_EVENT] = "EVENT sets it"};
    const nl_text_format *text = nl_format_get_info(nl_format_is_text(format) ? format : NL_FORMAT_ULM)->text;
    nl_member member = size > 0 ? nl_text_member(text, name, size) : NL_MEMBER_NONE;
    return member != NL_MEMBER_NONE ? instead[member] : NULL;
}

/* Exits with a message if a word is not FIELD=VALUE, or if FIELD is invalid or a standard field. */
static void check_field(const char *word, nl_format format)
{
    size_t size = strcspn(word, "=");
    if (size == 0 || word[size] == '\0')
        options_fail("\"%s\" is not FIELD=VALUE", word);
    const char *instead = standard_field(word, size, format);
    if (instead != NULL)
        options_fail("%.*s is a standard field; %s", (int)size, word, instead);
    if (!nl_is_name((nl_string){word, size}))
        options_fail(
            "\"%.*s\" is not a field name; use letters, digits, '.', '_' and '-', beginning with a letter or '_'",
            (int)size, word);
}

static void check_operands(const arguments *a)
{
    if (a->operand_count == 0)
        options_fail("missing EVENT; see nlwrite --help");
    if (strcmp(a->operands[0], "-") == 0) {
        if (a->host != NULL || a->level != NL_LEVEL_NONE)
            options_fail("--%s applies only to EVENT; copied records keep their values",
                         a->host != NULL ? "host" : "level");
        return;
    }
    nl_format format = format_of_destination(a->destination);
    for (int i = 1; i < a->operand_count; i++)
        check_field(a->operands[i], format);
}

static void read_url_options(void *settings)
{
    arguments *a = settings;
    nl_url *url = nl_url_parse(a->destination);
    if (url == NULL || nl_log_options_read(&a->url_options, url, true) != NL_OK ||
        nl_url_pick_options(url, nl_dialer_rows, &a->tls_options) != NL_OK)
        options_fail("%s", nl_error_message());
}

static const options_usage usage = {
    .groups =
        (const options_group[]){{NULL, options, 0},
                                {"Selecting records of SOURCEs", program_where_options, offsetof(arguments, where)},
                                {"Reading records from SOURCEs", program_reading_options, offsetof(arguments, reading)},
                                {0}},
    .operands = "EVENT [FIELD=VALUE...]\n- [SOURCE...]",
    .summary = "Write one event to a log. With - as EVENT, copy the records of the SOURCEs, or of standard input, to "
               "the log. " PROGRAM_SOURCES ".",
    .read_urls = read_url_options,
    .urls =
        (const options_group[]){
            {"Options of a log's URL", nl_log_rows, offsetof(arguments, url_options)},
            {"Options of a destination's URL", nl_writer_rows, offsetof(arguments, url_options.writer)},
            {"Options of an x-netlogs URL", nl_dialer_rows, offsetof(arguments, tls_options)},
            {"Options for reading from a collector", nl_subscription_rows, offsetof(arguments, subscription_options)},
            {0}},
    .variables =
        (const options_group[]){{"Environment variables of every program that logs", nl_environment_rows, 0}, {0}},
    .notes = "Example: nlwrite --dest x-netlog://dolly Backup.Done SIZE=12345 \"FILE=/home/a b\"",
};

static nl_status write_event(nl_log *log, const arguments *a)
{
    nl_record *record = nl_record_new();
    nl_record_set_level(record, a->level != NL_LEVEL_NONE ? a->level : NL_USAGE);
    nl_record_set_event(record, a->operands[0], strlen(a->operands[0]));
    if (a->host != NULL)
        nl_record_set_host(record, a->host, strlen(a->host));
    for (int i = 1; i < a->operand_count; i++) {
        char *equals = strchr(a->operands[i], '=');
        *equals = '\0';
        nl_record_add_string(record, a->operands[i], equals + 1, strlen(equals + 1));
    }
    nl_status status = nl_write_record(log, record);
    nl_record_free(record);
    return status;
}

/* Opens the log. Exits with a message on failure. Returns NULL if logging is switched off. */
static nl_log *nlwrite_open(arguments *a)
{
    a->opened = true;
    nl_log *log = program_open_log(a->prog, a->destination, false);
    if (log == NULL && *nl_error_message() != '\0')
        program_fail_with_error(PROGRAM_PROBLEM);
    nl_set_policy(log, NL_POLICY_BLOCK, PATIENCE_NS, NL_LEVEL_NONE);
    return log;
}

/* Copies the records of a source to *log. Opens the log before the first record. Adds the number of records to *count.
 * Returns the status of writing. */
static nl_status copy_source(nl_log **log, arguments *a, const char *name, uint64_t *count)
{
    program_log *in = program_log_open(&a->reading, name, false, false);
    nl_status written = NL_OK;
    const nl_record *record;
    /* flush regularly, to detect a failed destination early */
    while (in != NULL && written >= NL_OK && program_log_next(in, a->where.filter, &record) == NL_OK) {
        if (!a->opened)
            *log = nlwrite_open(a);
        written = nl_write_record(*log, record);
        if (written == NL_OK && ++*count % FLUSH_EVERY == 0)
            written = nl_flush(*log);
    }
    program_log_close(in);
    return written;
}

/* Copies the records of all sources, until the log fails. Sets *copied to the number of records that the log has. */
static nl_status copy_sources(nl_log **log, arguments *a, uint64_t *copied)
{
    static char *standard_input[] = {"-", "-"};
    char **names = a->operand_count > 1 ? a->operands : standard_input;
    int count = a->operand_count > 1 ? a->operand_count : 2;
    nl_status status = NL_OK;
    for (int i = 1; i < count && status >= NL_OK; i++)
        status = copy_source(log, a, names[i], copied);
    return status;
}

int main(int argc, char **argv)
{
    /* write no clock records in addition to the event, unless the environment or the URL requests them */
    setenv("NETLOGGER_CLOCK", "no", 0);
    program_start("nlwrite");
    arguments a = {0};
    int first = options_parse(&usage, argc, argv, &a);
    a.operands = argv + first;
    a.operand_count = argc - first;
    check_operands(&a);
    bool copies = strcmp(a.operands[0], "-") == 0;
    nl_log *log = copies ? NULL : nlwrite_open(&a);
    uint64_t copied = 0;
    nl_status status = copies ? copy_sources(&log, &a, &copied) : write_event(log, &a);
    nl_error error;
    nl_error_save(&error);
    nl_status closed = program_close_log(log);
    if (closed != NL_OK || status < NL_OK)
        program_error("%s", closed != NL_OK ? nl_error_message() : error.message);
    if (copies && status < NL_OK)
        program_error("stopped after %" PRIu64 " record%s; the rest of the input is not copied", copied,
                      nl_plural(copied));
    int result = program_reading_finish(&a.reading);
    nl_filter_free(a.where.filter);
    if (status < NL_OK || closed != NL_OK)
        result = PROGRAM_PROBLEM;
    return program_finish(result);
}
