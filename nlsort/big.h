/*
 * Large memory blocks in huge pages, which halve the cost of first use and of random access. Freed blocks return to the
 * kernel at once. Thread-safe.
 */
#ifndef NLSORT_BIG_H
#define NLSORT_BIG_H

#include <stdbool.h>
#include <stddef.h>

/* Returns `size` bytes. Only the pages that are touched use memory. Ends the program if memory runs out. */
void *big_new(size_t size);

/*
 * Changes the size of a block from `was` to `size` bytes. Returns the block, which may have moved. If `was` is 0,
 * ignores `data`.
 */
void *big_resize(void *data, size_t was, size_t size);

void big_free(void *data, size_t size);

#endif
