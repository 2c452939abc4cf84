/* nlwrite: writes one event from a shell, or passes on the records that it reads. */
#include "config.h"

#include "record/field_name.h"
#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char *destination;
    const char *prog;
    const char *host;
    nl_level level;
    char **words; /* the event and its fields */
    int word_count;
    program_reading reading;
} arguments;

/* How long a record waits for a destination that takes nothing. */
#define PATIENCE_NS (10 * NL_NS_PER_SECOND)

enum { FLUSH_EVERY = 1000 };

enum { OPTION_DEST = 'd', OPTION_PROG = 'p', OPTION_HOST = 0x1000, OPTION_LEVEL = 'l' };

static const struct argp_option options[] = {
    {"dest", OPTION_DEST, "URL", 0,
     "Write there: a file, x-netlog://HOST, unix:SOCKET, x-syslog:// (default "
     "$NETLOGGER_DEST, or standard output)",
     0},
    {"prog", OPTION_PROG, "NAME", 0, "What PROG says (default nlwrite)", 0},
    {"host", OPTION_HOST, "NAME", 0, "What HOST says (default this host's name)", 0},
    {"level", OPTION_LEVEL, "LEVEL", 0, "What LVL says (default Usage): " NL_LEVEL_NAMES, 0},
    {0},
};

static const struct argp_child children[] = {{&program_reading_argp, 0, "Reading records from SOURCEs:", 1}, {0}};

static bool writes_bp(const char *destination)
{
    nl_url *url = nl_url_parse(destination);
    const char *option = url != NULL ? nl_url_option_value(url, "format") : NULL;
    nl_format format = option != NULL                                 ? nl_format_parse(option)
                       : url != NULL && url->scheme == NL_SCHEME_FILE ? nl_format_of_name(url->path)
                                                                      : NL_FORMAT_UNKNOWN;
    nl_url_free(url);
    return format == NL_FORMAT_BP;
}

/* What says that standard field; NULL: the name is none's, in the format that is written. */
static const char *standard_field(const char *name, size_t size, bool bp)
{
    static const struct {
        const char *names[2], *instead;
    } all[] = {{{"DATE", "ts"}, "it is when nlwrite is called"},
               {{"HOST", "host"}, "--host says it"},
               {{"PROG", "prog"}, "--prog says it"},
               {{"LVL", "level"}, "--level says it"},
               {{"NL.EVNT", "event"}, "EVENT is it"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strlen(all[i].names[bp]) == size && memcmp(all[i].names[bp], name, size) == 0)
            return all[i].instead;
    return NULL;
}

/* A field that would get another name in the log is none that was meant. */
static void check_field(struct argp_state *state, const char *word, bool bp)
{
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals == word)
        argp_error(state, "\"%s\" is not FIELD=VALUE", word);
    size_t size = equals != NULL ? (size_t)(equals - word) : 0;
    const char *instead = standard_field(word, size, bp);
    if (instead != NULL)
        argp_error(state, "%.*s is a standard field: %s", (int)size, word, instead);
    if (!nl_is_name((nl_string){word, size}))
        argp_error(state, "\"%.*s\" is no field's name: letters, digits, '.', '_' and '-', the first a letter or '_'",
                   (int)size, word);
}

static void check_words(struct argp_state *state, const arguments *a)
{
    if (a->word_count == 0)
        argp_error(state, "no event given");
    if (strcmp(a->words[0], "-") == 0)
        return;
    bool bp = a->destination != NULL && writes_bp(a->destination);
    for (int i = 1; i < a->word_count; i++)
        check_field(state, a->words[i], bp);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->reading;
        return 0;
    case OPTION_DEST:
        a->destination = argument;
        return 0;
    case OPTION_PROG:
        a->prog = argument;
        return 0;
    case OPTION_HOST:
        a->host = argument;
        return 0;
    case OPTION_LEVEL:
        a->level = nl_level_parse(argument, strlen(argument));
        if (a->level == NL_LEVEL_NONE)
            argp_error(state, "\"%s\" is none of the levels " NL_LEVEL_NAMES, argument);
        return 0;
    case ARGP_KEY_ARGS:
        a->words = state->argv + state->next;
        a->word_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        check_words(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "EVENT [FIELD=VALUE...]\n- [SOURCE...]",
    .doc = "Write one event to a log. With - as EVENT, read records from the SOURCEs, or standard input, and write "
           "those. " PROGRAM_SOURCES "."
           "\vExample: nlwrite --dest x-netlog://dolly Backup.Done SIZE=12345 \"FILE=/home/a b\"",
    .children = children,
};

static nl_status write_event(nl_log *log, const arguments *a)
{
    nl_record *record = nl_record_new();
    nl_record_set_level(record, a->level);
    nl_record_set_event(record, a->words[0], strlen(a->words[0]));
    if (a->host != NULL)
        nl_record_set_host(record, a->host, strlen(a->host));
    for (int i = 1; i < a->word_count; i++) {
        char *equals = strchr(a->words[i], '=');
        *equals = '\0';
        nl_record_add_string(record, a->words[i], equals + 1, strlen(equals + 1));
    }
    nl_status status = nl_write_record(log, record);
    nl_record_free(record);
    return status;
}

/* Passes on a log's records. *read is whether all of them could be. */
static nl_status pass_log_on(nl_log *log, program_reading *reading, const char *name, bool *read)
{
    program_log *in = program_log_open(reading, name, false, false);
    nl_status written = NL_OK, status = NL_FAILED;
    const nl_record *record;
    /* A destination that fails is noticed soon; one that is slow is waited for. */
    for (unsigned count = 1; in != NULL && (status = program_log_next(in, NULL, &record)) == NL_OK && written >= NL_OK;
         count++) {
        written = nl_write_record(log, record);
        if (written == NL_OK && count % FLUSH_EVERY == 0)
            written = nl_flush(log);
    }
    program_log_close(in);
    *read = *read && status != NL_FAILED;
    return written;
}

static nl_status pass_records_on(nl_log *log, arguments *a, bool *read)
{
    static char *standard_input[] = {"-", "-"};
    char **names = a->word_count > 1 ? a->words : standard_input;
    int count = a->word_count > 1 ? a->word_count : 2;
    nl_status status = NL_OK;
    for (int i = 1; i < count && status >= NL_OK; i++)
        status = pass_log_on(log, &a->reading, names[i], read);
    return status;
}

int main(int argc, char **argv)
{
    setenv("NETLOGGER_CLOCK", "no", 0); /* one event is one event; a URL may still ask for it */
    program_start("nlwrite", argv);
    arguments a = {.prog = "nlwrite", .level = NL_USAGE, .destination = getenv("NETLOGGER_DEST")};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    nl_log *log = nl_open(a.prog, a.destination != NULL && *a.destination != '\0' ? a.destination : "-");
    if (log == NULL && *nl_error_message() != '\0')
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    nl_set_policy(log, NL_POLICY_BLOCK, PATIENCE_NS, NL_LEVEL_NONE);
    bool read = true, pass_on = strcmp(a.words[0], "-") == 0;
    nl_status status = pass_on ? pass_records_on(log, &a, &read) : write_event(log, &a);
    char why[512];
    snprintf(why, sizeof why, "%s", nl_error_message());
    nl_status closed = nl_close(log);
    if (closed != NL_OK || status < NL_OK)
        program_error("%s", closed != NL_OK ? nl_error_message() : why);
    int result = program_reading_finish(&a.reading);
    if (status < NL_OK || closed != NL_OK || !read)
        result = PROGRAM_PROBLEM;
    return program_finish(result);
}
