/*
 * Finds the parts of a file that a search must read, from the file's indexes (time_index.h, value_index.h). Readers of
 * records and readers of bytes use this module. The caller reads the source from `begin` to `end`, calls
 * nl_pieces_choose, and repeats both steps. Without indexes, the only part is the whole file. Only one thread at a time
 * may use an nl_pieces. Initialize the structure with zeros.
 */
#ifndef NETLOGGER_READER_PIECES_H
#define NETLOGGER_READER_PIECES_H

#include "reader/time_index.h"
#include "transport/source.h"

#include <netlogger.h>

typedef struct nl_pieces {
    nl_time_index index;
    bool *skip;  /* for each piece, whether no record matches the filter; NULL: unknown */
    size_t next; /* number of the first piece that is not yet read or skipped */
    int64_t from_ns, to_ns;
    uint64_t begin, end; /* the part to read next; UINT64_MAX: to the end of the file */
    uint64_t lines;      /* lines that are skipped before this part */
    struct nl_value_search *search;
} nl_pieces;

/*
 * Reads the time index of a source that is a regular file, unless the index is outdated. Begins to search the value
 * index for pieces that match the filter. The filter may be NULL, and must stay valid until the search ends. Pieces are
 * also skipped if they have no record in [from_ns, to_ns).
 */
void nl_pieces_open(nl_pieces *p, const nl_source *source, int64_t from_ns, int64_t to_ns, const nl_filter *filter);

/*
 * Continues the search in at most `count` segments of the value index. Returns true when the search has ended; the
 * first part to read is then set.
 */
bool nl_pieces_search(nl_pieces *p, const nl_source *source, size_t count);

/* After the caller has read up to `end`, returns whether there are pieces that were neither read nor skipped. */
bool nl_pieces_are_left(const nl_pieces *p, const nl_source *source);

/*
 * Chooses the next part. `midway` means that the latest part did not end with a whole record. In this case, or if the
 * index does not match the file there, the index belongs to another file, and the next part is the rest of the file.
 */
void nl_pieces_choose(nl_pieces *p, const nl_source *source, bool midway);

/* Returns whether pieces are skipped because of the filter. */
static inline bool nl_pieces_are_skipped(const nl_pieces *p)
{
    return p->skip != NULL;
}

void nl_pieces_free(nl_pieces *p);

#endif
