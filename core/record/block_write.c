#include "config.h"

#include "record/block_write.h"

#include "base/memory.h"
#include "record/crc32c.h"
#include "record/field_name.h"
#include "record/format.h"
#include "base/level.h"
#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#ifndef ZSTD_SKIPPABLEHEADERSIZE
#define ZSTD_SKIPPABLEHEADERSIZE 8
#endif

enum { FIRST_SLOTS = 64 };

/* An entry of a hash table of sources or shapes. The definition is the bytes [at, at + size) of `sources` or `shapes`.
 */
typedef struct nl_block_definition {
    uint64_t hash; /* 0 in an unused slot */
    size_t at;
    size_t size;
    unsigned place;
} definition;

uint32_t nl_block_checksum(const char *header, size_t header_size, const char *payload, size_t payload_size)
{
    static const char none[4];
    const char *behind = header + NL_BLOCK_AT_CRC + sizeof none;
    uint32_t crc = nl_crc32c(0, header, NL_BLOCK_AT_CRC);
    crc = nl_crc32c(crc, none, sizeof none);
    crc = nl_crc32c(crc, behind, (size_t)(header + header_size - behind));
    return nl_crc32c(crc, payload, payload_size);
}

/*
 * ---- definitions ----
 *
 * The put functions write to memory that the caller has reserved, and return the end of the written bytes.
 */

static char *put_source(char *at, nl_string host, nl_string prog)
{
    return nl_block_put_string(nl_block_put_string(at, host), prog);
}

/* Puts a shape without its fields. Omits the level's text if it is a name of the level. Returns the end. */
static char *put_shape(char *at, const nl_block_shape *shape)
{
    at = nl_varint_put(at, shape->source);
    *at++ = nl_level_has_name(shape->level, shape->level_text) ? (char)shape->level : NL_LEVEL_NONE;
    if (at[-1] == NL_LEVEL_NONE)
        at = nl_block_put_string(at, shape->level_text);
    at = nl_block_put_string(at, shape->event);
    return nl_varint_put(at, shape->field_count);
}

/* Puts a field's type and name. Bytes that are invalid in names become '_'. Returns the end. */
static char *put_field(char *at, nl_type type, nl_string name)
{
    *at++ = (char)(type + NL_BLOCK_TYPE_OFFSET);
    at = nl_block_put_string(at, name.size > 0 ? name : (nl_string){"_", 1});
    nl_name_make_valid(at - name.size, name.size);
    return at;
}

/* Counts a new source. `size` is the size of its definition in bytes. Returns its index. */
static unsigned count_source(nl_block_writer *w, size_t size)
{
    w->longest_source = size > w->longest_source ? size : w->longest_source;
    return w->source_count++;
}

unsigned nl_block_add_source(nl_block_writer *w, nl_string host, nl_string prog)
{
    if (!nl_buffer_reserve(&w->sources, 2 * NL_VARINT_SIZE + host.size + prog.size))
        return NL_BLOCK_NO_PLACE;
    char *start = w->sources.data + w->sources.size;
    size_t size = (size_t)(put_source(start, host, prog) - start);
    w->sources.size += size;
    return count_source(w, size);
}

/*
 * Returns an upper bound of the bytes that a record of the shape adds to the expanded size, not counting its strings.
 * `size` is the size of the shape's definition, which contains all names except the name of the level.
 */
static size_t expanded_bound(const nl_block_writer *w, size_t field_count, size_t size)
{
    enum { LEVEL_NAME_MAX = 16 };
    return NL_BLOCK_RECORD_EXPANDED + LEVEL_NAME_MAX + field_count * NL_BLOCK_FIELD_EXPANDED + w->longest_source + size;
}

/* Reserves memory for one more shape. Returns false on failure. */
static bool reserve_shape(nl_block_writer *w, size_t field_count)
{
    size_t count = (size_t)w->field_count + field_count;
    if (count >= w->before_capacity) { /* true for the first shape, even if this shape has no fields */
        size_t capacity = 2 * count + FIRST_SLOTS;
        uint64_t *before = nl_memory_check(reallocarray(w->before, capacity, sizeof *before));
        if (before == NULL)
            return false;
        w->before = before;
        w->before_capacity = capacity;
    }
    if (w->shape_count == w->shape_capacity) {
        size_t capacity = w->shape_capacity == 0 ? FIRST_SLOTS : 2 * w->shape_capacity;
        nl_block_known_shape *shapes = nl_memory_check(reallocarray(w->known_shapes, capacity, sizeof *shapes));
        if (shapes == NULL)
            return false;
        w->known_shapes = shapes;
        w->shape_capacity = capacity;
    }
    return true;
}

