/*
 * The store of all records, kept while a filter is shown: removing the filter, or filtering by event, host or program,
 * then needs no reading. It is valid as long as the sources have no records that it lacks. Caller: the loader.
 */
#ifndef NLV_FULL_STORE_H
#define NLV_FULL_STORE_H

#include "model/source.h"
#include "model/store.h"

typedef struct full_store full_store;

full_store *full_store_new(void);
void full_store_free(full_store *f, const store *shown);

/* Keeps the store that is shown, which has all records of the sources (source *) that have been read. */
void full_store_keep(full_store *f, store *shown, const GPtrArray *sources);

/* Returns the store; NULL if none is kept. */
store *full_store_get(const full_store *f);

/* Tells the sources that all records of the store were read. */
void full_store_skip(const full_store *f, const GPtrArray *sources);

/* Returns whether a source was read further than the store. */
bool full_store_is_behind(const full_store *f, const GPtrArray *sources);

/* Forgets the store, and frees it unless it is the one that is shown. */
void full_store_forget(full_store *f, const store *shown);

#endif
