/* What loading has at hand, whatever the source: the store, what is known, and records into rows. */
#ifndef NLTOOLS_ARCHIVE_LOADER_H
#define NLTOOLS_ARCHIVE_LOADER_H

#include "archive/objects.h"
#include "archive/store.h"

/* What went wrong with a source, as it was said. */
typedef struct trouble {
    char *source, *message;
} trouble;

typedef struct loader {
    store *store;
    program_reading *reading;
    const nl_filter *where;
    store_place *places;
    size_t place_count;
    nl_streams *streams;          /* of all that was ever loaded */
    unsigned char (*touched)[16]; /* streams that went on since the latest commit */
    size_t touched_count, touched_capacity;
    row_maker maker;
    objects *objects;
    store_place *open; /* the place of the transaction that is under way; NULL: none is */
    uint64_t in_batch; /* records in it */
    uint64_t records;  /* committed */
    struct trouble *troubles;
    size_t trouble_count;
    bool quiet;  /* say nothing of what is not whole yet */
    bool failed; /* the store did, and said why: nothing more can be loaded */
} loader;

/* Reads what the archive knows. NULL after having said why. */
loader *loader_new(store *s, program_reading *reading, const nl_filter *where, objects *lines);
void loader_free(loader *l);

/*
 * Says what went wrong with a source. A load that follows looks again and again: the same is said once, until
 * loader_is_well has been told that the source can be read.
 */
void loader_trouble(loader *l, const char *source, const char *format, ...) NL_PRINTF(3, 4);
void loader_is_well(loader *l, const char *source);

/* Says that the store failed, which is why nothing more can be loaded. Returns false. */
bool loader_fail(loader *l);

/* A new place; its name is copied. Places stay where they are until the next is added. */
store_place *loader_add_place(loader *l, const char *name);

/* A decoder for what is loaded, that knows what was loaded before. */
nl_decoder *loader_decoder(loader *l, const char *name);

/* Puts a record of that place. False when the store has failed, which was said. */
bool loader_put(loader *l, store_place *place, const nl_record *record);

/* Whether so much waits that it should be committed. */
bool loader_is_full(const loader *l);

/* Commits what was put, and how far place was read. False, after having said why, when it is not there. */
bool loader_commit(loader *l, store_place *place);

#endif
