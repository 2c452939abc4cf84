/*
 * The value index of a log file, in FILE.values beside it (netlogd(8), FILES). For some fields, it lists the pieces of
 * the file in which each value occurs. The pieces are those of the time index (time_index.h), which must also exist. An
 * index only allows a reader to skip pieces that cannot match. Therefore, the index may be missing, damaged or
 * incomplete: a reader reads all pieces that the index does not describe. netlogd writes the index, and the library
 * reads it. Only one thread at a time may use it.
 *
 * The file is a series of segments. Each segment describes consecutive pieces. A segment is a static quotient filter
 * with values, which are the numbers of pieces (Bender et al., "Don't Thrash: How to Cache Your Hash on Flash", VLDB
 * 2012; quotienting is from Cleary, "Compact Hash Tables Using Bidirectional Linear Probing", 1984). The first
 * `bucket_bits` of a key (value_keys.h) choose a bucket. The bucket has an entry for each key and piece: the next
 * `remainder_bits` of the key, and the number of the piece within the segment in `piece_bits`. The entries of a bucket
 * are sorted. The bucket stores the differences between successive entries, encoded as in Rice, "Some Practical
 * Universal Noiseless Coding Techniques" (1979). Thus a search reads one bucket of each segment. A search for a key
 * that does not occur finds about 190 / 2^remainder_bits wrong entries in a segment. The remainder shrinks if the
 * segment would otherwise exceed its share of the file.
 *
 * A segment has the following parts, with little-endian numbers:
 * - a header of 52 bytes (offset, size, content):
 *    0  4  "NLV1"
 *    4  4  size of the segment in bytes
 *    8  8  offset in the file at which the segment's first piece begins
 *   16  8  offset in the file at which the segment's last piece ends
 *   24  4  number of the first piece
 *   28  4  number of pieces
 *   32  3  size of the next part, the fields, in bytes
 *   35  1  rice_bits
 *   36  4  size of all buckets in bytes
 *   40  4  bucket_bits, remainder_bits, piece_bits and the number of fields, 1 byte each
 *   44  4  CRC-32C of the ends and tail checksums of the pieces in the time index
 *   48  4  CRC-32C of the preceding 48 bytes and the next part
 * - for each field, the size of its name (1 byte) and the name
 * - for each bucket, and for the end of the last bucket, its offset in the buckets (4 bytes) and a CRC-32C (4 bytes)
 *   of the header's checksum, the bucket's number and size (4 bytes each), and its bytes
 * - the buckets, lowest bit first. Each entry is encoded as n, the number of values between the preceding entry and
 * this entry: n / 2^rice_bits in unary (ones and a final zero), and then n modulo 2^rice_bits in rice_bits bits. Ones
 * fill the unused bits of the last byte of the bucket.
 *
 * The checksums detect a segment that was only partly written over an older segment, and pieces that have changed.
 */
#ifndef NETLOGGER_READER_VALUE_INDEX_H
#define NETLOGGER_READER_VALUE_INDEX_H

#include "reader/time_index.h"
#include "reader/value_keys.h"

#define NL_VALUE_INDEX_SUFFIX ".values"

enum {
    NL_VALUE_PIECES_MAX = 4096,     /* maximum number of pieces of a segment */
    NL_VALUE_ENTRIES_MAX = 1 << 20, /* maximum number of entries of a segment */
    NL_VALUE_SHARE = 50,            /* a segment has at most 1/50 of the bytes of its pieces */
    NL_VALUE_SEGMENT_MAX = 8 << 20, /* maximum size of a segment in bytes; readers ignore larger segments */
};

/* An entry before it is encoded: the first 48 bits of the key, and the number of the piece within the segment. */
static inline uint64_t nl_value_entry(uint64_t key, size_t piece)
{
    return (key & ~UINT64_C(0xffff)) | piece;
}

/* Returns the path of a file's index, which the caller frees; NULL if memory runs out. */
char *nl_value_index_name(const char *path);

/*
 * Appends a segment for `count` pieces to `out`. `pieces` are the pieces of the time index; `first` is the number of
 * the segment's first piece. Returns false, and appends nothing, if the segment would exceed a limit or memory runs
 * out; the index then does not describe the pieces.
 */
bool nl_value_index_encode(const nl_time_index *index, size_t first, size_t count, const nl_value_fields *fields,
                           const uint64_t *entries, size_t entry_count, nl_buffer *out);

/* A segment of an index that is open as fd. */
typedef struct nl_value_segment {
    uint64_t at;    /* offset of the segment in the index */
    uint64_t begin; /* offset of the segment's first piece in the file */
    uint32_t size, first, count, sum, buckets_size;
    unsigned bucket_bits, remainder_bits, piece_bits, rice_bits;
    nl_value_fields fields;
    size_t directory; /* offset of the directory in the segment */
} nl_value_segment;

/* Reads the segment at an offset. Returns false if no valid segment for pieces of the time index begins there. */
bool nl_value_index_read_segment(int fd, uint64_t at, const nl_time_index *index, nl_value_segment *segment);

/*
 * Sets the fields of the index of a file, at most NL_VALUE_FIELDS_MAX. Reads the segments up to the first damaged
 * header, and does not compare them with the time index. If there is no readable segment, sets no field.
 */
void nl_value_index_read_fields(const char *path, nl_value_fields *fields);

/* Verifies all checksums of a segment. */
bool nl_value_index_verify_segment(int fd, const nl_value_segment *segment);

/* A search for the pieces of a file in which no record can match a filter. */
typedef struct nl_value_search nl_value_search;

/*
 * Begins a search, which the caller closes. The filter must stay valid until then. Returns NULL if the file has no
 * index, the filter has no test that an index can answer, or memory runs out.
 */
nl_value_search *nl_value_search_open(const char *path, const nl_filter *filter);

/*
 * Reads the next segment, and sets skip[i] for each piece i of the time index in which no record can match. Leaves the
 * other elements unchanged. Returns false if there are no more segments.
 */
bool nl_value_search_next(nl_value_search *search, const nl_time_index *index, bool *skip);

/* Returns whether the search has set an element of skip. */
bool nl_value_search_has_found(const nl_value_search *search);

/* Ends the search. NULL is allowed. */
void nl_value_search_close(nl_value_search *search);

#endif
