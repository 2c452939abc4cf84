#include "config.h"

#include "bench.h"

#include "program/json_document.h"
#include "program/glib_error.h"

#include <glib/gstdio.h>

#include <stdlib.h>

/* The part of the measuring program's source that does not depend on the schema. */
static const char program_top[] = "#define _GNU_SOURCE 1\n"
                                  "#include \"events.h\"\n"
                                  "#include <stdio.h>\n"
                                  "#include <stdlib.h>\n"
                                  "#include <time.h>\n\n";

static const char program_main[] =
    "static double now_ns(void)\n"
    "{\n"
    "    struct timespec now;\n"
    "    clock_gettime(CLOCK_MONOTONIC, &now);\n"
    "    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;\n"
    "}\n\n"
    "static nl_log *open_log(const char *url)\n"
    "{\n"
    "    nl_log *log = nl_open(\"nlschema\", url);\n"
    "    if (log == NULL) {\n"
    "        fprintf(stderr, \"%s\\n\", nl_error_message());\n"
    "        exit(1);\n"
    "    }\n"
    "    nl_set_level(log, NL_DEBUG);\n"
    "    return log;\n"
    "}\n\n"
    "static void close_log(nl_log *log)\n"
    "{\n"
    "    if (nl_close(log) != NL_OK) {\n"
    "        fprintf(stderr, \"%s\\n\", nl_error_message());\n"
    "        exit(1);\n"
    "    }\n"
    "}\n\n"
    "static size_t measure_bytes(void (*call)(nl_log *, unsigned long))\n"
    "{\n"
    "    nl_log *log = open_log(\"memory:nlschema\");\n"
    "    call(log, 1);\n"
    "    close_log(log);\n"
    "    nl_buffer written = {0};\n"
    "    nl_memory_read(\"nlschema\", &written);\n"
    "    size_t size = written.size;\n"
    "    nl_buffer_free(&written);\n"
    "    nl_memory_free(\"nlschema\");\n"
    "    return size;\n"
    "}\n\n"
    "/* Logs some events at a time, so that the buffer of the log is never full. */\n"
    "static double measure_round(nl_log *log, void (*call)(nl_log *, unsigned long), unsigned long count)\n"
    "{\n"
    "    double sum = 0;\n"
    "    for (unsigned long left = count; left > 0;) {\n"
    "        unsigned long some = left < 200 ? left : 200;\n"
    "        double start = now_ns();\n"
    "        call(log, some);\n"
    "        sum += now_ns() - start;\n"
    "        nl_flush(log);\n"
    "        left -= some;\n"
    "    }\n"
    "    return sum / (double)count;\n"
    "}\n\n"
    "static double measure_ns(void (*call)(nl_log *, unsigned long), unsigned long count)\n"
    "{\n"
    "    double best = 0;\n"
    "    nl_log *log = open_log(\"file:/dev/null\");\n"
    "    for (int round = 0; round < 5; round++) {\n"
    "        double each = measure_round(log, call, count);\n"
    "        best = round == 0 || each < best ? each : best;\n"
    "    }\n"
    "    close_log(log);\n"
    "    return best;\n"
    "}\n\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;\n"
    "    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)\n"
    "        printf(\"%.2f %zu\\n\", measure_ns(calls[i], count), measure_bytes(calls[i]));\n"
    "    return 0;\n"
    "}\n";

/* Returns a typical value of a field as a C expression. */
static char *typical_value(const schema_field *f)
{
    static const char *const values[] = {
        [SCHEMA_BOOL] = "true",
        [SCHEMA_INT8] = "-42",
        [SCHEMA_INT16] = "-12345",
        [SCHEMA_INT32] = "1234567",
        [SCHEMA_INT64] = "INT64_C(123456789012)",
        [SCHEMA_UINT8] = "200",
        [SCHEMA_UINT16] = "14830",
        [SCHEMA_UINT32] = "1234567",
        [SCHEMA_UINT64] = "UINT64_C(123456789012)",
        [SCHEMA_FLOAT] = "0.25f",
        [SCHEMA_DOUBLE] = "1234.5678",
        [SCHEMA_STRING] = "\"/data/run-17/block-0042\"",
        [SCHEMA_BYTES] = "NL_BYTES(\"sixteen bytes 16\", 16)",
    };
    return g_strdup(f->type == SCHEMA_ENUM ? g_ptr_array_index(f->constants, 0) : values[f->type]);
}

