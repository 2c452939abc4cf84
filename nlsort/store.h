/*
 * Items in memory: added one by one, sorted together, read back in order. Its size is bounded by the caller, who asks
 * after each one how much is used.
 */
#ifndef NLSORT_STORE_H
#define NLSORT_STORE_H

#include "item.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct store store;

store *store_new(void);
void store_free(store *s);

/* Copies an item; its prefix and the rest of its key are taken from key[0..key_size). */
void store_add(store *s, const char *key, size_t key_size, const char *line, size_t line_size);

/* Bytes of memory that it takes now and while it is being sorted. */
size_t store_memory(const store *s);

size_t store_count(const store *s);

/* Orders the items; equal ones stay in the order in which they came. Uses two threads when there is much to do. */
void store_sort(store *s);

/* Item i, its bytes the store's own. */
item store_get(const store *s, size_t i);

/* Forgets all items, keeping some memory for the next ones. */
void store_clear(store *s);

#endif