/* Counts a new shape, for which the caller has reserved memory. Returns its index. */
static unsigned count_shape(nl_block_writer *w, size_t field_count, size_t expanded)
{
    if (field_count > 0)
        memset(w->before + w->field_count, 0, field_count * sizeof *w->before);
    w->known_shapes[w->shape_count] =
        (nl_block_known_shape){.first_before = w->field_count, .expanded = (uint32_t)expanded};
    w->field_count += (uint32_t)field_count;
    return w->shape_count++;
}

unsigned nl_block_add_shape(nl_block_writer *w, const nl_block_shape *shape)
{
    size_t bound = 5 * NL_VARINT_SIZE + shape->level_text.size + shape->event.size;
    for (size_t i = 0; i < shape->field_count; i++)
        bound += NL_VARINT_SIZE + 2 + shape->names[i].size;
    if (!reserve_shape(w, shape->field_count) || !nl_buffer_reserve(&w->shapes, bound))
        return NL_BLOCK_NO_PLACE;
    char *start = w->shapes.data + w->shapes.size, *at = put_shape(start, shape);
    for (size_t i = 0; i < shape->field_count; i++)
        at = put_field(at, shape->types[i], shape->names[i]);
    size_t size = (size_t)(at - start);
    w->shapes.size += size;
    return count_shape(w, shape->field_count, expanded_bound(w, shape->field_count, size));
}

/* ---- lookup ---- */

static uint64_t hash_of(const char *data, size_t size)
{
    uint64_t hash = size, word = 0;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    word = 0;
    if (size > 0)
        memcpy(&word, data, size);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return (hash ^ hash >> 29) | 1;
}

static bool block_write_grow(nl_block_index *index)
{
    nl_block_index larger = {.capacity = index->capacity == 0 ? FIRST_SLOTS : index->capacity * 2,
                             .count = index->count};
    larger.slots = nl_memory_check(calloc(larger.capacity, sizeof *larger.slots));
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < index->capacity; i++) {
        if (index->slots[i].hash == 0)
            continue;
        size_t at = index->slots[i].hash >> 1 & (larger.capacity - 1);
        while (larger.slots[at].hash != 0)
            at = (at + 1) & (larger.capacity - 1);
        larger.slots[at] = index->slots[i];
    }
    free(index->slots);
    *index = larger;
    return true;
}

/* Like nl_block_find_or_add, but returns the definition, or NULL if memory runs out. The definition is valid until the
 * next call. */
static const definition *find_or_add(nl_block_index *index, nl_buffer *part, const nl_buffer *scratch, uint32_t count)
{
    if (index->count >= index->capacity / 2 && !block_write_grow(index))
        return NULL;
    uint64_t hash = hash_of(scratch->data, scratch->size);
    size_t at = hash >> 1 & (index->capacity - 1);
    for (; index->slots[at].hash != 0; at = (at + 1) & (index->capacity - 1)) {
        const definition *d = &index->slots[at];
        if (d->hash == hash && d->size == scratch->size && memcmp(part->data + d->at, scratch->data, d->size) == 0)
            return d;
    }
    size_t size = part->size;
    if (!nl_buffer_append(part, scratch->data, scratch->size))
        return NULL;
    index->slots[at] = (definition){hash, size, scratch->size, count};
    index->count++;
    return &index->slots[at];
}

unsigned nl_block_find_or_add(nl_block_index *index, nl_buffer *part, const nl_buffer *scratch, uint32_t count)
{
    const definition *found = find_or_add(index, part, scratch, count);
    return found != NULL ? found->place : NL_BLOCK_NO_PLACE;
}

/*
 * Returns the offset of a record's source in w->sources and sets *index to its index, or to NL_BLOCK_NO_PLACE if memory
 * runs out. The scratch buffer has space for the source's definition.
 */
static size_t find_source(nl_block_writer *w, const nl_record *record, unsigned *index)
{
    w->scratch.size = (size_t)(put_source(w->scratch.data, record->host, record->prog) - w->scratch.data);
    const definition *found = find_or_add(&w->source_index, &w->sources, &w->scratch, w->source_count);
    if (found == NULL) {
        *index = NL_BLOCK_NO_PLACE;
        return 0;
    }
    *index = found->place == w->source_count ? count_source(w, w->scratch.size) : found->place;
    return found->at;
}

