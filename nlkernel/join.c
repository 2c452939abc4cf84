/*
 * nlkernel join: joins the traces that nlkernel trace logged on several hosts.
 *
 * A server's record that begins a trace has the field CALL.ID. If nlkernel ran on the client's host, the record of the
 * client's call has the same ID in SPAN.ID. The first pass over the logs collects these IDs. The second pass writes all
 * records. In the server's record, this pass replaces CALL.ID with the parent, and in all records of the server's
 * trace, it sets the trace ID of the call.
 */
#include "config.h"

#include "command.h"

#include "base/error.h"
#include "base/text.h"
#include "log_input.h"
#include "transport/writer.h"

#include <glib.h>
#include <inttypes.h>
#include <string.h>

enum { TRACES_MAX = 256 }; /* maximum number of joins from a server's trace to the trace of the first host */

typedef struct arguments {
    log_input input;
    const char *output;
} arguments;

static const nl_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "-",
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write the records to FILE; - is standard output"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel join",
    .groups = (const options_group[]){{NULL, options, 0}, LOG_INPUT_GROUPS(arguments), {0}},
    .operands = "LOG...",
    .summary = "Join the traces that nlkernel trace logged on several hosts. nlkernel uses the connections' TCP "
               "sequence numbers to make the client's call the parent of the server's request.",
    .notes = "Example: nlkernel join -o all.log web.log app.log db.log",
};

typedef struct joiner {
    GHashTable *calls;   /* maps the ID of a call to the call's trace ID */
    GHashTable *servers; /* maps the ID of a trace that a server's record begins to the value of CALL.ID */
    nl_writer *writer;
    nl_record *record;
    uint64_t joined, unjoined;
    bool failed;
} joiner;

/* Returns a copy of a field's value as text, which the caller frees. Returns NULL if the record lacks the field. */
static char *copy_field(const nl_record *record, const char *name)
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (!nl_record_find(record, name, &field))
        return NULL;
    nl_string text = nl_field_text(&field, scratch);
    return g_strndup(text.data, text.size);
}

static void insert(GHashTable *table, char *key, char *value)
{
    if (key != NULL && value != NULL) {
        g_hash_table_insert(table, key, value);
        return;
    }
    g_free(key);
    g_free(value);
}

static void learn(void *user, const nl_record *record)
{
    static const char suffix[] = ".call";
    joiner *j = user;
    bool is_call = record->event.size >= strlen(suffix) &&
                   memcmp(record->event.data + record->event.size - strlen(suffix), suffix, strlen(suffix)) == 0;
    if (is_call)
        insert(j->calls, copy_field(record, "SPAN.ID"), copy_field(record, "TRACE.ID"));
    else
        insert(j->servers, copy_field(record, "TRACE.ID"), copy_field(record, "CALL.ID"));
}

/* Returns the ID of a trace after the joins. */
static const char *find_trace(const joiner *j, const char *trace)
{
    for (int i = 0; i < TRACES_MAX; i++) {
        const char *call = g_hash_table_lookup(j->servers, trace);
        const char *next = call != NULL ? g_hash_table_lookup(j->calls, call) : NULL;
        if (next == NULL || strcmp(next, trace) == 0)
            break;
        trace = next;
    }
    return trace;
}

static void write_joined(void *user, const nl_record *record)
{
    joiner *j = user;
    nl_record *out = j->record;
    char *trace = copy_field(record, "TRACE.ID"), *call = copy_field(record, "CALL.ID");
    bool joined = call != NULL && g_hash_table_contains(j->calls, call);
    j->joined += joined;
    j->unjoined += call != NULL && !joined;
    nl_record_clear(out);
    nl_record_set_time(out, record->time_ns);
    nl_record_set_level(out, record->level);
    nl_record_set_host(out, record->host.data, record->host.size);
    nl_record_set_prog(out, record->prog.data, record->prog.size);
    nl_record_set_event(out, record->event.data, record->event.size);
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        if (nl_string_is(field->name, "TRACE.ID"))
            nl_record_add_text(out, "TRACE.ID", find_trace(j, trace));
        else if (joined && nl_string_is(field->name, "CALL.ID"))
            nl_record_add_text(out, "PARENT.ID", call);
        else if (!joined || !nl_string_is(field->name, "PARENT.ID"))
            nl_record_add(out, field);
    }
    if (joined)
        nl_record_add_text(out, "EDGE", "message");
    g_free(trace);
    g_free(call);
    if (!j->failed && nl_writer_put(j->writer, out) != NL_OK)
        j->failed = !program_print_error();
}

static bool read_all(arguments *a, char **logs, void (*take)(void *user, const nl_record *record), joiner *j)
{
    bool ok = true;
    for (; *logs != NULL; logs++)
        ok = log_input_read(&a->input, *logs, take, j) && ok;
    return ok;
}

int command_join(int argc, char **argv)
{
    static arguments a;
    int first = options_parse(&usage, argc, argv, &a);
    if (first == argc)
        options_fail("missing LOG");
    const nl_writer_options how = {.buffer_size = 256 << 10, .atomic = true};
    joiner j = {.calls = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                .servers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                .record = nl_record_new()};
    const program_reading unread = a.input.reading;
    bool ok = read_all(&a, argv + first, learn, &j);
    int status = program_reading_finish(&a.input.reading);
    a.input.reading = unread; /* so that the second pass does not report malformed input again */
    a.input.reading.keeps_malformed = true;
    a.input.reading.reject_path = NULL;
    if (ok && (j.writer = nl_writer_open(a.output, &how)) == NULL)
        ok = program_print_error();
    if (ok) {
        ok = read_all(&a, argv + first, write_joined, &j) && !j.failed;
        if (nl_writer_close(j.writer) != NL_OK)
            ok = program_print_error();
    }
    char others[80] = "";
    if (j.unjoined > 0)
        snprintf(others, sizeof others, "; the logs do not contain the calls of %" PRIu64 " other request%s",
                 j.unjoined, nl_plural(j.unjoined));
    if (ok)
        fprintf(stderr, "nlkernel: joined %" PRIu64 " request%s with calls%s\n", j.joined, nl_plural(j.joined), others);
    log_input_finish(&a.input);
    nl_record_free(j.record);
    g_hash_table_destroy(j.calls);
    g_hash_table_destroy(j.servers);
    return ok ? status : PROGRAM_PROBLEM;
}
