/*
 * Memory by the many megabytes: asked of the kernel in its large pages, which halves what touching it for the first
 * time and jumping about in it cost, and given back to it at once.
 */
#ifndef NLSORT_BIG_H
#define NLSORT_BIG_H

#include <stdbool.h>
#include <stddef.h>

/* Room for size bytes, which takes memory only where it is used. It ends the program when there is none. */
void *big_new(size_t size);

/* Makes room of was bytes one of size bytes; what is in it stays, perhaps elsewhere. was 0: there is none yet. */
void *big_resize(void *data, size_t was, size_t size);

void big_free(void *data, size_t size);

#endif
