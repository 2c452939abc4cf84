/* nlschema: what a program logs, declared: compiled into a header, documented, measured, and logs checked against it.
 */
#include "config.h"

#include "program/program.h"
#include "schema/bench.h"
#include "schema/check.h"
#include "schema/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef enum command { NO_COMMAND = 0, HEADER = 1, DOC = 2, CHECK = 4, JSON = 8, BENCH = 16 } command;

static const struct {
    const char *name;
    command command;
} commands[] = {{"header", HEADER}, {"doc", DOC}, {"check", CHECK}, {"json", JSON}, {"bench", BENCH}};

typedef struct arguments {
    command command;
    const char *path;
    const char *output; /* NULL: standard output */
    schema_doc_style style;
    bool strict;
    bool json;
    char **logs;
    int log_count;
    program_reading reading;
    schema_bench_options bench;
    /* What was asked for that not every command does: */
    unsigned fits;     /* the commands that do it */
    const char *asked; /* the option that made them fewer last */
} arguments;

enum { OPTION_HTML = 0x1000, OPTION_TEXT, OPTION_MARKDOWN, OPTION_STRICT, OPTION_CFLAGS, OPTION_LIBS };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "header, doc, json: write there, not to standard output", 0},
    {"markdown", OPTION_MARKDOWN, NULL, 0, "doc: as Markdown (the default)", 0},
    {"html", OPTION_HTML, NULL, 0, "doc: as a page of HTML", 0},
    {"text", OPTION_TEXT, NULL, 0, "doc: as plain text", 0},
    {"strict", OPTION_STRICT, NULL, 0, "check: an event that the schema does not know is a deviation too", 0},
    {"json", 'j', NULL, 0, "check, bench: print JSON", 0},
    {"count", 'n', "NUMBER", 0, "bench: log each event so often in each of five rounds (default 100000)", 0},
    {"cflags", OPTION_CFLAGS, "FLAGS", 0, "bench: compile with these, not with what pkg-config says of netlogger", 0},
    {"libs", OPTION_LIBS, "FLAGS", 0, "bench: link with these, not with what pkg-config says of netlogger", 0},
    {0},
};

static const struct argp_child children[] = {{&program_reading_argp, 0, "check, reading logs:", 1}, {0}};

/* Notes that an option was given which only those commands have. */
static void asked(arguments *a, const char *option, unsigned fits)
{
    if ((a->fits & ~fits) != 0)
        a->asked = option;
    a->fits &= fits;
}

static void take_words(arguments *a, struct argp_state *state)
{
    char **words = state->argv + state->next;
    int count = state->argc - state->next;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(words[0], commands[i].name) == 0)
            a->command = commands[i].command;
    if (a->command == NO_COMMAND)
        argp_error(state, "\"%s\" is no command: header, doc, check, json and bench are", words[0]);
    if (count < 2)
        argp_error(state, "%s: no schema given", words[0]);
    a->path = words[1];
    a->logs = words + 2;
    a->log_count = count - 2;
    if (a->log_count > 0 && a->command != CHECK)
        argp_error(state, "%s takes one schema: what is \"%s\"?", words[0], words[2]);
    if ((a->fits & a->command) == 0)
        argp_error(state, "%s has no %s", words[0], a->asked);
}

