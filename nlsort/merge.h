/* Merges sorted streams of items. Equal items keep the order of their streams. Not thread-safe. */
#ifndef NLSORT_MERGE_H
#define NLSORT_MERGE_H

#include "item.h"

#include <stdbool.h>
#include <stddef.h>

/* A sorted stream of items. It is the first member of each specific stream type. */
typedef struct stream {
    /* Returns the next item, valid until the next call, or false at the end. Ends the program on an error. */
    bool (*next)(struct stream *s, item *out);
    void (*close)(struct stream *s);
} stream;

typedef struct merge merge;

/* Makes a merge. Takes ownership of the streams, but not of the array. */
merge *merge_new(stream **streams, size_t count);

/* Returns the next item, which is valid until the next call. Returns false at the end. */
bool merge_next(merge *m, item *out);

void merge_free(merge *m);

#endif
