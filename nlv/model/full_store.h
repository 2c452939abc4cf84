/*
 * Keeps the full store, which contains all records, while a filter is active. If the user removes the filter, or
 * replaces it with a filter on event, host or program, nlv need not read the logs again. The full store is valid until
 * the loader reads further records from the sources. The loader calls this module.
 */
#ifndef NLV_FULL_STORE_H
#define NLV_FULL_STORE_H

#include "model/source.h"
#include "model/store.h"

typedef struct full_store full_store;

full_store *full_store_new(void);
void full_store_free(full_store *f, const store *shown);

/* Keeps `shown`, the current store, which contains all records that have been read from the sources (source *). */
void full_store_keep(full_store *f, store *shown, const GPtrArray *sources);

/* Returns the full store, or NULL if the module does not keep a store. */
store *full_store_get(const full_store *f);

/* Makes the sources skip the records that the store contains. */
void full_store_skip(const full_store *f, const GPtrArray *sources);

/* Returns whether the loader has read records of a source that the store lacks. */
bool full_store_is_behind(const full_store *f, const GPtrArray *sources);

/* Discards the full store. Frees it unless it is the current store. */
void full_store_forget(full_store *f, const store *shown);

#endif
