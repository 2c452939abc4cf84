/*
 * Finds sources that contain the same records, such as a log and its sorted copy. With both sources, requests would
 * seem to have each event twice.
 *
 * Two records are equal if their times, in microseconds, and all their values are equal. The module stores hashes of
 * the first source's records, and of later records that are new. If there are too many hashes, the module keeps only a
 * sample, for which it chooses the same records in all sources. The object owns its memory. Not thread-safe.
 */
#ifndef NLSTAT_REPEATED_SOURCES_H
#define NLSTAT_REPEATED_SOURCES_H

#include <netlogger.h>

typedef struct repeated_sources repeated_sources;

repeated_sources *repeated_sources_new(void);
void repeated_sources_free(repeated_sources *r); /* NULL is allowed */

/* Begins the next source. `name` must remain valid. */
void repeated_sources_begin(repeated_sources *r, const char *name);

/* Adds a record of the current source. */
void repeated_sources_add(repeated_sources *r, const nl_record *record);

/*
 * Returns a message if more than half of the records of the current source are also in an earlier source; otherwise,
 * NULL. The caller frees the message with free.
 */
char *repeated_sources_describe(const repeated_sources *r);

#endif