static void append_call(const schema_event *e, guint number, GString *out)
{
    g_string_append_printf(out,
                           "static void call_%u(nl_log *log, unsigned long count)\n{\n"
                           "    for (unsigned long i = 0; i < count; i++)\n        %s(log",
                           number, e->function);
    for (guint i = 0; i < e->fields->len; i++) {
        char *value = typical_value(g_ptr_array_index(e->fields, i));
        g_string_append_printf(out, ", %s", value);
        g_free(value);
    }
    g_string_append(out, ");\n}\n\n");
}

static GString *make_program(const schema *s)
{
    GString *out = g_string_new(program_top);
    for (guint i = 0; i < s->events->len; i++)
        append_call(g_ptr_array_index(s->events, i), i, out);
    g_string_append(out, "static void (*const calls[])(nl_log *, unsigned long) = {");
    for (guint i = 0; i < s->events->len; i++)
        g_string_append_printf(out, "%scall_%u", i > 0 ? ", " : "", i);
    g_string_append(out, "};\n\n");
    g_string_append(out, program_main);
    return out;
}

/* Runs a command without NetLogger's variables in its environment. Returns the command's output, which the caller frees
 * with g_free, or NULL on failure. */
static char *bench_run(char **command)
{
    char **environment = g_get_environ(), *printed = NULL, *errors = NULL;
    static const char *const variables[] = {"NETLOGGER_DEST", "NETLOGGER_ON", "NETLOGGER_LEVEL", "NETLOGGER_HOST"};
    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++)
        environment = g_environ_unsetenv(environment, variables[i]);
    GError *error = NULL;
    int status = 0;
    bool ok =
        g_spawn_sync(NULL, command, environment, G_SPAWN_SEARCH_PATH, NULL, NULL, &printed, &errors, &status, &error) ||
        glib_error_take(error);
    if (ok && status != 0)
        ok = nl_error_false(NL_ERROR_SYSTEM, "%s failed%s%s", command[0], *errors != '\0' ? ":\n" : "",
                            g_strchomp(errors));
    g_strfreev(environment);
    g_free(errors);
    if (ok)
        return printed;
    g_free(printed);
    return NULL;
}

/* Splits text into arguments as a shell does, and appends them to a command. Returns false and sets the error if the
 * text is invalid. */
static bool add_arguments(GPtrArray *command, const char *text)
{
    GError *error = NULL;
    char **arguments = NULL;
    bool ok = g_shell_parse_argv(text, NULL, &arguments, &error) || error->code == G_SHELL_ERROR_EMPTY_STRING;
    if (!ok)
        nl_error_set(NL_ERROR_INVALID, "\"%s\": %s", text, error->message);
    g_clear_error(&error);
    for (char **argument = arguments; argument != NULL && *argument != NULL; argument++)
        g_ptr_array_add(command, g_strdup(*argument));
    g_strfreev(arguments);
    return ok;
}

/* Appends the user's flags `given` or, if `given` is NULL, the flags that pkg-config prints for the option `asked`.
 * Returns false on failure. */
static bool add_flags(GPtrArray *command, const char *given, const char *asked)
{
    if (given != NULL)
        return add_arguments(command, given);
    const char *program = g_getenv("PKG_CONFIG");
    char *question[] = {(char *)(program != NULL && *program != '\0' ? program : "pkg-config"), (char *)asked,
                        (char *)"netlogger", NULL};
    char *flags = bench_run(question);
    bool ok = flags != NULL && add_arguments(command, flags);
    g_free(flags);
    return ok;
}

