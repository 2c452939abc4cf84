/*
 * Writes blocks of the binary format (doc/binary-format.md).
 *
 * A block writer collects records, and nl_block_finish builds a block from them. nl_block_put adds any record. Callers
 * on fast paths add sources and shapes themselves, once each, and append records to `records`:
 *
 *   nl_buffer_reserve(&w->records, NL_BLOCK_RECORD_HEAD + size of the values);
 *   char *at = w->records.data + w->records.size;
 *   at = nl_block_begin_record(w, at, shape, time_ns);
 *   uint64_t *before = nl_block_before(w, shape);
 *   at = nl_block_put_number(at, value, before++, false); ... in the order and by the types of the shape
 *   w->records.size = at - w->records.data;
 *   w->expanded += size of the strings among the values;
 *
 * Initialize a writer with zeros. Only one thread at a time may use a writer.
 */
#ifndef NETLOGGER_RECORD_BLOCK_WRITE_H
#define NETLOGGER_RECORD_BLOCK_WRITE_H

#include "record/block.h"
#include "record/varint.h"
#include "base/buffer.h"

/* A hash table of definitions; the keys are the bytes of the definitions. */
typedef struct nl_block_index {
    struct nl_block_definition *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} nl_block_index;

/* A shape of the block. */
typedef struct nl_block_known_shape {
    uint32_t first_before; /* index in `before` of the shape's first field */
    uint32_t expanded;     /* expanded size of each record of the shape, without strings */

    /* Only nl_block_put uses the following members. */
    uint32_t source, level; /* offsets of the source's definition in `sources`, and of the shape's level in `shapes` */
    uint32_t next;          /* index + 1 of the shape of the record after the latest record of this shape; 0: unknown */
} nl_block_known_shape;

typedef struct nl_block_writer {
    nl_buffer sources, shapes, records; /* the parts of the payload, without their counts */
    uint32_t source_count, shape_count, record_count, field_count;
    size_t expanded;                                /* upper bound of the records' expanded size (block.h) */
    int64_t min_time_ns, max_time_ns, last_time_ns; /* undefined if there are no records */

    /*
     * The first record's time is written relative to the minimum time, which is known only at the end. Therefore,
     * nl_block_finish inserts the time at byte offset first_time_at of `records`.
     */
    int64_t first_time_ns;
    size_t first_time_at;

    /* The latest values of each shape (nl_block_before). */
    uint64_t *before;
    size_t before_capacity;
    struct nl_block_known_shape *known_shapes;
    size_t shape_capacity;

    uint64_t block_number; /* number of blocks that were finished or discarded */

    size_t longest_source; /* bytes; size of the longest source definition */

    /* Only nl_block_put uses the following members. */
    nl_block_index source_index, shape_index;
    uint32_t last_shape; /* index + 1 of the shape of the latest record; 0: no record yet */
    nl_buffer scratch;
    struct ZSTD_CCtx_s *zstd; /* NULL until needed */
} nl_block_writer;

typedef struct nl_block_shape {
    unsigned source;
    nl_level level;
    nl_string level_text; /* the level's text, which is written if it is not a name of the level; data may be NULL */
    nl_string event;      /* data is NULL or size is 0 if the shape has no event */
    const nl_string *names;
    const nl_type *types;
    size_t field_count;
} nl_block_shape;

typedef struct nl_block_identity {
    unsigned char stream[NL_BLOCK_STREAM_SIZE]; /* all zeros: the block has no stream */
    uint64_t first_sequence;                    /* sequence number of the first record */
    uint64_t lost;                              /* number of records that were dropped before the first record */
    int64_t lost_from_ns, lost_to_ns;           /* range of times of the dropped records */
} nl_block_identity;

/* Returned instead of an index if memory runs out or a table is full. */
#define NL_BLOCK_NO_PLACE UINT32_MAX

/*
 * Append a source or a shape, even if the block already has an equal source or shape. Return its index, or
 * NL_BLOCK_NO_PLACE if memory runs out. The writer copies the strings. Bytes that are invalid in names become '_'.
 */
unsigned nl_block_add_source(nl_block_writer *w, nl_string host, nl_string prog);
unsigned nl_block_add_shape(nl_block_writer *w, const nl_block_shape *shape);

/*
 * Looks up the definition in `scratch` and returns its index. `index` is the hash table of the definitions in `part`.
 * If the definition is new, appends it to `part`, with `count` as its index. Returns NL_BLOCK_NO_PLACE if memory runs
 * out.
 */
unsigned nl_block_find_or_add(nl_block_index *index, nl_buffer *part, const nl_buffer *scratch, uint32_t count);

enum { NL_BLOCK_RECORD_HEAD = 2 * NL_VARINT_SIZE }; /* bytes; maximum that nl_block_begin_record writes */

/*
 * Begins a record at the end of w->records, where the caller has reserved space. Returns the position where the caller
 * then writes the record's values.
 */
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
 * Returns the latest values of a shape, one 64-bit word per field. For a number, the word is the number. For a string,
 * the upper half is the string's offset in records, and the lower half its size. The put functions below update the
 * words. The pointer is valid until a shape is added.
 */
