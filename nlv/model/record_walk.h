/*
 * Reads the records of a source one by one, in the order of the log, with the time and the place of each record. A walk
 * continues when the source has grown. Only request_reading.c calls this module, in the loader's thread.
 */
#ifndef NLV_RECORD_WALK_H
#define NLV_RECORD_WALK_H

#include "model/source.h"

typedef struct record_walk record_walk;

/* Returns a walk that begins at the first record that is still available. The source must outlive the walk. */
record_walk *record_walk_new(const source *s);
void record_walk_free(record_walk *w);

/*
 * Returns the next record, or NULL if the loader has read no further record yet. The record is valid until the next
 * call. Sets *place to the record's place (batch.h).
 */
const nl_record *record_walk_next(record_walk *w, uint64_t *place);

/* Returns the number of bytes of the logs that the walk has read. */
uint64_t record_walk_bytes(const record_walk *w);

#endif
