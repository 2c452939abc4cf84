/*
 * Collections: what an agent was asked to gather from other agents, and to bring to a collector. Each is a process,
 * "nlagent collect", which is started again when it fails, as sensors are.
 */
#ifndef NLAGENT_COLLECTIONS_H
#define NLAGENT_COLLECTIONS_H

#include "agent/agent.h"

typedef struct collections collections;

collections *collections_new(agent *a);
void collections_free(collections *c);

/* What is wanted. Each list ends with NULL. */
typedef struct collection_wish {
    const char *hosts; /* an expression for the directory; NULL: none */
    const char **urls; /* agents */
    const char **sensors;
    const char *interval;    /* NULL: not said */
    const char *where;       /* NULL: all records */
    const char *destination; /* a log's URL */
} collection_wish;

/* The path of nlagent, which runs them; the caller frees it. */
char *collections_client_path(void);

/* Begins one. Returns its name, which lasts as long as it does; NULL on failure. */
const char *collections_begin(collections *c, const collection_wish *w);

/* Ends one. False when nothing of that name exists. */
bool collections_end(collections *c, const char *name);

/* What stands in for --directory in their commands; may be NULL. */
void collections_set_directory(collections *c, const char *url);

#endif
