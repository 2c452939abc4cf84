/* From a program's schema, nlschema writes a C header, documentation or JSON. nlschema also measures the cost of
 * events, and compares logs with the schema. */
#include "config.h"

#include "program/json_document.h"
#include "program/program.h"
#include "schema/bench.h"
#include "schema/check.h"
#include "schema/schema.h"

#include <errno.h>
#include <string.h>

typedef struct arguments {
    const char *command;
    const char *path;
    const char *output; /* "-" means standard output */
    schema_doc_style style;
    bool strict;
    char **logs;
    int log_count;
    program_reading reading;
    program_where where;
    schema_bench_options bench;
} arguments;

static const nl_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "-",
     .commands = "header doc json",
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write the output to FILE; - is standard output"},
    {.name = "format",
     .type = NL_OPTION_CHOICE,
     .choices = "markdown|html|text",
     .initial = "markdown",
     .commands = "doc",
     NL_OPTION_MEMBER(arguments, style),
     .help = "Format of the documentation"},
    {.name = "strict",
     .type = NL_OPTION_FLAG,
     .commands = "check",
     NL_OPTION_MEMBER(arguments, strict),
     .help = "Also report undeclared events as deviations"},
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     .commands = "check bench",
     NL_OPTION_MEMBER(arguments, bench.json),
     .help = "Print JSON"},
    {.name = "count",
     .letter = 'n',
     .type = NL_OPTION_COUNT,
     .initial = "100000",
     .minimum = 1,
     .commands = "bench",
     NL_OPTION_MEMBER(arguments, bench.count),
     .help = "Number of times to log each event in each of five rounds"},
    {.name = "cflags",
     .empty_value = true,
     .value = "FLAGS",
     .initial = "(from pkg-config)",
     .commands = "bench",
     NL_OPTION_MEMBER(arguments, bench.cflags),
     .help = "Flags for the compiler"},
    {.name = "libs",
     .empty_value = true,
     .value = "FLAGS",
     .initial = "(from pkg-config)",
     .commands = "bench",
     NL_OPTION_MEMBER(arguments, bench.libs),
     .help = "Flags for the linker"},
    {0},
};

static const options_command commands[] = {
    {"header", "SCHEMA", "Compile a schema into a C and C++ header with a function for each event"},
    {"doc", "SCHEMA", "Document a schema"},
    {"json", "SCHEMA", "Print a schema as JSON"},
    {"bench", "SCHEMA", "Measure the cost of logging each event, with a program that $CC compiles"},
    {"check", "SCHEMA [SOURCE...]", "Check logs against a schema"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Selecting records (check)", program_where_options, offsetof(arguments, where)},
                                      {"Reading logs (check)", program_reading_options, offsetof(arguments, reading)},
                                      {0}},
    .commands = commands,
    .summary = "Work with a schema: a file that declares a program's events and their fields. " PROGRAM_SOURCES ".",
    .notes = "Example: nlschema header dpss.schema -o dpss_events.h; nlschema check dpss.schema dpss.log\n\nA "
             "schema:\n  [schema]\n  name=dpss\n  description=events of a block server\n\n  [WriteData]\n  "
             "level=Usage\n  description=a block was written to the socket\n  SEND.SZ=int64; bytes; number of bytes "
             "sent\n  FILE=string; ; name of the file\n  optional=FILE\n\nTypes are bool, int8 to int64, uint8 to "
             "uint64, float, double, string, bytes and enum(a|b|c). The default level is Usage; optional=A;B names "
             "several fields. Fields named level, description or optional need double quotes. In the header, names "
             "that are reserved in C or C++ get an underscore.",
};

static void nlschema_read_arguments(arguments *a, int argc, char **argv)
{
    int first = options_parse(&usage, argc, argv, a);
    a->command = argv[first];
    if (argc - first < 2)
        options_fail("%s: missing SCHEMA", a->command);
    a->path = argv[first + 1];
    a->logs = argv + first + 2;
    a->log_count = argc - first - 2;
    if (a->log_count > 0 && strcmp(a->command, "check") != 0)
        options_fail("%s: %s: unexpected argument", a->command, a->logs[0]);
}

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
        number++;
        if (nl_filter_matches(a->where.filter, record))
            schema_check_record(c, record, name, number);
        if (number % 1000 == 0) {
            program_log_progress(log, &done, &total);
            program_progress(name, done, total, number);
        }
    }
    program_progress_end();
    program_log_close(log);
    return status != NL_FAILED;
}

static void append_json(GString *out, json_object *document)
{
    g_string_append_printf(out, "%s\n", json_document_text(document, true));
    json_object_put(document);
}

static bool check(arguments *a, const schema *s, GString *out)
{
    schema_check *c = schema_check_new(s, a->strict);
    bool ok = a->log_count > 0 || check_log(a, c, "-");
    for (int i = 0; i < a->log_count; i++)
        ok = check_log(a, c, a->logs[i]) && ok;
    if (!program_has_records(&a->reading, a->reading.records, ""))
        ok = false;
    else if (a->bench.json)
        append_json(out, schema_check_report_json(c));
    else
        schema_check_report(c, out);
    ok = ok && schema_check_deviations(c) == 0;
    schema_check_free(c);
    nl_filter_free(a->where.filter);
    return program_reading_finish(&a->reading) == PROGRAM_DONE && ok;
}

/* Writes text to a file or to standard output. On failure, reports the error and returns false. program_finish reports
 * failures of writing to standard output. */
static bool write_output(const char *path, const GString *text)
{
    if (strcmp(path, "-") == 0) {
        fwrite(text->str, 1, text->len, stdout);
        return true;
    }
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fwrite(text->str, 1, text->len, file) == text->len;
    if (file != NULL && fclose(file) != 0)
        ok = false;
    if (!ok)
        program_error("write %s: %s", path, strerror(errno));
    return ok;
}

static bool nlschema_run(arguments *a, const schema *s, GString *out)
{
    if (strcmp(a->command, "header") == 0)
        schema_header(s, out);
    else if (strcmp(a->command, "doc") == 0)
        schema_doc(s, a->style, out);
    else if (strcmp(a->command, "json") == 0)
        append_json(out, schema_json(s));
    else if (strcmp(a->command, "check") == 0)
        return check(a, s, out);
    else if (!schema_bench(s, &a->bench, out)) {
        program_error("bench: %s", nl_error_message());
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    program_start("nlschema");
    arguments a = {0};
    nlschema_read_arguments(&a, argc, argv);
    schema *s = read_schema(a.path);
    GString *out = g_string_new(NULL);
    bool ok = s != NULL && nlschema_run(&a, s, out);
    if (out->len > 0)
        ok = write_output(a.output, out) && ok;
    g_string_free(out, TRUE);
    schema_free(s);
    return program_finish(ok ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
