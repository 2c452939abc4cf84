#include "config.h"

#include "record/block_read.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/block_read_internal.h"
#include "record/field_name.h"
#include "record/record_internal.h"
#include "record/varint.h"
#include "record/format.h"
#include "base/buffer.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

typedef nl_block_source_view source_view;
typedef nl_block_shape_view shape_view;

static nl_status malformed(const char *reason)
{
    nl_error_set(NL_ERROR_INVALID, "%s", reason);
    return NL_MALFORMED;
}

/* ---- the header ---- */

bool nl_block_has_stream(const nl_block_header *header)
{
    static const unsigned char none[NL_BLOCK_STREAM_SIZE];
    return memcmp(header->stream, none, sizeof none) != 0;
}

static nl_status check_sizes(const nl_block_header *h)
{
    if (h->header_size < NL_BLOCK_HEADER_SIZE)
        return malformed("block's header is too small");
    if (h->stored_size > NL_BLOCK_PAYLOAD_MAX || h->raw_size > NL_BLOCK_PAYLOAD_MAX)
        return malformed("block is larger than 16 MiB");
    return NL_OK;
}

nl_status nl_block_parse_header(const char *data, size_t size, nl_block_header *header)
{
    size_t seen = size < NL_BLOCK_MAGIC_SIZE ? size : NL_BLOCK_MAGIC_SIZE;
    if (seen > 0 && memcmp(data, NL_BLOCK_MAGIC, seen) != 0)
        return malformed("no block begins here");
    if (size < NL_BLOCK_HEADER_SIZE)
        return NL_AGAIN;
    *header = (nl_block_header){
        .header_size = nl_le16_get(data + NL_BLOCK_AT_HEADER_SIZE),
        .type = (unsigned char)data[NL_BLOCK_AT_TYPE],
        .flags = (unsigned char)data[NL_BLOCK_AT_FLAGS],
        .crc = nl_le32_get(data + NL_BLOCK_AT_CRC),
        .stored_size = nl_le32_get(data + NL_BLOCK_AT_STORED_SIZE),
        .raw_size = nl_le32_get(data + NL_BLOCK_AT_RAW_SIZE),
        .record_count = nl_le32_get(data + NL_BLOCK_AT_RECORD_COUNT),
        .first_sequence = nl_le64_get(data + NL_BLOCK_AT_FIRST_SEQUENCE),
        .min_time_ns = (int64_t)nl_le64_get(data + NL_BLOCK_AT_MIN_TIME),
        .max_time_ns = (int64_t)nl_le64_get(data + NL_BLOCK_AT_MAX_TIME),
        .lost = nl_le64_get(data + NL_BLOCK_AT_LOST),
        .lost_from_ns = (int64_t)nl_le64_get(data + NL_BLOCK_AT_LOST_FROM),
        .lost_to_ns = (int64_t)nl_le64_get(data + NL_BLOCK_AT_LOST_TO),
    };
    memcpy(header->stream, data + NL_BLOCK_AT_STREAM, NL_BLOCK_STREAM_SIZE);
    return check_sizes(header);
}

nl_status nl_block_verify(const nl_block_header *header, const char *data)
{
    uint32_t crc = nl_block_checksum(data, header->header_size, data + header->header_size, header->stored_size);
    return crc == header->crc ? NL_OK : malformed("block's checksum does not match");
}

/* ---- the tables ---- */

/* Reads a number up to a maximum. Returns false on failure. */
static bool get_number(nl_block_reader *r, uint64_t maximum, uint64_t *value)
{
    const char *next = nl_varint_get(r->at, r->end, value);
    if (next == NULL || *value > maximum)
        return false;
    r->at = next;
    return true;
}

static bool get_string(nl_block_reader *r, nl_string *string)
{
    uint64_t size;
    const char *data = nl_varint_get(r->at, r->end, &size);
    if (data == NULL || size > (size_t)(r->end - data))
        return false;
    *string = (nl_string){data, (size_t)size};
    r->at = data + size;
    return true;
}

/* Reads a string. Sets string->data to NULL if the string is empty. Returns false on failure. */
static bool get_optional(nl_block_reader *r, nl_string *string)
{
    if (!get_string(r, string))
        return false;
    if (string->size == 0)
        string->data = NULL;
    return true;
}

/*
 * Reserves space for one more element of an array. Tables grow as they are read, so that a wrong count does not cost
 * memory.
 */
#define RESERVE_ONE(array, count, capacity)                                                                            \
    ({                                                                                                                 \
        void *reserved = reserve_one(array, count, capacity, sizeof *(array));                                         \
        if (reserved != NULL)                                                                                          \
            (array) = reserved;                                                                                        \
        reserved != NULL;                                                                                              \
    })

