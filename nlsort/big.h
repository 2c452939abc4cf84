/*
 * Allocates large memory blocks in huge pages, which halve the cost of first use and of random access. The kernel gets
 * freed blocks back immediately. Any thread may call these functions.
 */
#ifndef NLSORT_BIG_H
#define NLSORT_BIG_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns a block of `size` bytes. Only pages that the program has accessed use memory. Ends the program if memory runs
 * out.
 */
void *big_new(size_t size);

/*
 * Changes the size of a block from `was` to `size` bytes. Returns the block, whose address may have changed. If `was`
 * is 0, ignores `data` and allocates a new block.
 */
void *big_resize(void *data, size_t was, size_t size);

void big_free(void *data, size_t size);

#endif
