/*
 * Manages collections, which the Collect operation starts. A collection gets records from other agents' sensors and
 * sends them to a collector. Each collection is a process, "nlagent collect". nlagentd restarts a collection that fails
 * in the same way as a sensor. Not thread-safe.
 */
#ifndef NLAGENT_COLLECTIONS_H
#define NLAGENT_COLLECTIONS_H

#include "agent/agent.h"

typedef struct collections collections;

/* The arguments of the Collect operation. The lists are NULL-terminated. */
typedef struct collection_options {
    const char *hosts; /* expression that selects hosts in the directory; NULL: do not search */
    const char **agents;
    const char **sensors;
    const char *interval;    /* NULL: the default */
    const char *where;       /* NULL: all records */
    const char *destination; /* a collector's URL */
} collection_options;

/* Returns an empty set of collections. `directory` is the URL to pass to "nlagent collect --directory", or NULL. Copies
 * the URL. */
collections *collections_new(agent *a, const char *directory);
void collections_free(collections *c);

/* Returns the path of nlagent, which runs collections. The caller frees the path. */
char *collections_client_path(void);

/* Starts a collection. Returns the collection's name, which is valid until the collection ends, or NULL on failure. */
const char *collections_start(collections *c, const collection_options *o);

/* Ends a collection. Returns false if the name is unknown. */
bool collections_end(collections *c, const char *name);

#endif