static char *put_shape_of(char *at, const nl_record *record, unsigned source)
{
    at = put_shape(at, &(nl_block_shape){.source = source,
                                         .level = record->level,
                                         .level_text = record->level_text,
                                         .event = record->event,
                                         .field_count = record->field_count});
    for (size_t i = 0; i < record->field_count; i++)
        at = put_field(at, record->fields[i].type, record->fields[i].name);
    return at;
}

/* Returns the end of the string at `at` if the string is equal to `wanted` and has less than 128 bytes, else NULL. */
static const char *skip_equal(const char *at, nl_string wanted)
{
    if (wanted.size >= 128 || (size_t)(unsigned char)*at != wanted.size ||
        !nl_block_is_same(at + 1, wanted.data, wanted.size))
        return NULL;
    return at + 1 + wanted.size;
}

/* Returns whether a record has this shape. Returns false also for some records with rare properties of this shape. */
static bool has_shape(const nl_block_writer *w, const nl_block_known_shape *shape, const nl_record *record)
{
    const char *source = skip_equal(w->sources.data + shape->source, record->host);
    const char *at = w->shapes.data + shape->level;
    if (source == NULL || skip_equal(source, record->prog) == NULL || *at == NL_LEVEL_NONE ||
        *at != (char)record->level || !nl_level_has_name(record->level, record->level_text) ||
        (at = skip_equal(at + 1, record->event)) == NULL || record->field_count >= 128 ||
        (size_t)*at++ != record->field_count)
        return false;
    for (size_t i = 0; i < record->field_count && at != NULL; i++) {
        if (*at != (char)(record->fields[i].type + NL_BLOCK_TYPE_OFFSET))
            return false;
        at = skip_equal(at + 1, record->fields[i].name);
    }
    return at != NULL;
}

/* Looks up or adds the definitions of a record. `bound` and the result are those of find_shape. */
static unsigned find_definitions(nl_block_writer *w, const nl_record *record, size_t bound)
{
    unsigned source;
    w->scratch.size = 0;
    if (!nl_buffer_reserve(&w->scratch, bound) || !reserve_shape(w, record->field_count))
        return NL_BLOCK_NO_PLACE;
    const size_t source_at = find_source(w, record, &source);
    if (source == NL_BLOCK_NO_PLACE)
        return NL_BLOCK_NO_PLACE;
    w->scratch.size = (size_t)(put_shape_of(w->scratch.data, record, source) - w->scratch.data);
    const definition *found = find_or_add(&w->shape_index, &w->shapes, &w->scratch, w->shape_count);
    if (found == NULL)
        return NL_BLOCK_NO_PLACE;
    if (found->place != w->shape_count)
        return found->place;
    const char *shape = w->shapes.data + found->at, *level = nl_varint_skip(shape, shape + found->size);
    unsigned index = count_shape(w, record->field_count, expanded_bound(w, record->field_count, w->scratch.size));
    w->known_shapes[index].source = (uint32_t)source_at;
    w->known_shapes[index].level = (uint32_t)(level - w->shapes.data);
    return index;
}

/*
 * Returns the index of a record's shape, or NL_BLOCK_NO_PLACE if memory runs out. `bound` is the maximum size, in
 * bytes, of the shape's definition and of the source's definition. Shapes often follow each other in the same order, so
 * the function first tries the shape that followed the latest shape before.
 */
static unsigned find_shape(nl_block_writer *w, const nl_record *record, size_t bound)
{
    const uint32_t last = w->last_shape, expected = last > 0 ? w->known_shapes[last - 1].next : 0;
    if (expected > 0 && has_shape(w, &w->known_shapes[expected - 1], record)) {
        w->last_shape = expected;
        return expected - 1;
    }
    unsigned index = find_definitions(w, record, bound);
    if (index == NL_BLOCK_NO_PLACE)
        return index;
    if (last > 0)
        w->known_shapes[last - 1].next = index + 1;
    w->last_shape = index + 1;
    return index;
}

/* ---- records ---- */

/*
 * Returns an upper bound of the bytes that a record and its definitions add to the payload. Sets *strings to the size
 * of its string values.
 */
