#include "config.h"

#include "synthesis/synthesis_internal.h"

#include "base/hash_bytes.h"
#include "base/memory.h"
#include "record/number.h"

#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

static void grow_texts(texts *t)
{
    size_t count = t->bucket_count == 0 ? 256 : t->bucket_count * 4;
    text **buckets = nl_memory_check(calloc(count, sizeof *buckets));
    for (size_t i = 0; i < t->bucket_count; i++)
        for (text *at = t->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            at->next = buckets[at->hash & (count - 1)];
            buckets[at->hash & (count - 1)] = at;
        }
    free(t->buckets);
    t->buckets = buckets;
    t->bucket_count = count;
}

text *texts_intern(texts *t, const char *data, size_t size)
{
    if (t->count >= t->bucket_count)
        grow_texts(t);
    uint64_t hash = hash_bytes((uint64_t)(uintptr_t)t, data, size);
    for (text *at = t->buckets[hash & (t->bucket_count - 1)]; at != NULL; at = at->next)
        if (at->hash == hash && at->size == size && (size == 0 || memcmp(at->data, data, size) == 0))
            return at;
    text *added = nl_memory_check(malloc(sizeof *added + size + 1));
    *added = (text){.next = t->buckets[hash & (t->bucket_count - 1)], .hash = hash, .size = size};
    if (size > 0)
        memcpy(added->data, data, size);
    added->data[size] = '\0';
    t->buckets[hash & (t->bucket_count - 1)] = added;
    t->count++;
    return added;
}

void texts_free(texts *t)
{
    for (size_t i = 0; i < t->bucket_count; i++)
        for (text *at = t->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            free(at);
        }
    free(t->buckets);
    *t = (texts){0};
}

/* ---- values ---- */

/* Whether a number is written as it would be written again: 007 is none, lest two texts be one value. */
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

value value_of_text(texts *t, nl_string string)
{
    value v;
    if (is_plain_number(string, &v))
        return v;
    return (value){.kind = VALUE_TEXT, .text = texts_intern(t, string.data, string.size)};
}

value value_of_field(texts *t, const nl_field *field)
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
        return value_of_text(t, field->string);
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
        return true;
    case VALUE_TEXT:
        return nl_number_parse_double((nl_string){v.text->data, v.text->size}, number);
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
        nl_record_add_string(record, name, v.text->data, v.text->size);
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
        return (nl_string){v.text->data, v.text->size};
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

static uint64_t bits_of(value v)
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

/* ---- maps ---- */

static uint64_t hash_of(const key *k)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) * (k->count + 1);
    for (unsigned i = 0; i < k->count; i++)
        hash = hash_mix(hash ^ bits_of(k->values[i]) ^ (uint64_t)k->values[i].kind << 60, UINT64_C(0xd6e8feb86659fd93));
    return hash;
}

static bool is_equal(const key *a, const key *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->values[i].kind != b->values[i].kind || bits_of(a->values[i]) != bits_of(b->values[i]))
            return false;
    return true;
}

static entry **values_place_of(const map *m, const key *k, uint64_t hash)
{
    entry **place = &m->buckets[hash & (m->bucket_count - 1)];
    while (*place != NULL && ((*place)->hash != hash || !is_equal(&(*place)->key, k)))
        place = &(*place)->next;
    return place;
}

entry *map_find(const map *m, const key *k)
{
    return m->count > 0 ? *values_place_of(m, k, hash_of(k)) : NULL;
}

static void grow_map(map *m)
{
    map grown = {.bucket_count = m->bucket_count == 0 ? 64 : m->bucket_count * 4, .count = m->count};
    grown.buckets = nl_memory_check(calloc(grown.bucket_count, sizeof *grown.buckets));
    for (size_t i = 0; i < m->bucket_count; i++)
        for (entry *at = m->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            at->next = grown.buckets[at->hash & (grown.bucket_count - 1)];
            grown.buckets[at->hash & (grown.bucket_count - 1)] = at;
        }
    free(m->buckets);
    *m = grown;
}

entry *map_put(map *m, const key *k, size_t size, bool *added)
{
    if (m->count >= m->bucket_count)
        grow_map(m);
    uint64_t hash = hash_of(k);
    entry **place = values_place_of(m, k, hash);
    *added = *place == NULL;
    if (!*added)
        return *place;
    if (m->count >= ENTRIES_MAX)
        return NULL;
    entry *e = nl_memory_check(calloc(1, size));
    e->hash = hash;
    e->key = *k;
    *place = e;
    m->count++;
    return e;
}

entry *map_take(map *m, const key *k)
{
    if (m->count == 0)
        return NULL;
    entry **place = values_place_of(m, k, hash_of(k)), *found = *place;
    if (found != NULL) {
        *place = found->next;
        m->count--;
    }
    return found;
}

void map_visit(map *m, bool (*visit)(entry *e, void *user), void *user)
{
    for (size_t i = 0; i < m->bucket_count; i++)
        for (entry **place = &m->buckets[i]; *place != NULL;) {
            entry *at = *place, *next = at->next;
            if (visit(at, user)) {
                *place = next;
                m->count--;
            } else {
                place = &at->next;
            }
        }
}

void map_free(map *m, bool (*visit)(entry *e, void *user), void *user)
{
    map_visit(m, visit, user);
    free(m->buckets);
    *m = (map){0};
}
