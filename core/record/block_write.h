/*
 * Building blocks of the binary format (doc/binary-format.md).
 *
 * A block writer gathers records and, at nl_block_finish, makes one block of them. There are two ways in, which may be
 * mixed: nl_block_put takes any record and finds its source and shape; or the caller adds sources and shapes itself,
 * once each, and then appends records to `records` in its own loop:
 *
 *   nl_buffer_reserve(&w->records, NL_BLOCK_RECORD_HEAD + room for the values);
 *   char *at = w->records.data + w->records.size;
 *   at = nl_block_begin_record(w, at, shape, time_ns);
 *   uint64_t *before = nl_block_before(w, shape);
 *   at = nl_block_put_number(at, value, before++, false); ... in the order and by the types of the shape
 *   w->records.size = at - w->records.data;
 *   w->expanded += the size of the strings among the values;
 *
 * {0} is an empty writer. One thread at a time.
 */
#ifndef NETLOGGER_FORMAT_BLOCK_WRITE_H
#define NETLOGGER_FORMAT_BLOCK_WRITE_H

#include "record/block.h"
#include "record/varint.h"
#include "base/buffer.h"

/* Definitions by their bytes, so that each is put down once. */
typedef struct nl_block_index {
    struct nl_block_definition *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} nl_block_index;

/* What is known of a shape that was added. */
typedef struct nl_block_known_shape {
    uint32_t first_before; /* index of its first field in `before` */
    uint32_t expanded;     /* bytes that each of its records adds to the expanded size, without its strings */
} nl_block_known_shape;

typedef struct nl_block_writer {
    nl_buffer sources, shapes, records; /* the payload's three parts, without their counts */
    uint32_t source_count, shape_count, record_count, field_count;
    size_t expanded;                                /* upper bound of the expanded size (block.h) of the records */
    int64_t min_time_ns, max_time_ns, last_time_ns; /* of the records; nothing while there are none */

    /* The first record's time is only put down at the end, when the earliest is known: at this place of records. */
    int64_t first_time_ns;
    size_t first_time_at;

    /* What the latest record of each shape holds (nl_block_before), and where in it the first of a shape is. */
    uint64_t *before;
    size_t before_capacity;
    struct nl_block_known_shape *known_shapes;
    size_t shape_capacity;

    size_t longest_source; /* bytes of the longest definition of a source */

    nl_block_index source_index, shape_index; /* of nl_block_put */
    nl_buffer scratch;
    struct ZSTD_CCtx_s *zstd; /* made when first needed */
} nl_block_writer;

typedef struct nl_block_shape {
    unsigned source;
    nl_level level;
    nl_string level_text; /* taken when it is not a name of level; data may be NULL */
    nl_string event;      /* data is NULL or size 0 when there is none */
    const nl_string *names;
    const nl_type *types;
    size_t field_count;
} nl_block_shape;

typedef struct nl_block_identity {
    unsigned char stream[NL_BLOCK_STREAM_SIZE]; /* all zero: none */
    uint64_t first_sequence;                    /* of the first record */
    uint64_t lost;                              /* records that were dropped just before it */
    int64_t lost_from_ns, lost_to_ns;
} nl_block_identity;

/* Instead of the place of a source or shape that there is no memory for. */
#define NL_BLOCK_NO_PLACE UINT32_MAX

/*
 * Add a source, a shape; return its place, or NL_BLOCK_NO_PLACE. Nothing is looked for: the same one twice is there
 * twice. Bytes that a name can't have become '_'.
 */
unsigned nl_block_add_source(nl_block_writer *w, nl_string host, nl_string prog);
unsigned nl_block_add_shape(nl_block_writer *w, const nl_block_shape *shape);

enum { NL_BLOCK_RECORD_HEAD = 2 * NL_VARINT_SIZE }; /* the most that nl_block_begin_record puts */

/* Begins a record at at, which is the end of w->records, where there is room; its values follow. Returns where. */
static inline char *nl_block_begin_record(nl_block_writer *w, char *at, unsigned shape, int64_t time_ns)
{
    at = nl_varint_put(at, shape);
    if (w->record_count++ == 0) {
        w->first_time_at = (size_t)(at - w->records.data);
        w->first_time_ns = w->min_time_ns = w->max_time_ns = time_ns;
    } else {
        at = nl_varint_put(at, nl_zigzag((int64_t)((uint64_t)time_ns - (uint64_t)w->last_time_ns)));
        if (time_ns < w->min_time_ns)
            w->min_time_ns = time_ns;
        if (time_ns > w->max_time_ns)
            w->max_time_ns = time_ns;
    }
    w->last_time_ns = time_ns;
    w->expanded += w->known_shapes[shape].expanded;
    return at;
}

/*
 * What the latest record of the shape holds, a word for each field: a number itself, of a string where it lies among
 * the records and (the lower half) its size. The functions below keep it true. Until the next shape is added.
 */
static inline uint64_t *nl_block_before(nl_block_writer *w, unsigned shape)
{
    return w->before + w->known_shapes[shape].first_before;
}

/* The three kinds of values that are not simply bytes. There are NL_VARINT_SIZE bytes at at, and those of a string;
 * what follows is returned. bmi2 as for nl_varint_put_by. */
