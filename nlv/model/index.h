/*
 * Saves the store of a large log, so that the log opens quickly the next time. The file is beside the log
 * (LOG.nlv-index) or in $XDG_CACHE_HOME/netlogger. nlv maps the file, so the kernel reads only the pages that nlv
 * needs. The data for a picture of the whole log is at the start of the file.
 *
 * An index is valid if the log has only grown, or not changed, since the index was written. nlv assumes that a log with
 * the same size and times is unchanged. For other logs, nlv compares the ends of the log and some parts with
 * fingerprints when it opens the log, and all other parts later (prints.h). nlv reads the log again if the log has
 * changed, or if the index is damaged or has another version. nlv writes the index under a temporary name and then
 * renames it.
 */
#ifndef NLV_INDEX_H
#define NLV_INDEX_H

#include "requests/drawing.h"
#include "model/log_file.h"
#include "model/prints.h"
#include "model/store.h"

#include <stdatomic.h>

/* An index that was read. The caller owns all members. */
typedef struct index_found {
    store *store; /* the store's records have file number 0 */
    drawing *drawing;
    uint64_t at;    /* number of bytes of the log that the index covers */
    prints prints;  /* fingerprints of these bytes */
    GArray *blocks; /* log_block: the blocks in these bytes, if the log is binary */
    bool is_sure;   /* the log is certainly unchanged; otherwise, the caller must compare the fingerprints */
} index_found;

/*
 * Reads the index of the log at `path`. If `wanted` is not NULL, the index must have this drawing; otherwise, it must
 * have an inferred drawing. Returns false if no valid index exists.
 */
bool index_read(const char *path, const log_file *file, const drawing *wanted, index_found *found);

/* The position up to which index_check has compared an index with its checksums. Initially all zero. */
typedef struct index_position {
    uint64_t section, done, hash;
} index_position;

typedef enum index_state { INDEX_MORE, INDEX_SOUND, INDEX_DAMAGED } index_state;

/* Compares about `bytes` more bytes of a store's index file with their checksums. A store without an index is always
 * valid. */
index_state index_check(const store *s, index_position *at, uint64_t bytes);

/* Stores the log's current size and times in the index, so that nlv need not compare the log again. */
void index_confirm(const store *s, const char *path, const log_file *file);

/* Writes the index. `p` contains the fingerprints of the log up to offset `at`. Returns false on failure, if *stopping
 * becomes true, or if the store is empty or has dropped records. Prints no message. */
bool index_write(const store *s, const drawing *d, bool inferred, const char *path, const log_file *file, uint64_t at,
                 const prints *p, const atomic_bool *stopping);

/* Removes the index from both directories. */
void index_remove(const char *path);

#endif
