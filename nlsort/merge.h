/*
 * Merging: several streams of items, each in order, into one. Of equal items the one of the earlier stream comes first,
 * which keeps the whole sort stable.
 */
#ifndef NLSORT_MERGE_H
#define NLSORT_MERGE_H

#include "item.h"

#include <stdbool.h>
#include <stddef.h>

/* Something that gives items in order. Each kind's own structure begins with this. */
typedef struct stream {
    /* The next item, valid until the next call; false at the end. A failure ends the program with a message. */
    bool (*next)(struct stream *s, item *out);
    void (*close)(struct stream *s);
} stream;

typedef struct merge merge;

/* Takes over the streams (but not the array). */
merge *merge_new(stream **streams, size_t count);

/* The next item of all, valid until the next call; false at the end. */
bool merge_next(merge *m, item *out);

void merge_free(merge *m);

#endif
