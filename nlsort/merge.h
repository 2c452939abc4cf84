/*
 * Merges sorted streams of items. Equal items keep the order of their streams. Only one thread at a time may use a
 * merge.
 */
#ifndef NLSORT_MERGE_H
#define NLSORT_MERGE_H

#include "item.h"

#include <stdbool.h>
#include <stddef.h>

/* A sorted stream of items. Each type of stream begins with this struct. */
typedef struct stream {
    /*
     * Sets *out to the next item, which is valid until the next call. Returns false at the end. Ends the program on an
     * error.
     */
    bool (*next)(struct stream *s, item *out);
    void (*close)(struct stream *s);
} stream;

typedef struct merge merge;

/* Creates a merge, which the caller frees. The merge owns the streams, but not the array. */
merge *merge_new(stream **streams, size_t count);

/* Sets *out to the next item, which is valid until the next call. Returns false at the end. */
bool merge_next(merge *m, item *out);

void merge_free(merge *m);

#endif
