#include "config.h"

#include "synthesis/synthesis_internal.h"

#include "base/hash_bytes.h"
#include "base/memory.h"
#include "record/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

static guint hash_string(gconstpointer string)
{
    const nl_string *s = string;
    return (guint)hash_bytes((uint64_t)(uintptr_t)hash_string, s->data, s->size);
}

static gboolean string_is_equal(gconstpointer a, gconstpointer b)
{
    const nl_string *left = a, *right = b;
    return left->size == right->size && (left->size == 0 || memcmp(left->data, right->data, left->size) == 0);
}

GHashTable *texts_new(void)
{
    return g_hash_table_new_full(hash_string, string_is_equal, NULL, free);
}

text *texts_intern(GHashTable *texts, nl_string string)
{
    text *found = g_hash_table_lookup(texts, &string);
    if (found != NULL)
        return found;
    text *added = nl_memory_check(calloc(1, sizeof *added + string.size + 1));
    if (string.size > 0)
        memcpy(added->data, string.data, string.size);
    added->string = (nl_string){added->data, string.size};
    g_hash_table_insert(texts, &added->string, added);
    return added;
}

/* ---- values ---- */

/*
 * Parses a number in canonical notation, and sets *v. Returns false for other text, such as 007, so that different
 * texts are different values.
 */
static bool is_plain_number(nl_string string, value *v)
{
    size_t start = string.size > 0 && string.data[0] == '-';
    if (string.size == start || string.size > 20 || (string.data[start] == '0' && string.size > 1))
        return false;
    for (size_t i = start; i < string.size; i++)
        if (string.data[i] < '0' || string.data[i] > '9')
            return false;
    if (nl_number_parse_int(string, &v->number)) {
        v->kind = VALUE_INT;
        return true;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < string.size; i++)
        if (start > 0 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(string.data[i] - '0'), &number))
            return false;
    *v = (value){.kind = VALUE_UINT, .number = (int64_t)number};
    return true;
}

value value_of_text(GHashTable *texts, nl_string string)
{
    value v;
    if (is_plain_number(string, &v))
        return v;
    return (value){.kind = VALUE_TEXT, .text = texts_intern(texts, string)};
}

value value_of_field(GHashTable *texts, const nl_field *field)
{
    switch (field->type) {
    case NL_TYPE_INT:
        return (value){.kind = VALUE_INT, .number = field->int_value};
    case NL_TYPE_UINT:
        return (value){.kind = field->uint_value > INT64_MAX ? VALUE_UINT : VALUE_INT,
                       .number = (int64_t)field->uint_value};
    case NL_TYPE_BOOL:
        return (value){.kind = VALUE_INT, .number = field->bool_value};
    case NL_TYPE_DOUBLE:
        return (value){.kind = VALUE_DOUBLE, .real = field->double_value};
    case NL_TYPE_STRING:
        return value_of_text(texts, field->string);
    }
    return (value){0};
}

bool value_number(value v, double *number)
{
    switch (v.kind) {
    case VALUE_INT:
        *number = (double)v.number;
        return true;
    case VALUE_UINT:
        *number = (double)(uint64_t)v.number;
        return true;
    case VALUE_DOUBLE:
        *number = v.real;
        return !isnan(*number);
    case VALUE_TEXT:
        return nl_number_parse_double(v.text->string, number) && !isnan(*number);
    case VALUE_NONE:
        break;
    }
    return false;
}

void value_add(nl_record *record, const char *name, value v)
{
    switch (v.kind) {
    case VALUE_INT:
        nl_record_add_int(record, name, v.number);
        break;
    case VALUE_UINT:
        nl_record_add_uint(record, name, (uint64_t)v.number);
        break;
    case VALUE_DOUBLE:
        nl_record_add_double(record, name, v.real);
        break;
    case VALUE_TEXT:
        nl_record_add_string(record, name, v.text->string.data, v.text->string.size);
        break;
    case VALUE_NONE:
        break;
    }
}

nl_string value_text(value v, char scratch[NL_FIELD_TEXT_SIZE])
{
    size_t size = 0;
    switch (v.kind) {
    case VALUE_TEXT:
        return v.text->string;
    case VALUE_INT:
        size = nl_number_format_int(v.number, scratch);
        break;
    case VALUE_UINT:
        size = nl_number_format_uint((uint64_t)v.number, scratch);
        break;
    case VALUE_DOUBLE:
        size = nl_number_format_double(v.real, scratch);
        break;
    case VALUE_NONE:
        break;
    }
    return (nl_string){scratch, size};
}

/* ---- maps ---- */

static uint64_t value_bits(value v)
{
    uint64_t bits = 0;
    if (v.kind == VALUE_TEXT)
        return (uint64_t)(uintptr_t)v.text;
    if (v.kind == VALUE_DOUBLE)
        memcpy(&bits, &v.real, sizeof bits);
    else if (v.kind != VALUE_NONE)
        bits = (uint64_t)v.number;
    return bits;
}

bool value_is_equal(value a, value b)
{
    return a.kind == b.kind && value_bits(a) == value_bits(b);
}

static guint hash_key(gconstpointer user)
{
    const key *k = user;
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) * (k->count + 1);
    for (unsigned i = 0; i < k->count; i++)
        hash =
            hash_mix(hash ^ value_bits(k->values[i]) ^ (uint64_t)k->values[i].kind << 60, UINT64_C(0xd6e8feb86659fd93));
    return (guint)hash;
}

static gboolean key_is_equal(gconstpointer a, gconstpointer b)
{
    const key *left = a, *right = b;
    if (left->count != right->count)
        return false;
    for (unsigned i = 0; i < left->count; i++)
        if (!value_is_equal(left->values[i], right->values[i]))
            return false;
    return true;
}

GHashTable *map_new(void (*free_entry)(void *e))
{
    return g_hash_table_new_full(hash_key, key_is_equal, NULL, free_entry);
}

void *map_find_or_add(GHashTable *map, const key *k, size_t size)
{
    entry *e = g_hash_table_lookup(map, k);
    if (e != NULL || g_hash_table_size(map) >= ENTRIES_MAX)
        return e;
    e = nl_memory_check(calloc(1, size));
    e->key = *k;
    g_hash_table_insert(map, &e->key, e);
    return e;
}

void *map_take(GHashTable *map, const key *k)
{
    entry *e = g_hash_table_lookup(map, k);
    if (e != NULL)
        g_hash_table_steal(map, k);
    return e;
}
