/*
 * Items in memory: added one by one, sorted together, read in order. The caller limits the memory by store_memory. One
 * thread.
 */
#ifndef NLSORT_STORE_H
#define NLSORT_STORE_H

#include "item.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct store store;

store *store_new(void);
void store_free(store *s);

/* Adds a copy of an item. */
void store_add(store *s, const char *key, size_t key_size, const char *line, size_t line_size);

/* Returns the bytes of memory, including those for sorting. */
size_t store_memory(const store *s);

size_t store_count(const store *s);

/* Sorts the items; the sort is stable. Uses two threads for many items. */
void store_sort(store *s);

/* Returns item i, a view. */
item store_get(const store *s, size_t i);

/* Removes all items; keeps some memory. */
void store_clear(store *s);

#endif