static void *reserve_one(void *array, size_t count, size_t *capacity, size_t each)
{
    if (count < *capacity)
        return array;
    size_t more = *capacity == 0 ? 16 : *capacity * 2;
    void *larger = nl_memory_check(reallocarray(array, more, each));
    if (larger != NULL)
        *capacity = more;
    return larger;
}

static bool get_sources(nl_block_reader *r)
{
    uint64_t count;
    if (!get_number(r, NL_BLOCK_SOURCES_MAX, &count))
        return false;
    for (r->source_count = 0; r->source_count < count; r->source_count++) {
        if (!RESERVE_ONE(r->sources, r->source_count, &r->source_capacity))
            return false;
        source_view *source = &r->sources[r->source_count];
        if (!get_optional(r, &source->host) || !get_optional(r, &source->prog))
            return false;
    }
    return true;
}

static bool get_fields(nl_block_reader *r, size_t count)
{
    for (; count > 0; count--) {
        if (r->at == r->end || r->field_count == (r->packed ? NL_RECORD_PACK_FIELDS_MAX : NL_BLOCK_FIELDS_MAX))
            return false;
        unsigned type = (unsigned char)*r->at++ - NL_BLOCK_TYPE_OFFSET;
        if (!RESERVE_ONE(r->fields, r->field_count, &r->field_capacity))
            return false;
        nl_field *field = &r->fields[r->field_count++];
        *field = (nl_field){.type = (nl_type)type};
        if (type == NL_TYPE_STRING)
            field->string = (nl_string){"", 0};
        if (type > NL_TYPE_BOOL || !get_string(r, &field->name) || !nl_is_name(field->name))
            return false;
    }
    return true;
}

static bool get_level(nl_block_reader *r, shape_view *shape)
{
    if (r->at == r->end)
        return false;
    unsigned level = (unsigned char)*r->at++;
    if (level > NL_DEBUG)
        return false;
    shape->level = (nl_level)level;
    if (level == NL_LEVEL_NONE) {
        if (!get_optional(r, &shape->level_text))
            return false;
        shape->level = nl_level_parse(shape->level_text.data, shape->level_text.size);
        return true;
    }
    const char *name = nl_level_name(shape->level);
    shape->level_text = nl_string_of(name);
    return true;
}

static bool get_shape(nl_block_reader *r, shape_view *shape)
{
    uint64_t source, count;
    if (r->source_count == 0 || !get_number(r, r->source_count - 1, &source))
        return false;
    shape->source = r->sources[source];
    if (!get_level(r, shape) || !get_optional(r, &shape->event) ||
        !get_number(r, r->packed ? NL_RECORD_PACK_FIELDS_MAX : NL_BLOCK_SHAPE_FIELDS_MAX, &count))
        return false;
    shape->first_field = r->field_count;
    shape->field_count = (size_t)count;
    shape->expanded = NL_BLOCK_RECORD_EXPANDED + shape->field_count * NL_BLOCK_FIELD_EXPANDED +
                      shape->source.host.size + shape->source.prog.size + shape->level_text.size + shape->event.size;
    if (!get_fields(r, shape->field_count))
        return false;
    for (size_t i = 0; i < shape->field_count; i++)
        shape->expanded += r->fields[shape->first_field + i].name.size;
    return true;
}

static bool get_shapes(nl_block_reader *r)
{
    uint64_t count;
    if (!get_number(r, NL_BLOCK_SHAPES_MAX, &count))
        return false;
    r->field_count = 0;
    for (r->shape_count = 0; r->shape_count < count; r->shape_count++) {
        if (!RESERVE_ONE(r->shapes, r->shape_count, &r->shape_capacity) || !get_shape(r, &r->shapes[r->shape_count]))
            return false;
    }
    return true;
}

static nl_status decompress(nl_block_reader *r, const nl_block_header *header, const char *stored)
{
    if (r->zstd == NULL)
        r->zstd = ZSTD_createDCtx();
    if (r->zstd == NULL)
        return nl_memory_failed();
    r->raw.size = 0;
    if (!nl_buffer_reserve(&r->raw, (size_t)header->raw_size + 1))
        return NL_FAILED;
    r->decompressed = header->raw_size;
    size_t size = ZSTD_decompressDCtx(r->zstd, r->raw.data, header->raw_size, stored, header->stored_size);
    if (ZSTD_isError(size) || size != header->raw_size)
        return malformed("block cannot be decompressed");
    r->at = r->raw.data;
    return NL_OK;
}

/* Checks the header's sizes and counts before doing work that depends on them. */
static nl_status check_claims(const nl_block_header *h)
{
    if (h->flags & ~NL_BLOCK_FLAG_ZSTD)
        return malformed("block has flags that this version does not support");
    if (h->raw_size > NL_BLOCK_MANY_MAX && h->record_count != 1)
        return malformed("block of several records is larger than 2 MiB");
    if (h->raw_size > NL_BLOCK_RATIO_FREE + (uint64_t)NL_BLOCK_RAW_RATIO_MAX * h->stored_size)
        return malformed("block's compression ratio exceeds 100");
    return NL_OK;
}

