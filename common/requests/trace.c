#include "config.h"

#include "requests/trace.h"

#include <glib.h>
#include <string.h>

typedef struct string_entry {
    const char *text;
    double number;
    bool is_number;
} string_entry;

struct trace {
    GArray *records; /* trace_record */
    GArray *fields;  /* trace_field */
    GArray *strings; /* string_entry */
    GHashTable *ids; /* the keys are texts, and the values are their numbers + 1 */
    GStringChunk *texts;
    GByteArray *scratch;
    bool disordered;
};

trace *trace_new(void)
{
    trace *t = g_new0(trace, 1);
    t->records = g_array_new(FALSE, FALSE, sizeof(trace_record));
    t->fields = g_array_new(FALSE, FALSE, sizeof(trace_field));
    t->strings = g_array_new(FALSE, FALSE, sizeof(string_entry));
    t->ids = g_hash_table_new(g_str_hash, g_str_equal);
    t->texts = g_string_chunk_new(64 << 10);
    t->scratch = g_byte_array_new();
    return t;
}

void trace_free(trace *t)
{
    if (t == NULL)
        return;
    g_array_free(t->records, TRUE);
    g_array_free(t->fields, TRUE);
    g_array_free(t->strings, TRUE);
    g_hash_table_destroy(t->ids);
    g_string_chunk_free(t->texts);
    g_byte_array_free(t->scratch, TRUE);
    g_free(t);
}

/* Returns text as a C string, with spaces for NULs. */
static const char *terminated(trace *t, nl_string text)
{
    g_byte_array_set_size(t->scratch, 0);
    g_byte_array_append(t->scratch, (const guint8 *)text.data, (guint)text.size);
    for (guint i = 0; i < t->scratch->len; i++)
        if (t->scratch->data[i] == '\0')
            t->scratch->data[i] = ' ';
    g_byte_array_append(t->scratch, (const guint8 *)"", 1);
    return (const char *)t->scratch->data;
}

static uint32_t intern(trace *t, nl_string text)
{
    if (text.data == NULL)
        return TRACE_NONE;
    const char *key = terminated(t, text);
    gpointer found = g_hash_table_lookup(t->ids, key);
    if (found != NULL)
        return GPOINTER_TO_UINT(found) - 1;
    string_entry entry = {.text = g_string_chunk_insert(t->texts, key)};
    nl_field field = {.type = NL_TYPE_STRING, .string = text};
    entry.is_number = nl_field_double(&field, &entry.number) && entry.number - entry.number == 0;
    g_array_append_val(t->strings, entry);
    uint32_t id = t->strings->len - 1;
    g_hash_table_insert(t->ids, (gpointer)entry.text, GUINT_TO_POINTER(id + 1));
    return id;
}

void trace_add(trace *t, const nl_record *record)
{
    trace_record r = {
        .time_ns = record->time_ns,
        .event = intern(t, record->event),
        .host = intern(t, record->host),
        .prog = intern(t, record->prog),
        .first_field = t->fields->len,
        .field_count = (uint32_t)record->field_count,
    };
    for (size_t i = 0; i < record->field_count; i++) {
        char scratch[NL_FIELD_TEXT_SIZE];
        trace_field field = {intern(t, record->fields[i].name), intern(t, nl_field_text(&record->fields[i], scratch))};
        g_array_append_val(t->fields, field);
    }
    guint count = t->records->len;
    if (count > 0 && g_array_index(t->records, trace_record, count - 1).time_ns > r.time_ns)
        t->disordered = true;
    g_array_append_val(t->records, r);
}

/* Orders records by time, and records of one time by arrival, which is the order of their stored fields. */
static gint by_time(gconstpointer a, gconstpointer b)
{
    const trace_record *first = a, *second = b;
    if (first->time_ns != second->time_ns)
        return first->time_ns < second->time_ns ? -1 : 1;
    return (first->first_field > second->first_field) - (first->first_field < second->first_field);
}

void trace_sort(trace *t)
{
    if (t->disordered)
        g_array_sort(t->records, by_time);
    t->disordered = false;
}

size_t trace_count(const trace *t)
{
    return t->records->len;
}

const trace_record *trace_get(const trace *t, size_t i)
{
    return &g_array_index(t->records, trace_record, i);
}

const trace_field *trace_fields(const trace *t, const trace_record *record)
{
    return &g_array_index(t->fields, trace_field, record->first_field);
}

uint32_t trace_value(const trace *t, const trace_record *record, uint32_t name)
{
    if (name == TRACE_NONE)
        return TRACE_NONE;
    const trace_field *fields = trace_fields(t, record);
    for (uint32_t i = 0; i < record->field_count; i++)
        if (fields[i].name == name)
            return fields[i].value;
    return TRACE_NONE;
}

size_t trace_string_count(const trace *t)
{
    return t->strings->len;
}

const char *trace_string(const trace *t, uint32_t id)
{
    return id == TRACE_NONE ? "" : g_array_index(t->strings, string_entry, id).text;
}

uint32_t trace_find(const trace *t, const char *text)
{
    gpointer found = g_hash_table_lookup(t->ids, text);
    return found == NULL ? TRACE_NONE : GPOINTER_TO_UINT(found) - 1;
}

bool trace_number(const trace *t, uint32_t id, double *value)
{
    if (id == TRACE_NONE)
        return false;
    const string_entry *entry = &g_array_index(t->strings, string_entry, id);
    *value = entry->number;
    return entry->is_number;
}
