/*
 * The store of a large log in a file beside the log (LOG.nlv-index, or in $XDG_CACHE_HOME/netlogger), so that the log
 * opens quickly the next time. The file is mapped; pages that are not needed are not read. What a picture of the whole
 * log needs is at the start of the file.
 *
 * An index is valid if the log has at most grown since. A log with the same size and times is unchanged. Otherwise its
 * ends and some pieces are compared when it is opened, and all other pieces later (prints.h). If the log was changed,
 * or the index is damaged or has another version, the log is read again. The index is written under a temporary name
 * and renamed.
 */
#ifndef NLV_INDEX_H
#define NLV_INDEX_H

#include "requests/drawing.h"
#include "model/log_file.h"
#include "model/prints.h"
#include "model/store.h"

#include <stdatomic.h>

/* An index that was found; the caller owns all members. */
typedef struct index_found {
    store *store; /* the number of its file is 0 */
    drawing *drawing;
    uint64_t at;    /* bytes of the log that the index knows */
    prints prints;  /* of these bytes */
    GArray *blocks; /* log_block: of these bytes, in a log of blocks */
    bool is_sure;   /* the log is unchanged; otherwise compare its fingerprints */
} index_found;

/*
 * Reads the index of the log at path. wanted is the drawing; NULL: an inferred one. Returns false if no valid index
 * exists.
 */
bool index_read(const char *path, const log_file *file, const drawing *wanted, index_found *found);

/* The part of an index that has been compared with its checksums. Initially all zero. */
typedef struct index_position {
    uint64_t section, done, hash;
} index_position;

typedef enum index_state { INDEX_MORE, INDEX_SOUND, INDEX_DAMAGED } index_state;

/* Compares some more bytes of the index file of a store. A store without an index is sound. */
index_state index_check(const store *s, index_position *at, uint64_t bytes);

/* Notes in the index that the log is unchanged, so that it need not be compared again. */
void index_confirm(const store *s, const char *path, const log_file *file);

/*
 * Writes the index; p holds the fingerprints of the log up to at. Returns false without a message on failure, or if
 * *stopping becomes true.
 */
bool index_write(const store *s, const drawing *d, bool inferred, const char *path, const log_file *file, uint64_t at,
                 const prints *p, const atomic_bool *stopping);

/* Removes the index from both places. */
void index_remove(const char *path);

#endif