static inline uint64_t *nl_block_before(nl_block_writer *w, unsigned shape)
{
    return w->before + w->known_shapes[shape].first_before;
}

/*
 * Write a value to memory where the caller has reserved NL_VARINT_SIZE bytes plus the size of the string. Return the
 * end of the written bytes. For bmi2, see nl_varint_put_by.
 */
static inline __attribute__((always_inline)) char *nl_block_put_number(char *at, uint64_t value, uint64_t *before,
                                                                       bool bmi2)
{
    uint64_t rise = value - *before;
    *before = value;
    return nl_varint_put_by(at, nl_zigzag((int64_t)rise), bmi2);
}

/* Returns whether the bytes are equal. Compares short strings without a function call. */
static inline bool nl_block_is_same(const char *a, const char *b, size_t size)
{
    if (size > 16)
        return memcmp(a, b, size) == 0;
    if (size < 8) {
        if (size < 4)
            return size == 0 || (a[0] == b[0] && a[size - 1] == b[size - 1] && a[size / 2] == b[size / 2]);
        uint32_t parts[4];
        memcpy(&parts[0], a, 4);
        memcpy(&parts[1], b, 4);
        memcpy(&parts[2], a + size - 4, 4);
        memcpy(&parts[3], b + size - 4, 4);
        return ((parts[0] ^ parts[1]) | (parts[2] ^ parts[3])) == 0;
    }
    uint64_t a_first, a_last, b_first, b_last;
    memcpy(&a_first, a, 8);
    memcpy(&a_last, a + size - 8, 8);
    memcpy(&b_first, b, 8);
    memcpy(&b_last, b + size - 8, 8);
    return ((a_first ^ b_first) | (a_last ^ b_last)) == 0;
}

/* Like nl_block_put_number, but writes a string. `records` is the start of the block's records (w->records.data). */
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
 * Counts records that the caller wrote up to the position `at`, not including the block's first record. Their times
 * increase from first_ns to last_ns. `expanded` is an upper bound of the bytes that they add to the expanded size.
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

/* Writes a string's size and bytes to memory that the caller has reserved. Returns the end of the written bytes. */
static inline char *nl_block_put_string(char *at, nl_string string)
{
    at = nl_varint_put(at, string.size);
    if (string.size > 0)
        memcpy(at, string.data,
               string.size); /* NOLINT(clang-analyzer-core.NonNullParamChecker): size is 0 if data is NULL */
    return at + string.size;
}

/*
 * Adds a record. Returns false and adds nothing if the block would become too large. The caller then finishes the block
 * and tries again. A record that an empty block rejects cannot be written. Also returns false if memory runs out
 * (nl_memory_failures).
 */
bool nl_block_put(nl_block_writer *w, const nl_record *record);

/* Returns whether the block has space for a record; `size` is an upper bound of its bytes in the payload. */
bool nl_block_has_space(const nl_block_writer *w, size_t size);

/* Returns the size in bytes of the payload that the writer has collected. */
static inline size_t nl_block_size(const nl_block_writer *w)
{
    return w->sources.size + w->shapes.size + w->records.size;
}

/*
 * Sizes at which a block counts as full. Larger blocks would compress better, but each damaged block would then lose
 * more records.
 */
enum { NL_BLOCK_FULL_SIZE = 64 << 10, NL_BLOCK_FULL_EXPANDED = NL_BLOCK_EXPANDED_MAX / 2 };

/* Returns whether the tables have grown so large that the caller should finish the block. */
static inline bool nl_block_tables_are_full(const nl_block_writer *w)
{
    return w->source_count >= NL_BLOCK_SOURCES_MAX / 2 || w->shape_count >= NL_BLOCK_SHAPES_MAX / 2 ||
           w->field_count >= NL_BLOCK_FIELDS_MAX / 2;
}

/* Returns whether the block is so large that the caller should finish it. */
static inline bool nl_block_is_full(const nl_block_writer *w)
{
    return nl_block_size(w) >= NL_BLOCK_FULL_SIZE || w->expanded >= NL_BLOCK_FULL_EXPANDED ||
           nl_block_tables_are_full(w);
}

/*
 * Appends the block to `out` and empties w. Compresses the block with zstd_level if that makes it smaller; level 0
 * disables compression. Appends nothing if there are no records and none were lost. Returns false and changes nothing
 * if memory runs out.
 */
bool nl_block_finish(nl_block_writer *w, const nl_block_identity *identity, int zstd_level, nl_buffer *out);

/*
 * Appends a valid block to `out`. If the block is not compressed, compresses it with zstd_level if that makes it
 * smaller; level 0 disables compression. `expanded` is an upper bound of the block's expanded size. Uses only the
 * compressor of w. Returns false if memory runs out.
 */
bool nl_block_repack(nl_block_writer *w, nl_string block, uint64_t expanded, int zstd_level, nl_buffer *out);

/* Discards the records, sources and shapes that were added after the latest nl_block_finish. */
void nl_block_clear(nl_block_writer *w);

/* Frees the writer's memory. The writer can be used again. */
void nl_block_writer_free(nl_block_writer *w);

#endif