static unsigned long read_count(struct argp_state *state, const char *text)
{
    char *end;
    errno = 0;
    unsigned long count = strtoul(text, &end, 10);
    if (!g_ascii_isdigit(*text) || *end != '\0' || count == 0 || errno != 0)
        argp_error(state, "--count: \"%s\" is no number of 1 or more", text);
    return count;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->reading;
        return 0;
    case 'o':
        a->output = argument;
        asked(a, "--output", HEADER | DOC | JSON);
        return 0;
    case OPTION_MARKDOWN:
    case OPTION_HTML:
    case OPTION_TEXT:
        a->style = key == OPTION_HTML ? SCHEMA_HTML : key == OPTION_TEXT ? SCHEMA_TEXT : SCHEMA_MARKDOWN;
        asked(a, "--html, --text and --markdown", DOC);
        return 0;
    case OPTION_STRICT:
        a->strict = true;
        asked(a, "--strict", CHECK);
        return 0;
    case 'j':
        a->json = true;
        asked(a, "--json", CHECK | BENCH);
        return 0;
    case 'n':
        a->bench.count = read_count(state, argument);
        asked(a, "--count", BENCH);
        return 0;
    case OPTION_CFLAGS:
        a->bench.cflags = argument;
        asked(a, "--cflags", BENCH);
        return 0;
    case OPTION_LIBS:
        a->bench.libs = argument;
        asked(a, "--libs", BENCH);
        return 0;
    case ARGP_KEY_ARGS:
        take_words(a, state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "header SCHEMA\ndoc SCHEMA\njson SCHEMA\nbench SCHEMA\ncheck SCHEMA [SOURCE...]",
    .doc =
        "Compile a schema, which declares events and their fields, into a C and C++ header of a function for each; "
        "document it; print it as JSON; measure what each event costs (with $CC); or check logs against "
        "it. " PROGRAM_SOURCES "."
        "\vExample: nlschema header dpss.schema -o dpss_events.h; nlschema check dpss.schema dpss.log\n\n"
        "A schema:\n"
        "  [schema]\n"
        "  name=dpss\n"
        "  description=what a block server logs\n"
        "\n"
        "  [WriteData]\n"
        "  level=Usage\n"
        "  description=a block was written to the socket\n"
        "  SEND.SZ=int64; bytes; how many bytes were sent\n"
        "  FILE=string; ; the file's name\n"
        "  optional=FILE\n"
        "\n"
        "Types are bool, int8 to int64, uint8 to uint64, float, double, string, bytes and enum(a|b|c). "
        "level is Usage unless said; optional=A;B names several fields. level, description and optional are no names "
        "of fields; words that C or C++ reserve get an underscore in the header.",
    .children = children,
};

static schema *read_schema(const char *path)
{
    GPtrArray *mistakes;
    schema *s = schema_read(path, &mistakes);
    if (s != NULL)
        return s;
    for (guint i = 0; i < mistakes->len; i++) {
        const schema_mistake *m = g_ptr_array_index(mistakes, i);
        if (m->line > 0)
            program_error("%s:%u: %s", path, m->line, m->text);
        else
            program_error("%s: %s", path, m->text);
    }
    g_ptr_array_unref(mistakes);
    return NULL;
}

static bool check_log(arguments *a, schema_check *c, const char *name)
{
    program_log *log = program_log_open(&a->reading, name, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    uint64_t number = 0, done, total;
    while ((status = program_log_next(log, NULL, &record)) == NL_OK) {
        schema_check_record(c, record, name, ++number);
        if (number % 1000 == 0) {
            program_log_progress(log, &done, &total);
            program_progress(name, done, total, number);
        }
    }
    program_progress_end();
    program_log_close(log);
    return status != NL_FAILED;
}

static bool check(arguments *a, const schema *s, GString *out)
{
    schema_check *c = schema_check_new(s, a->strict);
    bool good = a->log_count > 0 || check_log(a, c, "-");
    for (int i = 0; i < a->log_count; i++)
        good = check_log(a, c, a->logs[i]) && good;
    if (a->json)
        schema_check_report_json(c, out);
    else
        schema_check_report(c, out);
    good = good && schema_check_deviations(c) == 0;
    schema_check_free(c);
    return program_reading_finish(&a->reading) == PROGRAM_DONE && good;
}

static bool bench(arguments *a, const schema *s, GString *out)
{
    char *message;
    a->bench.json = a->json;
    bool good = schema_bench(s, &a->bench, out, &message);
    if (!good)
        program_error("bench: %s", message);
    g_free(message);
    return good;
}

/* Writes to the file that was asked for, or to standard output, whose failures program_finish sees. */
static bool put(const char *path, const GString *text)
{
    if (path == NULL || strcmp(path, "-") == 0) {
        fwrite(text->str, 1, text->len, stdout);
        return true;
    }
    FILE *file = fopen(path, "we");
    bool good = file != NULL && fwrite(text->str, 1, text->len, file) == text->len;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (!good)
        program_error("write %s: %s", path, strerror(errno));
    return good;
}

static bool run(arguments *a, const schema *s, GString *out)
{
    switch (a->command) {
    case HEADER:
        schema_header(s, out);
        return true;
    case DOC:
        schema_doc(s, a->style, out);
        return true;
    case JSON:
        schema_json(s, out);
        return true;
    case BENCH:
        return bench(a, s, out);
    default:
        return check(a, s, out);
    }
}

int main(int argc, char **argv)
{
    program_start("nlschema", argv);
    arguments a = {.fits = ~0u, .bench.count = 100000};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    schema *s = read_schema(a.path);
    GString *out = g_string_new(NULL);
    bool good = s != NULL && run(&a, s, out);
    good = s != NULL && put(a.output, out) && good;
    g_string_free(out, TRUE);
    schema_free(s);
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
