/*
 * Finds, verifies and writes the index of the only log (index.h). The module owns the state of this work. Caller: the
 * loader.
 */
#ifndef NLV_INDEX_KEEPER_H
#define NLV_INDEX_KEEPER_H

#include "model/index.h"
#include "model/source.h"

typedef struct index_keeper index_keeper;

/* bytes_min is the size of the smallest text log that gets an index; 0: the default. */
index_keeper *index_keeper_new(uint64_t bytes_min);
void index_keeper_free(index_keeper *k);

/* Returns whether a log, which is not compressed and is one file, is large enough for an index. */
bool index_keeper_wants(const index_keeper *k, const source *s);

/*
 * Looks for the index of a log, once after each index_keeper_reset. s is NULL if the log has none. wanted is the
 * drawing; NULL: an inferred one. waits: a large index is verified later, while nlv shows a picture of it.
 */
bool index_keeper_open(index_keeper *k, const source *s, const drawing *wanted, bool waits, index_found *found);

/* Call it when the store is filled again. tries: an index may be used for it. */
void index_keeper_reset(index_keeper *k, bool tries);

/* The store on the screen is not the one of an index, until the next reset. */
void index_keeper_pause(index_keeper *k);

bool index_keeper_has_written(const index_keeper *k);
bool index_keeper_is_verifying(const index_keeper *k);

typedef enum index_verdict {
    INDEX_KEEPER_DONE,
    INDEX_KEEPER_MORE,    /* call again */
    INDEX_KEEPER_DAMAGED, /* the index is damaged, or, */
    INDEX_KEEPER_CHANGED, /* the log was changed: read the log again */
} index_verdict;

/* Compares a further part of an index with its checksums, and of the log with its fingerprints. */
index_verdict index_keeper_verify(index_keeper *k, const store *s, const source *log, bool waits);

/* Removes the index of a log. */
void index_keeper_discard(index_keeper *k, source *log);

/* Writes the index, if the log has grown by enough since the last time. */
void index_keeper_write(index_keeper *k, const store *s, const drawing *d, bool is_inferred, source *log,
                        const atomic_bool *stopping);

#endif
