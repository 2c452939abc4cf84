/* clang-format off */
/*
 * The time index of a log file, in FILE.index beside it (netlogd(8), FILES). The index has the time range of each piece
 * of the file. All information in the index can be computed from the file. Therefore, the index may be missing, or may
 * cover only the beginning of the file; a reader then reads the rest of the file. Checksums of the file's first bytes
 * and of the last bytes of each piece detect an index that belongs to another file. The library reads the index;
 * netlogd writes it. Only one thread at a time may use an index.
 *
 * The header has 16 bytes (offset, size, content):
 *    0  4  "NLI1"
 *    4  4  number of bytes at the start of the file that the next checksum covers, at most 512
 *    8  4  CRC-32C of these bytes
 *   12  4  CRC-32C of the preceding 12 bytes
 *
 * An entry of 40 bytes follows for each piece:
 *    0  8  offset in the file where the piece ends, after a whole line, block or zstd frame
 *    8  8  earliest time of the piece's records, signed, in nanoseconds since 1970
 *   16  8  latest time of the piece's records
 *   24  8  number of records
 *   32  4  CRC-32C of the last 64 bytes of the file before the end of the piece, or of all bytes if there are fewer
 *   36  4  CRC-32C of the header, the 8 bytes of the offset where the piece begins, and the preceding 36 bytes
 *
 * All numbers are little-endian.
 */
/* clang-format on */
#ifndef NETLOGGER_READER_TIME_INDEX_H
#define NETLOGGER_READER_TIME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NL_TIME_INDEX_SUFFIX ".index"

enum {
    NL_TIME_INDEX_HEADER = 16,
    NL_TIME_INDEX_ENTRY = 40,
    NL_TIME_INDEX_HEAD = 512, /* maximum number of the file's bytes that the header's checksum covers */
    NL_TIME_INDEX_TAIL = 64,  /* maximum number of the file's bytes that an entry's checksum covers */
};

/*
 * A piece of the file. Its time range is {INT64_MAX, INT64_MIN} if it has no records, and {INT64_MIN, INT64_MAX} if the
 * range is unknown.
 */
typedef struct nl_time_piece {
    uint64_t end;           /* offset in the file, in bytes, after a whole record; the next piece begins there */
    int64_t min_ns, max_ns; /* earliest and latest time of a record */
    uint64_t records;       /* UINT64_MAX: unknown */
    uint32_t tail; /* CRC-32C of the last NL_TIME_INDEX_TAIL bytes before `end`, or of all bytes if there are fewer */
} nl_time_piece;

#define NL_TIME_PIECE_EMPTY ((nl_time_piece){.min_ns = INT64_MAX, .max_ns = INT64_MIN})
#define NL_TIME_PIECE_UNKNOWN ((nl_time_piece){.min_ns = INT64_MIN, .max_ns = INT64_MAX, .records = UINT64_MAX})

typedef struct nl_time_index {
    nl_time_piece *pieces;
    size_t count;
    uint32_t sum; /* checksum of the header, which is the initial value for the checksums of entries */
    bool surplus; /* invalid entries follow, or entries for bytes that the file does not have */
} nl_time_index;

/* Returns the path of a file's index, which the caller frees; NULL if memory runs out. */
char *nl_time_index_name(const char *path);

typedef enum nl_time_index_outcome {
    NL_TIME_INDEX_NONE,  /* the file has no index that can be opened, or an empty index */
    NL_TIME_INDEX_OTHER, /* the index belongs to another file, is damaged or cannot be read */
    NL_TIME_INDEX_READ
} nl_time_index_outcome;

/*
 * Reads the index of the file at path, which is open as fd. If the result is NL_TIME_INDEX_READ, nl_time_index_free
 * frees the index. Otherwise, *index is empty.
 */
nl_time_index_outcome nl_time_index_read(const char *path, int fd, nl_time_index *index);
void nl_time_index_free(nl_time_index *index);

/*
 * Returns whether the file at path, which is open as fd, was changed after its index was completed. The index may then
 * be wrong. Returns false if the file is longer than the index, because netlogd may still be writing to the file.
 */
bool nl_time_index_is_outdated(const nl_time_index *index, const char *path, int fd);

/* Returns the offset at which piece i begins; `i` may be equal to count. */
static inline uint64_t nl_time_index_start(const nl_time_index *index, size_t i)
{
    return i > 0 ? index->pieces[i - 1].end : 0;
}

/* Returns whether the last bytes before piece i are those for which the index was written. */
bool nl_time_index_holds(const nl_time_index *index, int fd, size_t i);

/* Extends a piece by the times and records of another piece. */
void nl_time_piece_add(nl_time_piece *piece, const nl_time_piece *what);

/*
 * Writes to `header` the header of an index whose first piece ends at offset `end`, and sets *sum to the header's
 * checksum. Returns false if the file cannot be read.
 */
bool nl_time_index_put_header(int fd, uint64_t end, char header[NL_TIME_INDEX_HEADER], uint32_t *sum);

/*
 * Writes to `entry` the entry of a piece that begins at offset `begin`, and sets piece->tail. `sum` is the header's
 * checksum. Returns false if the file cannot be read.
 */
bool nl_time_index_put_entry(int fd, uint32_t sum, uint64_t begin, nl_time_piece *piece,
                             char entry[NL_TIME_INDEX_ENTRY]);

/*
 * Returns the size of a piece, in bytes, for a file of file_size bytes: 256 KiB, or 1/16384 of the file if that is
 * more.
 */
static inline uint64_t nl_time_index_piece_size(uint64_t file_size)
{
    return file_size >> 14 > 256 << 10 ? file_size >> 14 : 256 << 10;
}

#endif
