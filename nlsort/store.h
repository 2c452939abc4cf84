/*
 * Stores and sorts items in memory. The caller adds the items, sorts them, and reads them in order. The caller uses
 * store_memory to limit the memory. Only one thread at a time may use a store.
 */
#ifndef NLSORT_STORE_H
#define NLSORT_STORE_H

#include "item.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct store store;

store *store_new(void);
void store_free(store *s);

void store_add(store *s, const char *key, size_t key_size, const char *line, size_t line_size);

/* Returns the used memory in bytes, including the memory that sorting needs. */
size_t store_memory(const store *s);

size_t store_count(const store *s);

/* Sorts the items; the sort is stable. Uses two threads for many items. */
void store_sort(store *s);

/* Returns item i. The store owns the item's bytes. */
item store_get(const store *s, size_t i);

/* Removes all items, but keeps some memory for new items. */
void store_clear(store *s);

#endif