/* Returns NL_FAILED if memory has run out since nl_memory_failures had the value `failures`. Otherwise, reports that
 * the block is malformed. */
static nl_status block_reader_fail(unsigned failures, const char *reason)
{
    return nl_memory_failures == failures ? malformed(reason) : NL_FAILED;
}

nl_status nl_block_open(nl_block_reader *reader, const nl_block_header *header, const char *data)
{
    const unsigned failures = nl_memory_failures;
    reader->left = 0;
    reader->source_count = reader->shape_count = reader->field_count = 0;
    reader->expanded = 0;
    reader->decompressed = 0;
    reader->at = data + header->header_size;
    if (check_claims(header) != NL_OK)
        return NL_MALFORMED;
    if (header->flags & NL_BLOCK_FLAG_ZSTD) {
        nl_status status = decompress(reader, header, data + header->header_size);
        if (status != NL_OK)
            return status;
    } else if (header->raw_size != header->stored_size) {
        return malformed("block is not compressed, but its two sizes differ");
    }
    reader->end = reader->at + header->raw_size;
    if (!get_sources(reader))
        return block_reader_fail(failures, "block's list of sources is damaged");
    if (!get_shapes(reader))
        return block_reader_fail(failures, "block's list of shapes is damaged");
    if (header->record_count == 0 && reader->source_count > 0)
        return malformed("block has sources but no records");
    reader->left = header->record_count;
    reader->expanded_max = nl_block_expanded_max(header->record_count, header->stored_size);
    reader->time_ns = header->min_time_ns;
    if (reader->left == 0 && reader->at != reader->end)
        return malformed("block has bytes after its last record");
    return NL_OK;
}

/* ---- records ---- */

/*
 * Reads a string, which begins with a number. 0 means the previous string. Any other number is the size of the string
 * plus 1, and the bytes of the string follow. Returns false on failure.
 */
static bool get_text(nl_block_reader *r, nl_string *string)
{
    uint64_t code;
    const char *data = nl_varint_get(r->at, r->end, &code);
    if (data == NULL || code > (size_t)(r->end - data) + 1)
        return false;
    r->at = data;
    if (code > 0) {
        *string = (nl_string){data, (size_t)code - 1};
        r->at += string->size;
    }
    r->expanded += string->size;
    return true;
}

/*
 * Reads a field's value according to its type. `known` has the value from the previous record of the shape, and
 * receives the new value; *field becomes a copy of *known. The function stores both from registers. Loading *known just
 * after storing a part of it would stall the processor.
 */
static bool get_value(nl_block_reader *r, nl_field *known, nl_field *field)
{
    uint64_t rise;
    const char *next;
    switch (field->type) {
    case NL_TYPE_STRING:
        if (!get_text(r, &field->string))
            return false;
        known->string.data = field->string.data;
        known->string.size = field->string.size;
        return true;
    case NL_TYPE_INT:
    case NL_TYPE_UINT:
        next = nl_varint_get(r->at, r->end, &rise);
        if (next == NULL)
            return false;
        r->at = next;
        known->uint_value += (uint64_t)nl_unzigzag(rise); /* the same bits for signed and unsigned integers */
        field->uint_value = known->uint_value;
        return true;
    case NL_TYPE_DOUBLE:
        if (r->end - r->at < 8)
            return false;
        field->double_value = nl_double_get(r->at);
        r->at += 8;
        return true;
    case NL_TYPE_BOOL:
        if (r->at == r->end || (unsigned char)*r->at > 1)
            return false;
        field->bool_value = *r->at++ != 0;
        return true;
    }
    return false;
}

static bool get_record(nl_block_reader *r, nl_record *record)
{
    uint64_t place, delta;
    if (r->shape_count == 0 || !get_number(r, r->shape_count - 1, &place) || !get_number(r, UINT64_MAX, &delta))
        return false;
    const shape_view *shape = &r->shapes[place];
    /* Each value has at least one byte, so a shape with very many fields costs no more than the block's bytes. */
    if (shape->field_count > (size_t)(r->end - r->at))
        return false;
    r->time_ns = (int64_t)((uint64_t)r->time_ns + (uint64_t)nl_unzigzag(delta));
    record->time_ns = r->time_ns;
    record->level = shape->level;
    record->level_text = shape->level_text;
    record->host = shape->source.host;
    record->prog = shape->source.prog;
    record->event = shape->event;
    r->expanded += shape->expanded;
    if (shape->field_count == 0)
        return true;
    nl_field *fields = nl_record_append_many(record, shape->field_count);
    if (fields == NULL)
        return false;
    nl_field *known = r->fields + shape->first_field;
    for (size_t i = 0; i < shape->field_count; i++) {
        fields[i] = known[i];
        if (!get_value(r, &known[i], &fields[i]))
            return false;
    }
    return true;
}