static inline __attribute__((always_inline)) char *nl_block_put_number(char *at, uint64_t value, uint64_t *before,
                                                                       bool bmi2)
{
    uint64_t rise = value - *before;
    *before = value;
    return nl_varint_put_by(at, nl_zigzag((int64_t)rise), bmi2);
}

/* Whether the same bytes are at both places. Short ones without a call. */
static inline bool nl_block_is_same(const char *a, const char *b, size_t size)
{
    if (size > 16 || size < 8)
        return size == 0 || memcmp(a, b, size) == 0;
    uint64_t a_first, a_last, b_first, b_last;
    memcpy(&a_first, a, 8);
    memcpy(&a_last, a + size - 8, 8);
    memcpy(&b_first, b, 8);
    memcpy(&b_last, b + size - 8, 8);
    return ((a_first ^ b_first) | (a_last ^ b_last)) == 0;
}

/* records is where the block's records begin. */
static inline __attribute__((always_inline)) char *nl_block_put_text(char *at, const char *records, const char *data,
                                                                     size_t size, uint64_t *before, bool bmi2)
{
    if ((uint32_t)*before == size && nl_block_is_same(records + (*before >> 32), data, size)) {
        *at = 0;
        return at + 1;
    }
    at = nl_varint_put_by(at, size + 1, bmi2);
    *before = (uint64_t)(at - records) << 32 | size;
    nl_private_copy(at, data, size);
    return at + size;
}

/*
 * Notes count records that were put by hand up to at, behind a first one; their times rise from first_ns to last_ns.
 * expanded is an upper bound of what they add to the expanded size.
 */
static inline void nl_block_note_run(nl_block_writer *w, const char *at, uint32_t count, int64_t first_ns,
                                     int64_t last_ns, size_t expanded)
{
    w->expanded += expanded;
    w->records.size = (size_t)(at - w->records.data);
    w->record_count += count;
    w->min_time_ns = first_ns < w->min_time_ns ? first_ns : w->min_time_ns;
    w->max_time_ns = last_ns > w->max_time_ns ? last_ns : w->max_time_ns;
    w->last_time_ns = last_ns;
}

/* Appends a string's length and bytes, for which there is room, at at. Returns what follows. */
static inline char *nl_block_put_string(char *at, nl_string string)
{
    at = nl_varint_put(at, string.size);
    if (string.size > 0)
        memcpy(at, string.data, string.size); /* NOLINT(clang-analyzer-core.NonNullParamChecker): no text has no size */
    return at + string.size;
}

/*
 * Adds any record. False, and no record is added, when the block would be larger than blocks may be: then the caller
 * finishes the block and tries again; a record that an empty block can't hold can't be written at all. False, too, when
 * there is no memory (nl_memory_failures).
 */
bool nl_block_put(nl_block_writer *w, const nl_record *record);

/* Whether the block may hold another record of which size is an upper bound of the bytes in the payload. */
bool nl_block_has_space(const nl_block_writer *w, size_t size);

/* The bytes of payload so far. */
static inline size_t nl_block_size(const nl_block_writer *w)
{
    return w->sources.size + w->shapes.size + w->records.size;
}

/* Sizes at which a block is full: a block that gets lost should not take much along. */
enum { NL_BLOCK_FULL_SIZE = 64 << 10, NL_BLOCK_FULL_EXPANDED = NL_BLOCK_EXPANDED_MAX / 2 };

/* Whether the tables are so large that the block should be finished. */
static inline bool nl_block_tables_are_full(const nl_block_writer *w)
{
    return w->source_count >= NL_BLOCK_SOURCES_MAX / 2 || w->shape_count >= NL_BLOCK_SHAPES_MAX / 2 ||
           w->field_count >= NL_BLOCK_FIELDS_MAX / 2;
}

/* Whether it is time for nl_block_finish. */
static inline bool nl_block_is_full(const nl_block_writer *w)
{
    return nl_block_size(w) >= NL_BLOCK_FULL_SIZE || w->expanded >= NL_BLOCK_FULL_EXPANDED ||
           nl_block_tables_are_full(w);
}

/*
 * Appends the block to out, compressed by zstd at that level when that makes it smaller (0: never), and empties w for
 * the next one: its sources and shapes are gone too. Nothing is appended when there are no records and none were lost.
 * False, with out and w as they were, when there is no memory.
 */
bool nl_block_finish(nl_block_writer *w, const nl_block_identity *identity, int zstd_level, nl_buffer *out);

/*
 * Appends a sound block that is whole in memory to out: compressed by zstd at that level when it was not and that makes
 * it smaller (0: never), else as it is. expanded is an upper bound of its expanded size. Only w's compressor is used.
 * False when there is no memory.
 */
bool nl_block_repack(nl_block_writer *w, nl_string block, uint64_t expanded, int zstd_level, nl_buffer *out);

/* Forgets all that was put since the latest nl_block_finish. */
void nl_block_clear(nl_block_writer *w);

/* Frees what w holds; it is empty and usable again. */
void nl_block_writer_free(nl_block_writer *w);

#endif
