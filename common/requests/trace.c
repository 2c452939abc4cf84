#include "config.h"

#include "requests/trace.h"

#include "base/hash_bytes.h"
#include "base/text.h"
#include "requests/key_map.h"

#include <glib.h>
#include <string.h>

typedef struct string_entry {
    const char *text;
    size_t size;
    double number;
    bool is_number;
} string_entry;

struct trace {
    GArray *records; /* trace_record */
    GArray *fields;  /* trace_field */
    GArray *strings; /* string_entry */
    key_map ids;     /* maps the key of a text (see find_key) to its number + 1 */
    uint64_t seed;
    GStringChunk *texts;
    bool disordered;
};

trace *trace_new(void)
{
    trace *t = g_new0(trace, 1);
    t->records = g_array_new(FALSE, FALSE, sizeof(trace_record));
    t->fields = g_array_new(FALSE, FALSE, sizeof(trace_field));
    t->strings = g_array_new(FALSE, FALSE, sizeof(string_entry));
    t->seed = (uint64_t)g_random_int() << 32 | g_random_int();
    t->texts = g_string_chunk_new(64 << 10);
    return t;
}

void trace_free(trace *t)
{
    if (t == NULL)
        return;
    g_array_free(t->records, TRUE);
    g_array_free(t->fields, TRUE);
    g_array_free(t->strings, TRUE);
    key_map_free(&t->ids);
    g_string_chunk_free(t->texts);
    g_free(t);
}

static const string_entry *string_at(const trace *t, uint64_t id)
{
    return &g_array_index(t->strings, string_entry, id);
}

/* Returns the key of a text in t->ids: a hash that no other text of the trace has. */
static uint64_t find_key(const trace *t, nl_string text)
{
    uint64_t key = hash_bytes(t->seed, text.data, text.size) | 1;
    for (const uint64_t *found; (found = key_map_find(&t->ids, key)) != NULL; key += 2) {
        const string_entry *known = string_at(t, *found - 1);
        if (known->size == text.size && memcmp(known->text, text.data, text.size) == 0)
            break;
    }
    return key;
}

/* Returns the number of a text without NULs. Adds a copy of the text if it is new. */
static uint32_t intern_text(trace *t, nl_string text)
{
    uint64_t *id = key_map_add(&t->ids, find_key(t, text));
    if (*id != 0)
        return (uint32_t)(*id - 1);
    string_entry entry = {.text = g_string_chunk_insert_len(t->texts, text.data, (gssize)text.size), .size = text.size};
    nl_field field = {.type = NL_TYPE_STRING, .string = text};
    entry.is_number = nl_field_double(&field, &entry.number) && entry.number - entry.number == 0;
    g_array_append_val(t->strings, entry);
    *id = t->strings->len;
    return t->strings->len - 1;
}

/* Like intern_text, but replaces NULs with spaces. Returns TRACE_NONE if the text has no data. */
static uint32_t intern(trace *t, nl_string text)
{
    if (text.data == NULL)
        return TRACE_NONE;
    if (text.size == 0 || memchr(text.data, '\0', text.size) == NULL)
        return intern_text(t, text);
    char *shown = g_strndup("", text.size);
    for (size_t i = 0; i < text.size; i++)
        shown[i] = text.data[i] != '\0' ? text.data[i] : ' ';
    uint32_t id = intern_text(t, (nl_string){shown, text.size});
    g_free(shown);
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

/* Orders records by time, and records with equal times by arrival, which is the order of their stored fields. */
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
    return id == TRACE_NONE ? "" : string_at(t, id)->text;
}

uint32_t trace_find(const trace *t, const char *text)
{
    const uint64_t *id = key_map_find(&t->ids, find_key(t, nl_string_of(text)));
    return id == NULL ? TRACE_NONE : (uint32_t)(*id - 1);
}

bool trace_number(const trace *t, uint32_t id, double *value)
{
    if (id == TRACE_NONE)
        return false;
    const string_entry *entry = string_at(t, id);
    *value = entry->number;
    return entry->is_number;
}
