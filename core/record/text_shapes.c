#include "config.h"

#include "record/text_shapes.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENTRY_COUNT = 64, /* a power of two */
    FIELDS_MAX = 32,  /* records with more fields have no shape */
    TEXT_MAX = 1024,  /* records whose names and standard fields have more bytes have no shape */
    MISSES_MAX = 32,
    MEMBER_COUNT = 4,
};

typedef struct entry {
    uint64_t hash;
    nl_text_shape *shape; /* NULL until the kind of record has been seen twice */
    nl_level level;
    unsigned misses;
    unsigned next;    /* index of the entry that followed the latest use of this entry */
    nl_string *texts; /* the standard fields, and then the names of the fields; in one allocation with their bytes */
} entry;

struct nl_text_shapes {
    const nl_text_format *format;
    entry *latest; /* the entry that was used last */
    entry entries[ENTRY_COUNT];
};

nl_text_shapes *nl_text_shapes_new(const nl_text_format *format)
{
    nl_text_shapes *shapes = nl_memory_check(calloc(1, sizeof *shapes));
    if (shapes == NULL)
        return NULL;
    shapes->format = format;
    shapes->latest = shapes->entries;
    return shapes;
}

static void text_shapes_empty(entry *e)
{
    nl_text_shape_free(e->shape);
    free(e->texts);
    *e = (entry){0};
}

void nl_text_shapes_free(nl_text_shapes *shapes)
{
    for (size_t i = 0; shapes != NULL && i < ENTRY_COUNT; i++)
        text_shapes_empty(&shapes->entries[i]);
    free(shapes);
}

/*
 * Mixes the first and the last eight bytes of a text and its size. Texts that differ only between these bytes share an
 * entry.
 */
static inline uint64_t text_shapes_digest(nl_string text)
{
    uint64_t first = 0, last = 0;
    if (text.size >= sizeof first) {
        memcpy(&first, text.data, sizeof first);
        memcpy(&last, text.data + text.size - sizeof last, sizeof last);
    } else if (text.size >= 4) {
        uint32_t halves[2];
        memcpy(&halves[0], text.data, sizeof halves[0]);
        memcpy(&halves[1], text.data + text.size - sizeof halves[1], sizeof halves[1]);
        first = halves[0];
        last = halves[1];
    } else {
        for (size_t i = 0; i < text.size; i++)
            last = last << 8 | (unsigned char)text.data[i];
    }
    return (first << 7 | first >> 57) ^ last ^ text.size << 56;
}

static uint64_t text_shapes_hash(const nl_record *record)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 divided by the golden ratio: Knuth, TAOCP 6.4 */
    uint64_t hash = record->field_count + 1;
    hash = hash * factor ^ text_shapes_digest(record->host);
    hash = (hash ^ hash >> 32) * factor ^ text_shapes_digest(record->event);
    hash = (hash ^ hash >> 32) * factor ^ text_shapes_digest(record->prog);
    return (hash ^ hash >> 32) * factor;
}

/* Returns whether two texts are equal; an absent text differs from an empty text. */
static inline bool text_shapes_same(nl_string a, nl_string b)
{
    if (a.size != b.size || (a.data == NULL) != (b.data == NULL))
        return false;
    if (a.data == b.data)
        return true;
    if (a.size >= 8 && a.size <= 16) {
        uint64_t first[2], last[2];
        memcpy(&first[0], a.data, 8);
        memcpy(&first[1], b.data, 8);
        memcpy(&last[0], a.data + a.size - 8, 8);
        memcpy(&last[1], b.data + a.size - 8, 8);
        return first[0] == first[1] && last[0] == last[1];
    }
    if (a.size >= 4 && a.size < 8) {
        uint32_t first[2], last[2];
        memcpy(&first[0], a.data, 4);
        memcpy(&first[1], b.data, 4);
        memcpy(&last[0], a.data + a.size - 4, 4);
        memcpy(&last[1], b.data + a.size - 4, 4);
        return first[0] == first[1] && last[0] == last[1];
    }
    return a.size == 0 || memcmp(a.data, b.data, a.size) == 0;
}

static bool text_shapes_match(const entry *e, const nl_record *record)
{
    const nl_string *texts = e->texts;
    if (e->level != record->level || e->shape->field_count != record->field_count ||
        !text_shapes_same(texts[0], record->host) || !text_shapes_same(texts[1], record->prog) ||
        !text_shapes_same(texts[2], record->level_text) || !text_shapes_same(texts[3], record->event))
        return false;
    for (size_t i = 0; i < record->field_count; i++)
        if (!text_shapes_same(texts[MEMBER_COUNT + i], record->fields[i].name))
            return false;
    return true;
}

static void text_shapes_make(nl_text_shapes *shapes, entry *e, const nl_record *record)
{
    nl_string texts[MEMBER_COUNT + FIELDS_MAX] = {record->host, record->prog, record->level_text, record->event};
    const size_t count = MEMBER_COUNT + record->field_count;
    size_t size = 0;
    for (size_t i = 0; i < record->field_count; i++)
        texts[MEMBER_COUNT + i] = record->fields[i].name;
    for (size_t i = 0; i < count; i++)
        size += texts[i].size;
    if (size > TEXT_MAX)
        return;
    nl_text_shape *shape = nl_text_shape_make(shapes->format, record);
    nl_string *kept = shape != NULL ? nl_memory_check(malloc(count * sizeof *kept + size + 1)) : NULL;
    if (kept == NULL) {
        nl_text_shape_free(shape);
        return;
    }
    char *bytes = (char *)(kept + count);
    for (size_t i = 0; i < count; i++) {
        kept[i] = (nl_string){texts[i].data != NULL ? bytes : NULL, texts[i].size};
        if (texts[i].size > 0)
            memcpy(bytes, texts[i].data, texts[i].size);
        bytes += texts[i].size;
    }
    e->shape = shape;
    e->texts = kept;
    e->level = record->level;
    e->misses = 0;
}

const nl_text_shape *nl_text_shapes_find(nl_text_shapes *shapes, const nl_record *record)
{
    if (record->field_count > FIELDS_MAX)
        return NULL;
    /* Programs log the same kinds of records in the same order again, so this check often saves the hash. */
    entry *e = &shapes->entries[shapes->latest->next];
    if (e->shape != NULL && text_shapes_match(e, record)) {
        shapes->latest = e;
        return e->shape;
    }
    uint64_t hash = text_shapes_hash(record);
    unsigned index = (unsigned)(hash >> 58);
    e = &shapes->entries[index];
    if (e->shape != NULL && e->hash == hash && text_shapes_match(e, record)) {
        e->misses = 0;
        shapes->latest->next = index;
        shapes->latest = e;
        return e->shape;
    }
    if (e->shape != NULL) {
        if (++e->misses == MISSES_MAX)
            text_shapes_empty(e);
        return NULL;
    }
    if (e->hash == hash)
        text_shapes_make(shapes, e, record);
    e->hash = hash;
    return e->shape;
}
