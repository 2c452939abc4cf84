/*
 * Items in memory. They are added one by one, sorted together and read in order. The caller limits the memory with
 * store_memory. Not thread-safe.
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

/* Returns the number of bytes of memory that are used, including the memory for sorting. */
size_t store_memory(const store *s);

size_t store_count(const store *s);

/* Sorts the items; the sort is stable. Uses two threads for many items. */
void store_sort(store *s);

/* Returns item i. The store owns its bytes. */
item store_get(const store *s, size_t i);

/* Removes all items, but keeps some memory. */
void store_clear(store *s);

#endif