static bool compile(const schema_bench_options *how, const char *source, const char *program)
{
    const char *cc = g_getenv("CC");
    GPtrArray *command = g_ptr_array_new_with_free_func(g_free);
    bool ok = add_arguments(command, cc != NULL && *cc != '\0' ? cc : "cc") &&
              add_arguments(command, "-std=gnu11 -O2") && add_flags(command, how->cflags, "--cflags");
    g_ptr_array_add(command, g_strdup(source));
    g_ptr_array_add(command, g_strdup("-o"));
    g_ptr_array_add(command, g_strdup(program));
    ok = ok && add_flags(command, how->libs, "--libs");
    g_ptr_array_add(command, NULL);
    char *printed = ok ? bench_run((char **)command->pdata) : NULL;
    ok = printed != NULL;
    g_free(printed);
    g_ptr_array_unref(command);
    return ok;
}

/* Writes, compiles and runs the measuring program. Returns the program's output, which the caller frees with g_free, or
 * NULL on failure. */
static char *schema_bench_measure(const schema *s, const schema_bench_options *how, char *const files[3])
{
    GString *header = g_string_new(NULL), *source = make_program(s);
    schema_header(s, header);
    GError *error = NULL;
    char *printed = NULL;
    if (!g_file_set_contents(files[0], header->str, (gssize)header->len, &error) ||
        !g_file_set_contents(files[1], source->str, (gssize)source->len, &error)) {
        glib_error_take(error);
    } else if (compile(how, files[1], files[2])) {
        char *count = g_strdup_printf("%lu", how->count);
        printed = bench_run((char *[]){files[2], count, NULL});
        g_free(count);
    }
    g_string_free(header, TRUE);
    g_string_free(source, TRUE);
    return printed;
}

/* Appends a table of the lines "NANOSECONDS BYTES" that the program has printed, one for each event. */
static void append_table(const schema *s, const char *printed, bool json, GString *out)
{
    char **lines = g_strsplit(printed, "\n", 0);
    guint count = MIN(g_strv_length(lines), s->events->len);
    json_object *table = json_object_new_array();
    if (!json)
        g_string_append_printf(out, "%-32s %12s %12s\n", "event", "ns", "bytes");
    for (guint i = 0; i < count; i++) {
        const schema_event *e = g_ptr_array_index(s->events, i);
        char *bytes = lines[i];
        double ns = g_ascii_strtod(lines[i], &bytes);
        unsigned long size = strtoul(bytes, NULL, 10);
        if (json) {
            json_object *row = json_object_new_object();
            json_add_text(row, "event", e->name);
            json_add_double(row, "ns", ns);
            json_add_int(row, "bytes", (int64_t)size);
            json_object_array_add(table, row);
        } else {
            g_string_append_printf(out, "%-32s %12.1f %12lu\n", e->name, ns, size);
        }
    }
    if (json)
        g_string_append_printf(out, "%s\n", json_document_text(table, true));
    json_object_put(table);
    g_strfreev(lines);
}

bool schema_bench(const schema *s, const schema_bench_options *how, GString *out)
{
    GError *error = NULL;
    char *directory = g_dir_make_tmp("nlschema-XXXXXX", &error);
    if (directory == NULL) {
        glib_error_take(error);
        return nl_error_prepend("%s", g_get_tmp_dir()) == NL_OK;
    }
    char *files[] = {g_build_filename(directory, "events.h", NULL), g_build_filename(directory, "bench.c", NULL),
                     g_build_filename(directory, "bench", NULL)};
    char *printed = schema_bench_measure(s, how, files);
    bool ok = printed != NULL;
    if (ok)
        append_table(s, printed, how->json, out);
    g_free(printed);
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_unlink(files[i]);
        g_free(files[i]);
    }
    g_rmdir(directory);
    g_free(directory);
    return ok;
}
