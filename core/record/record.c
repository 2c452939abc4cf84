#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/text.h"
#include "record/field_name.h"
#include "record/number.h"
#include "record/record_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_FIELDS = 16,      /* most records have fewer fields */
    FIRST_CHUNK = 256,      /* bytes */
    KEPT_CHUNK = 64 * 1024, /* bytes that nl_record_clear keeps for reuse */
    KEPT_FIELDS = 1024,
};

struct nl_chunk {
    nl_chunk *next;
    size_t used;
    size_t capacity;
    char data[];
};

static nl_record_storage *storage_of(nl_record *record)
{
    return (nl_record_storage *)(void *)record;
}

nl_record *nl_record_new(void)
{
    nl_record_storage *storage = nl_memory_check(calloc(1, sizeof *storage));
    return storage != NULL ? &storage->record : NULL;
}

/* Frees all chunks. Keeps the newest chunk, which is the largest, if it has at most keep bytes. */
static void free_chunks(nl_record_storage *storage, size_t keep)
{
    nl_chunk *chunk = storage->chunks;
    storage->chunks = NULL;
    if (chunk != NULL && chunk->capacity <= keep) {
        storage->chunks = chunk;
        chunk = chunk->next;
        storage->chunks->next = NULL;
        storage->chunks->used = 0;
    }
    while (chunk != NULL) {
        nl_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

/* Clears the members one by one, because gcc would clear the struct with a slower instruction. */
static inline void empty(nl_record *record, const nl_field *fields)
{
    static const nl_string none;
    record->time_ns = 0;
    record->level = NL_LEVEL_NONE;
    record->level_text = record->host = record->prog = record->event = record->raw = none;
    record->fields = fields;
    record->field_count = 0;
    record->raw_format = NL_FORMAT_UNKNOWN;
    record->flags = 0;
}

static void clear(nl_record *record, size_t keep_bytes, size_t keep_fields)
{
    nl_record_storage *storage = storage_of(record);
    if (storage->chunks != NULL)
        free_chunks(storage, keep_bytes);
    if (storage->field_capacity > keep_fields) {
        free(storage->fields);
        storage->fields = NULL;
        storage->field_capacity = 0;
    }
    empty(record, storage->fields);
}

void nl_record_free(nl_record *record)
{
    if (record == NULL)
        return;
    clear(record, 0, 0);
    free(storage_of(record));
}

void nl_record_clear(nl_record *record)
{
    if (record != NULL)
        clear(record, KEPT_CHUNK, KEPT_FIELDS);
}

void nl_record_trim(nl_record *record)
{
    clear(record, FIRST_CHUNK, FIRST_FIELDS);
}

static void mark_incomplete(nl_record *record)
{
    record->flags |= NL_RECORD_INCOMPLETE;
    nl_memory_failed();
}

bool nl_record_grow(nl_record_storage *storage)
{
    size_t capacity = storage->field_capacity == 0 ? FIRST_FIELDS : storage->field_capacity * 2;
    nl_field *fields = reallocarray(storage->fields, capacity, sizeof *fields);
    if (fields == NULL) {
        mark_incomplete(&storage->record);
        return false;
    }
    storage->fields = fields;
    storage->field_capacity = capacity;
    storage->record.fields = fields;
    return true;
}

char *nl_record_allocate(nl_record *record, size_t size)
{
    nl_record_storage *storage = storage_of(record);
    nl_chunk *chunk = storage->chunks;
    if (chunk == NULL || chunk->capacity - chunk->used < size) {
        size_t capacity = chunk == NULL ? FIRST_CHUNK : chunk->capacity * 2;
        capacity = capacity < size ? size : capacity;
        nl_chunk *larger = malloc(sizeof *larger + capacity);
        if (larger == NULL) {
            mark_incomplete(record);
            return NULL;
        }
        *larger = (nl_chunk){.next = chunk, .capacity = capacity};
        storage->chunks = chunk = larger;
    }
    char *data = chunk->data + chunk->used;
    chunk->used += size;
    return data;
}

/* Returns a copy in the record's memory. The copy's data is NULL if memory runs out. */
static nl_string copy_bytes(nl_record *record, const char *data, size_t size)
{
    char *copy = nl_record_allocate(record, size);
    if (copy == NULL)
        return (nl_string){NULL, 0};
    if (size > 0)
        memcpy(copy, data, size);
    return (nl_string){copy, size};
}

/* Copies a string of source. If the string points into source's raw text, the copy points into the copied raw text. */
static nl_string copy_string(nl_record *record, nl_string string, nl_string raw)
{
    if (string.data == NULL)
        return string;
    uintptr_t start = (uintptr_t)raw.data, at = (uintptr_t)string.data;
    if (record->raw.data != NULL && at >= start && at - start <= raw.size && string.size <= raw.size - (at - start))
        return (nl_string){record->raw.data + (at - start), string.size};
    return copy_bytes(record, string.data, string.size);
}

void nl_record_copy(nl_record *record, const nl_record *source)
{
    if (record == NULL || record == source)
        return;
    nl_record_clear(record);
    if (source->raw.data != NULL)
        record->raw = copy_bytes(record, source->raw.data, source->raw.size);
    record->raw_format = source->raw_format;
    record->time_ns = source->time_ns;
    record->level = source->level;
    record->flags |= source->flags;
    record->level_text = copy_string(record, source->level_text, source->raw);
    record->host = copy_string(record, source->host, source->raw);
    record->prog = copy_string(record, source->prog, source->raw);
    record->event = copy_string(record, source->event, source->raw);
    for (size_t i = 0; i < source->field_count; i++) {
        nl_field *field = nl_record_append(record);
        if (field == NULL)
            return;
        *field = source->fields[i];
        field->name = copy_string(record, field->name, source->raw);
        if (field->type == NL_TYPE_STRING)
            field->string = copy_string(record, field->string, source->raw);
    }
}

/*
 * Removes the raw text from the record, because the caller is about to change the record. Returns false if record is
 * NULL.
 */
static bool forget_raw(nl_record *record)
{
    if (record == NULL)
        return false;
    record->raw = (nl_string){NULL, 0};
    record->raw_format = NL_FORMAT_UNKNOWN;
    record->flags &= ~NL_RECORD_UNTERMINATED;
    return true;
}

void nl_record_set_time(nl_record *record, int64_t time_ns)
{
    if (forget_raw(record))
        record->time_ns = time_ns;
}

void nl_record_set_level(nl_record *record, nl_level level)
{
    if (!forget_raw(record))
        return;
    const char *name = nl_level_name(level);
    record->level = name[0] == '\0' ? NL_LEVEL_NONE : level;
    record->level_text = name[0] == '\0' ? (nl_string){NULL, 0} : nl_string_of(name);
}

void nl_record_set_host(nl_record *record, const char *host, size_t size)
{
    if (forget_raw(record))
        record->host = copy_bytes(record, host, size);
}

void nl_record_set_prog(nl_record *record, const char *prog, size_t size)
{
    if (forget_raw(record))
        record->prog = copy_bytes(record, prog, size);
}

void nl_record_set_event(nl_record *record, const char *event, size_t size)
{
    if (forget_raw(record))
        record->event = copy_bytes(record, event, size);
}

void nl_record_add(nl_record *record, const nl_field *value)
{
    if (record == NULL || value == NULL)
        return;
    nl_string string = value->string;
    if (value->type == NL_TYPE_STRING) {
        string = copy_bytes(record, string.data, string.size);
        if (string.data == NULL)
            return;
    }
    if (!forget_raw(record))
        return;
    size_t size = value->name.size;
    char *copy = nl_record_allocate(record, size == 0 ? 1 : size);
    nl_field *field = copy != NULL ? nl_record_append(record) : NULL;
    if (field == NULL)
        return;
    copy[0] = '_';
    if (size > 0)
        memcpy(copy, value->name.data, size);
    nl_name_make_valid(copy, size);
    *field = *value;
    if (value->type == NL_TYPE_STRING)
        field->string = string;
    field->name = (nl_string){copy, size == 0 ? 1 : size};
}

/* Returns the level's text, or the name of a level without a text. */
static nl_string level_text(const nl_record *record)
{
    if (record->level_text.data != NULL || record->level == NL_LEVEL_NONE)
        return record->level_text;
    const char *name = nl_level_name(record->level);
    return nl_string_of(name);
}

nl_member nl_member_of_name(nl_string name)
{
    nl_member member = nl_text_member(&nl_ulm, name.data, name.size);
    return member != NL_MEMBER_NONE ? member : nl_text_member(&nl_bp, name.data, name.size);
}

/* Returns the text of a standard field; data is NULL if the record does not have the field. */
static nl_string member_text(const nl_record *record, nl_member member)
{
    switch (member) {
    case NL_MEMBER_EVENT:
        return record->event;
    case NL_MEMBER_PROG:
        return record->prog;
    case NL_MEMBER_HOST:
        return record->host;
    case NL_MEMBER_LEVEL:
        return level_text(record);
    default:
        return (nl_string){NULL, 0};
    }
}

bool nl_record_find_member(const nl_record *record, nl_member member, nl_string name, nl_field *field)
{
    if (member == NL_MEMBER_TIME) {
        *field = (nl_field){.name = name, .type = NL_TYPE_INT, .int_value = record->time_ns};
        return true;
    }
    nl_string text = member_text(record, member);
    if (text.data != NULL) {
        *field = (nl_field){.name = name, .type = NL_TYPE_STRING, .string = text};
        return true;
    }
    for (size_t i = 0; i < record->field_count; i++) {
        nl_string candidate = record->fields[i].name;
        if (candidate.size == name.size && memcmp(candidate.data, name.data, name.size) == 0) {
            *field = record->fields[i];
            return true;
        }
    }
    return false;
}

bool nl_record_find(const nl_record *record, const char *name, nl_field *field)
{
    nl_string wanted = {name, strlen(name)};
    return nl_record_find_member(record, nl_member_of_name(wanted), wanted, field);
}

bool nl_field_int(const nl_field *field, int64_t *value)
{
    switch (field->type) {
    case NL_TYPE_STRING:
        return nl_number_parse_int(field->string, value);
    case NL_TYPE_INT:
        *value = field->int_value;
        return true;
    case NL_TYPE_UINT:
        *value = (int64_t)field->uint_value;
        return field->uint_value <= INT64_MAX;
    case NL_TYPE_DOUBLE:
        if (!(field->double_value >= -0x1p63 && field->double_value < 0x1p63))
            return false;
        *value = (int64_t)field->double_value;
        return (double)*value == field->double_value;
    case NL_TYPE_BOOL:
        break;
    }
    return false;
}

bool nl_field_double(const nl_field *field, double *value)
{
    switch (field->type) {
    case NL_TYPE_STRING:
        return nl_number_parse_double(field->string, value);
    case NL_TYPE_INT:
        *value = (double)field->int_value;
        return true;
    case NL_TYPE_UINT:
        *value = (double)field->uint_value;
        return true;
    case NL_TYPE_DOUBLE:
        *value = field->double_value;
        return true;
    case NL_TYPE_BOOL:
        break;
    }
    return false;
}

nl_string nl_field_text(const nl_field *field, char scratch[NL_FIELD_TEXT_SIZE])
{
    switch (field->type) {
    case NL_TYPE_STRING:
        return field->string;
    case NL_TYPE_INT:
        return (nl_string){scratch, nl_number_format_int(field->int_value, scratch)};
    case NL_TYPE_UINT:
        return (nl_string){scratch, nl_number_format_uint(field->uint_value, scratch)};
    case NL_TYPE_DOUBLE:
        return (nl_string){scratch, nl_number_format_double(field->double_value, scratch)};
    case NL_TYPE_BOOL:
        return field->bool_value ? (nl_string){"true", 4} : (nl_string){"false", 5};
    }
    nl_error_call(__func__, "the field's type is unknown");
    return (nl_string){"", 0};
}
