/*
 * Merges sorted inputs. Equal items keep the order of their inputs. Only one thread at a time may use a
 * merge.
 */
#ifndef NLSORT_MERGE_H
#define NLSORT_MERGE_H

#include "item.h"

#include <stdbool.h>
#include <stddef.h>

/* A sorted sequence of items. Each type of input begins with this struct. */
typedef struct merge_input {
    /*
     * Sets *out to the next item, which is valid until the next call. Returns false at the end. Ends the program on an
     * error.
     */
    bool (*next)(struct merge_input *s, item *out);
    void (*close)(struct merge_input *s);
} merge_input;

typedef struct merge merge;

/* Creates a merge, which the caller frees. The merge owns the inputs, but not the array. */
merge *merge_new(merge_input **inputs, size_t count);

/* Sets *out to the next item, which is valid until the next call. Returns false at the end. */
bool merge_next(merge *m, item *out);

void merge_free(merge *m);

#endif
