/*
 * The state of a load: the store, the known source positions (store_place) and streams, and the current transaction.
 * Not thread-safe.
 */
#ifndef NLTOOLS_ARCHIVE_LOADER_H
#define NLTOOLS_ARCHIVE_LOADER_H

#include "archive/objects.h"
#include "archive/store.h"
#include "base/error.h"

/* The latest reported error of a source. */
typedef struct trouble {
    char *source;
    nl_error_code code;
} trouble;

typedef struct loader {
    store *store;
    program_reading *reading;
    const nl_filter *where;
    store_place *places;
    size_t place_count;
    nl_streams *streams;          /* the sequence numbers of all loaded records */
    unsigned char (*touched)[16]; /* streams that changed since the latest commit */
    size_t touched_count, touched_capacity;
    row_maker maker;
    objects *objects;
    store_place *open; /* the place of the current transaction, or NULL */
    uint64_t in_batch; /* number of records in the transaction */
    uint64_t records;  /* number of committed records */
    struct trouble *troubles;
    size_t trouble_count;
    bool quiet;  /* do not report incomplete records */
    bool failed; /* the store has failed, and the error was reported */
} loader;

/* Returns a loader with the source positions and streams of a store. On failure, reports the error and returns NULL. */
loader *loader_new(store *s, program_reading *reading, const nl_filter *where, objects *lines);
void loader_free(loader *l);

/* loader_trouble prints this thread's error, which concerns a source. It prints errors with the same code only once,
 * until loader_is_well is called for the source. */
void loader_trouble(loader *l, const char *source);
void loader_is_well(loader *l, const char *source);

/* Reports the store's error and ends the load. Returns false. */
bool loader_fail(loader *l);

/* Adds a source position for a copy of `name`. The returned position is valid until the next call. */
store_place *loader_add_place(loader *l, const char *name);

/* Returns a decoder that skips records that an earlier load has stored. The caller frees the decoder. */
nl_decoder *loader_decoder(loader *l, const char *name);

/*
 * Stores a record if it matches the filter. Reports and skips a record that is too large. If the store fails, reports
 * the error and returns false.
 */
bool loader_put(loader *l, store_place *place, const nl_record *record);

/* Returns whether the transaction is large enough to commit. */
bool loader_is_full(const loader *l);

/* Commits the records and the position of `place`. On failure, reports the error and returns false. */
bool loader_commit(loader *l, store_place *place);

#endif