static size_t size_bound(const nl_record *record, size_t *strings)
{
    size_t size =
        10 * NL_VARINT_SIZE + record->host.size + record->prog.size + record->event.size + record->level_text.size;
    *strings = 0;
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        size += 2 * NL_VARINT_SIZE + 2 + field->name.size;
        *strings += field->type == NL_TYPE_STRING ? field->string.size : 0;
    }
    return size + *strings;
}

static char *put_value(char *at, const char *records, const nl_field *field, uint64_t *before)
{
    switch (field->type) {
    case NL_TYPE_STRING:
        return nl_block_put_text(at, records, field->string.data, field->string.size, before, false);
    case NL_TYPE_INT:
        return nl_block_put_number(at, (uint64_t)field->int_value, before, false);
    case NL_TYPE_UINT:
        return nl_block_put_number(at, field->uint_value, before, false);
    case NL_TYPE_DOUBLE:
        return nl_double_put(at, field->double_value);
    case NL_TYPE_BOOL:
        *at = field->bool_value;
        return at + 1;
    }
    return at; /* not reached: there are no other types */
}

bool nl_block_has_space(const nl_block_writer *w, size_t size)
{
    size_t total = nl_block_size(w) + size + 3 * NL_VARINT_SIZE;
    /* size is also an upper bound of the record's expanded size, not counting its source. */
    if (w->record_count > 0)
        return total <= NL_BLOCK_MANY_MAX && w->expanded + w->longest_source + size <= NL_BLOCK_EXPANDED_MAX;
    return total <= NL_BLOCK_PAYLOAD_MAX;
}

bool nl_block_put(nl_block_writer *w, const nl_record *record)
{
    size_t strings, size = size_bound(record, &strings);
    if (!nl_block_has_space(w, size) || record->field_count > NL_BLOCK_SHAPE_FIELDS_MAX ||
        w->field_count + record->field_count > NL_BLOCK_FIELDS_MAX || w->shape_count >= NL_BLOCK_SHAPES_MAX ||
        w->source_count >= NL_BLOCK_SOURCES_MAX)
        return false;
    unsigned shape = nl_buffer_reserve(&w->records, size) ? find_shape(w, record, size) : NL_BLOCK_NO_PLACE;
    if (shape == NL_BLOCK_NO_PLACE)
        return false;
    char *records = w->records.data, *at = records + w->records.size;
    uint64_t *before = nl_block_before(w, shape);
    at = nl_block_begin_record(w, at, shape, record->time_ns);
    for (size_t i = 0; i < record->field_count; i++)
        at = put_value(at, records, &record->fields[i], &before[i]);
    w->records.size = (size_t)(at - records);
    w->expanded += strings;
    return true;
}

/* Writes the payload of a block with one record and min_time 0. */
bool nl_record_pack(const nl_record *record, nl_buffer *out)
{
    size_t strings, size = size_bound(record, &strings);
    if (size > NL_BLOCK_PAYLOAD_MAX || record->field_count > NL_RECORD_PACK_FIELDS_MAX)
        return false;
    if (!nl_buffer_reserve(out, size))
        return false;
    char *at = out->data + out->size;
    *at++ = 1; /* source */
    at = put_source(at, record->host, record->prog);
    *at++ = 1; /* shape */
    at = put_shape_of(at, record, 0);
    *at++ = 0; /* the record's shape */
    at = nl_varint_put(at, nl_zigzag(record->time_ns));
    for (size_t i = 0; i < record->field_count; i++)
        at = put_value(at, out->data, &record->fields[i], &(uint64_t){0});
    out->size = (size_t)(at - out->data);
    return true;
}

/* ---- the block ---- */

static char *put_bytes(char *at, const char *data, size_t size)
{
    if (size > 0)
        memcpy(at, data, size);
    return at + size;
}

static char *put_payload(const nl_block_writer *w, char *at)
{
    if (w->record_count == 0) { /* a block that has no records has no sources and shapes either */
        *at++ = 0;
        *at++ = 0;
        return at;
    }
    at = nl_varint_put(at, w->source_count);
    at = put_bytes(at, w->sources.data, w->sources.size);
    at = nl_varint_put(at, w->shape_count);
    at = put_bytes(at, w->shapes.data, w->shapes.size);
    at = put_bytes(at, w->records.data, w->first_time_at);
    at = nl_varint_put(at, nl_zigzag((int64_t)((uint64_t)w->first_time_ns - (uint64_t)w->min_time_ns)));
    return put_bytes(at, w->records.data + w->first_time_at, w->records.size - w->first_time_at);
}

