/*
 * Finds, verifies and writes the index (index.h) if the model has only one log. The module owns the state of this work.
 * The loader calls this module.
 */
#ifndef NLV_INDEX_KEEPER_H
#define NLV_INDEX_KEEPER_H

#include "model/index.h"
#include "model/source.h"

typedef struct index_keeper index_keeper;

/* Returns an index keeper. bytes_min is the size in bytes of the smallest text log for which nlv writes an index; 0:
 * the default size. */
index_keeper *index_keeper_new(uint64_t bytes_min);
void index_keeper_free(index_keeper *k);

/* Returns whether a log is large enough for an index. The log must be one file that is not compressed. */
bool index_keeper_wants(const index_keeper *k, const source *s);

/*
 * Looks for the index of a log, once after each index_keeper_reset. `s` is NULL if the log cannot have an index.
 * `wanted` is the drawing, or NULL if the drawing is inferred. If `waits` is true, nlv verifies the index later, while
 * it already shows the log. Returns whether there is an index.
 */
bool index_keeper_open(index_keeper *k, const source *s, const drawing *wanted, bool waits, index_found *found);

/* Resets the state. Call the function before filling the store again. If `tries` is true, the store may come from an
 * index. */
void index_keeper_reset(index_keeper *k, bool tries);

/* Makes index_keeper_open return false until the next reset. Call the function if the store does not come from an
 * index. */
void index_keeper_pause(index_keeper *k);

bool index_keeper_has_written(const index_keeper *k);
bool index_keeper_is_verifying(const index_keeper *k);

typedef enum index_verdict {
    INDEX_KEEPER_DONE,
    INDEX_KEEPER_MORE,    /* verification is incomplete; call the function again */
    INDEX_KEEPER_DAMAGED, /* the index is damaged; read the log again */
    INDEX_KEEPER_CHANGED, /* the log was changed; read the log again */
} index_verdict;

/* Compares the next part of an index with its checksums or, after the last part, the next part of the log with its
 * fingerprints. If `waits` is true, does nothing in the first second after the index was opened, and returns
 * INDEX_KEEPER_DONE. */
index_verdict index_keeper_verify(index_keeper *k, const store *s, const source *log, bool waits);

/* Removes the index file of a log, and resets the state. */
void index_keeper_discard(index_keeper *k, source *log);

/* Writes the index if the log has grown enough since the last index. */
void index_keeper_write(index_keeper *k, const store *s, const drawing *d, bool is_inferred, source *log,
                        const atomic_bool *stopping);

#endif