/* Ends the reading of a block. This is a separate function, so that nl_block_next needs fewer registers. */
static __attribute__((noinline, cold)) nl_status end_reading(nl_block_reader *reader, nl_record *record, bool good,
                                                             unsigned failures)
{
    reader->left = 0;
    nl_record_clear(record);
    if (reader->expanded > reader->expanded_max)
        return malformed("block's records are larger than its size allows");
    return good ? malformed("block has bytes after its last record")
                : block_reader_fail(failures, "block's record is damaged");
}

nl_status nl_block_next(nl_block_reader *reader, nl_record *record)
{
    const unsigned failures = nl_memory_failures;
    nl_record_clear(record);
    if (reader->left == 0)
        return NL_END;
    reader->left--;
    bool good = get_record(reader, record);
    if (good && reader->expanded <= reader->expanded_max && (reader->left > 0 || reader->at == reader->end))
        return NL_OK;
    return end_reading(reader, record, good, failures);
}

/* The sums from which an upper bound of the expanded size is computed, without looking up repeated strings. */
typedef struct expanded_bound {
    uint64_t bytes;    /* total size of the shapes and of the strings that are not repeated */
    uint64_t repeated; /* number of repeated strings */
    uint64_t longest;  /* size of the longest string */
} expanded_bound;

/* Skips the values of a record. Returns NULL if they are damaged. */
static const char *skip_values(const nl_field *fields, size_t count, const char *at, const char *end,
                               expanded_bound *bound)
{
    for (size_t i = 0; i < count && at != NULL; i++) {
        uint64_t code; /* see get_text */
        switch (fields[i].type) {
        case NL_TYPE_STRING:
            at = nl_varint_get(at, end, &code);
            if (at == NULL)
                break;
            if (code == 0) {
                bound->repeated++;
                break;
            }
            at = code - 1 <= (size_t)(end - at) ? at + (code - 1) : NULL;
            bound->bytes += code - 1;
            bound->longest = code - 1 > bound->longest ? code - 1 : bound->longest;
            break;
        case NL_TYPE_INT:
        case NL_TYPE_UINT:
            at = nl_varint_skip(at, end);
            break;
        case NL_TYPE_DOUBLE:
            at = end - at >= 8 ? at + 8 : NULL;
            break;
        case NL_TYPE_BOOL:
            at = at < end && (unsigned char)*at <= 1 ? at + 1 : NULL;
            break;
        }
    }
    return at;
}

bool nl_block_check(const nl_block_reader *reader, uint64_t *expanded)
{
    const char *at = reader->at, *end = reader->end;
    expanded_bound bound = {0};
    for (uint32_t left = reader->left; left > 0; left--) {
        uint64_t place;
        at = nl_varint_get(at, end, &place);
        if (at == NULL || place >= reader->shape_count || (at = nl_varint_skip(at, end)) == NULL)
            return false;
        const shape_view *shape = &reader->shapes[place];
        bound.bytes += shape->expanded;
        if (shape->field_count > 0)
            at = skip_values(reader->fields + shape->first_field, shape->field_count, at, end, &bound);
        if (at == NULL)
            return false;
    }
    if (at != end || bound.bytes > reader->expanded_max ||
        (bound.longest > 0 && bound.repeated > (reader->expanded_max - bound.bytes) / bound.longest))
        return false;
    *expanded = bound.bytes + bound.repeated * bound.longest;
    return true;
}

nl_status nl_record_unpack(nl_record *record, const char *data, size_t size)
{
    nl_block_reader reader = {.packed = true};
    nl_block_header header = {.stored_size = (uint32_t)size, .raw_size = (uint32_t)size, .record_count = 1};
    nl_record_clear(record);
    nl_status status = nl_block_open(&reader, &header, data);
    if (status == NL_OK)
        status = nl_block_next(&reader, record);
    nl_block_reader_free(&reader);
    return status;
}

size_t nl_block_reader_held(const nl_block_reader *reader)
{
    return reader->source_capacity * sizeof *reader->sources + reader->shape_capacity * sizeof *reader->shapes +
           reader->field_capacity * sizeof *reader->fields + reader->raw.capacity +
           (reader->zstd != NULL ? ZSTD_sizeof_DCtx(reader->zstd) : 0);
}

void nl_block_reader_free(nl_block_reader *reader)
{
    free(reader->sources);
    free(reader->shapes);
    free(reader->fields);
    nl_buffer_free(&reader->raw);
    ZSTD_freeDCtx(reader->zstd);
    *reader = (nl_block_reader){0};
}