/* Returns the minimum stored size of a compressed block, in bytes. */
static size_t stored_min(size_t raw_size, uint64_t expanded)
{
    size_t for_raw = 0, for_expanded = 0;
    if (raw_size > NL_BLOCK_RATIO_FREE)
        for_raw = (raw_size - NL_BLOCK_RATIO_FREE) / NL_BLOCK_RAW_RATIO_MAX + 1;
    if (expanded > NL_BLOCK_RATIO_FREE)
        for_expanded = (size_t)(expanded - NL_BLOCK_RATIO_FREE) / NL_BLOCK_EXPANDED_RATIO_MAX + 1;
    return for_raw > for_expanded ? for_raw : for_expanded;
}

/* Appends a skippable zstd frame, so that the payload has at least `total` bytes. Returns the new size. */
static size_t put_padding(char *data, size_t size, size_t total)
{
    size_t padding = total > size + ZSTD_SKIPPABLEHEADERSIZE ? total - size - ZSTD_SKIPPABLEHEADERSIZE : 0;
    nl_le32_put(data + size, ZSTD_MAGIC_SKIPPABLE_START);
    nl_le32_put(data + size + 4, (uint32_t)padding);
    memset(data + size + ZSTD_SKIPPABLEHEADERSIZE, 0, padding);
    return size + ZSTD_SKIPPABLEHEADERSIZE + padding;
}

/*
 * Compresses, in place, the bytes of `out` from the offset `start` on; `expanded` is an upper bound of the block's
 * expanded size. Returns false if the result would not be smaller or memory runs out; the block then stays
 * uncompressed.
 */
static bool compress(nl_block_writer *w, int level, nl_buffer *out, size_t start, uint64_t expanded)
{
    if (w->zstd == NULL)
        w->zstd = ZSTD_createCCtx();
    if (w->zstd == NULL)
        return false;
    size_t size = out->size - start;
    w->scratch.size = 0;
    if (!nl_buffer_reserve(&w->scratch, size))
        return false;
    size_t packed = ZSTD_compressCCtx(w->zstd, w->scratch.data, size, out->data + start, size, level);
    size_t minimum = stored_min(size, expanded);
    if (ZSTD_isError(packed) || packed >= size || minimum + ZSTD_SKIPPABLEHEADERSIZE >= size)
        return false;
    if (packed < minimum)
        packed = put_padding(w->scratch.data, packed, minimum);
    memcpy(out->data + start, w->scratch.data, packed);
    out->size = start + packed;
    return true;
}

static void put_header(const nl_block_writer *w, const nl_block_identity *identity, char *header, size_t stored_size,
                       size_t raw_size, bool zstd)
{
    memset(header, 0, NL_BLOCK_HEADER_SIZE);
    memcpy(header, NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE);
    nl_le16_put(header + NL_BLOCK_AT_HEADER_SIZE, NL_BLOCK_HEADER_SIZE);
    header[NL_BLOCK_AT_TYPE] = NL_BLOCK_TYPE_RECORDS;
    header[NL_BLOCK_AT_FLAGS] = zstd ? NL_BLOCK_FLAG_ZSTD : 0;
    nl_le32_put(header + NL_BLOCK_AT_STORED_SIZE, (uint32_t)stored_size);
    nl_le32_put(header + NL_BLOCK_AT_RAW_SIZE, (uint32_t)raw_size);
    nl_le32_put(header + NL_BLOCK_AT_RECORD_COUNT, w->record_count);
    memcpy(header + NL_BLOCK_AT_STREAM, identity->stream, NL_BLOCK_STREAM_SIZE);
    nl_le64_put(header + NL_BLOCK_AT_FIRST_SEQUENCE, identity->first_sequence);
    if (w->record_count > 0) {
        nl_le64_put(header + NL_BLOCK_AT_MIN_TIME, (uint64_t)w->min_time_ns);
        nl_le64_put(header + NL_BLOCK_AT_MAX_TIME, (uint64_t)w->max_time_ns);
    }
    if (identity->lost > 0) {
        nl_le64_put(header + NL_BLOCK_AT_LOST, identity->lost);
        nl_le64_put(header + NL_BLOCK_AT_LOST_FROM, (uint64_t)identity->lost_from_ns);
        nl_le64_put(header + NL_BLOCK_AT_LOST_TO, (uint64_t)identity->lost_to_ns);
    }
    uint32_t crc = nl_block_checksum(header, NL_BLOCK_HEADER_SIZE, header + NL_BLOCK_HEADER_SIZE, stored_size);
    nl_le32_put(header + NL_BLOCK_AT_CRC, crc);
}

