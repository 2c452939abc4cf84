/*
 * The index by time of a log's file, beside it as FILE.index (doc/time-index.md): when the records of each piece of the
 * file were. It says nothing that the file does not say, so that it may be missing, or end before the file does; what
 * it does not tell of is read. An index that does not belong to the file is told by checksums of the file's first bytes
 * and of the last ones of each piece.
 *
 * The library reads it; netlogd, which is made of this too, writes it. Any thread; an index is for one at a time.
 */
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
    NL_TIME_INDEX_HEAD = 512, /* bytes of the file that the header has the checksum of, at most */
    NL_TIME_INDEX_TAIL = 64,  /* and that an entry has, at most */
};

/* Times of records: {INT64_MAX, INT64_MIN} are none, {INT64_MIN, INT64_MAX} may be any. */
typedef struct nl_time_piece {
    uint64_t end; /* where it ends in the file, behind a whole record; it begins where the one before it ends */
    int64_t min_ns, max_ns;
    uint64_t records; /* UINT64_MAX: not known */
    uint32_t tail;    /* checksum of the bytes before end */
} nl_time_piece;

#define NL_TIME_PIECE_EMPTY ((nl_time_piece){.min_ns = INT64_MAX, .max_ns = INT64_MIN})
#define NL_TIME_PIECE_UNKNOWN ((nl_time_piece){.min_ns = INT64_MIN, .max_ns = INT64_MAX, .records = UINT64_MAX})

typedef struct nl_time_index {
    nl_time_piece *pieces;
    size_t count;
    uint32_t sum; /* of its header, which those of its entries go on with */
    bool surplus; /* behind these, it holds what is no entry, or is one of what the file does not have */
} nl_time_index;

/* The name of a file's index; NULL when there is no memory for it. The caller's, for free(). */
char *nl_time_index_name(const char *path);

/*
 * Reads the index of a file, which fd is open on. NL_TIME_INDEX_NONE: there is none, or an empty one;
 * NL_TIME_INDEX_OTHER: there is something, but no index of this file. The index is empty then. NL_TIME_INDEX_READ: it
 * is to be freed.
 */
typedef enum nl_time_index_outcome {
    NL_TIME_INDEX_NONE,
    NL_TIME_INDEX_OTHER,
    NL_TIME_INDEX_READ
} nl_time_index_outcome;
nl_time_index_outcome nl_time_index_read(const char *path, int fd, nl_time_index *index);
void nl_time_index_free(nl_time_index *index);

/* Where piece i begins; i may be count: what is behind all of them. */
static inline uint64_t nl_time_index_start(const nl_time_index *index, size_t i)
{
    return i > 0 ? index->pieces[i - 1].end : 0;
}

/* Whether the file still has, before the start of piece i, what was there when that was written. */
bool nl_time_index_holds(const nl_time_index *index, int fd, size_t i);

/* Adds the times of what to a piece. */
void nl_time_piece_add(nl_time_piece *piece, const nl_time_piece *what);

/* For who writes: the index' header, when the file's first piece ends at end, and its sum; the entry of a piece that
 * begins there, whose tail is set. False when the file cannot be read. */
bool nl_time_index_put_header(int fd, uint64_t end, char header[NL_TIME_INDEX_HEADER], uint32_t *sum);
bool nl_time_index_put_entry(int fd, uint32_t sum, uint64_t begin, nl_time_piece *piece,
                             char entry[NL_TIME_INDEX_ENTRY]);

/* How large a piece of a file is to be that has that size: small where it is, and few in all where it is large. */
static inline uint64_t nl_time_index_piece_size(uint64_t file_size)
{
    return file_size >> 14 > 256 << 10 ? file_size >> 14 : 256 << 10;
}

#endif