bool nl_block_finish(nl_block_writer *w, const nl_block_identity *identity, int zstd_level, nl_buffer *out)
{
    if (w->record_count > 0 || identity->lost > 0) {
        size_t start = out->size, payload = start + NL_BLOCK_HEADER_SIZE;
        if (!nl_buffer_reserve(out, NL_BLOCK_HEADER_SIZE + nl_block_size(w) + 4 * NL_VARINT_SIZE))
            return false;
        out->size = (size_t)(put_payload(w, out->data + payload) - out->data);
        size_t raw_size = out->size - payload;
        bool zstd = zstd_level != 0 && compress(w, zstd_level, out, payload, w->expanded);
        put_header(w, identity, out->data + start, out->size - payload, raw_size, zstd);
    }
    nl_block_clear(w);
    return true;
}

bool nl_block_repack(nl_block_writer *w, nl_string block, uint64_t expanded, int zstd_level, nl_buffer *out)
{
    size_t start = out->size, header_size = nl_le16_get(block.data + NL_BLOCK_AT_HEADER_SIZE);
    if (!nl_buffer_append(out, block.data, block.size))
        return false;
    char flags = block.data[NL_BLOCK_AT_FLAGS];
    if (zstd_level == 0 || flags & NL_BLOCK_FLAG_ZSTD || !compress(w, zstd_level, out, start + header_size, expanded))
        return true;
    char *header = out->data + start;
    size_t stored_size = out->size - start - header_size;
    header[NL_BLOCK_AT_FLAGS] = (char)(flags | NL_BLOCK_FLAG_ZSTD);
    nl_le32_put(header + NL_BLOCK_AT_STORED_SIZE, (uint32_t)stored_size);
    nl_le32_put(header + NL_BLOCK_AT_CRC, nl_block_checksum(header, header_size, header + header_size, stored_size));
    return true;
}

void nl_time_question_put(char block[NL_TIME_QUESTION_SIZE], int64_t sent_ns)
{
    enum { SIZE = NL_TIME_QUESTION_SIZE - NL_BLOCK_HEADER_SIZE };
    memset(block, 0, NL_BLOCK_HEADER_SIZE);
    memcpy(block, NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE);
    nl_le16_put(block + NL_BLOCK_AT_HEADER_SIZE, NL_BLOCK_HEADER_SIZE);
    block[NL_BLOCK_AT_TYPE] = NL_BLOCK_TYPE_TIME;
    nl_le32_put(block + NL_BLOCK_AT_STORED_SIZE, SIZE);
    nl_le32_put(block + NL_BLOCK_AT_RAW_SIZE, SIZE);
    nl_le64_put(block + NL_BLOCK_HEADER_SIZE, (uint64_t)sent_ns);
    memcpy(block + NL_BLOCK_HEADER_SIZE + 8, "\r\n\r\n", 4);
    nl_le32_put(block + NL_BLOCK_AT_CRC,
                nl_block_checksum(block, NL_BLOCK_HEADER_SIZE, block + NL_BLOCK_HEADER_SIZE, SIZE));
}

static void clear_index(nl_block_index *index)
{
    if (index->count > 0)
        memset(index->slots, 0, index->capacity * sizeof *index->slots);
    index->count = 0;
}

void nl_block_clear(nl_block_writer *w)
{
    w->sources.size = w->shapes.size = w->records.size = 0;
    w->source_count = w->shape_count = w->record_count = w->field_count = w->last_shape = 0;
    w->expanded = w->longest_source = 0;
    w->block_number++;
    clear_index(&w->source_index);
    clear_index(&w->shape_index);
}

void nl_block_writer_free(nl_block_writer *w)
{
    nl_buffer_free(&w->sources);
    nl_buffer_free(&w->shapes);
    nl_buffer_free(&w->records);
    nl_buffer_free(&w->scratch);
    free(w->before);
    free(w->known_shapes);
    free(w->source_index.slots);
    free(w->shape_index.slots);
    ZSTD_freeCCtx(w->zstd);
    *w = (nl_block_writer){0};
}
