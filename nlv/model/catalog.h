/*
 * The events of the logs and their fields, for the editor. It comes from a sample: the first records of every event,
 * and records from all parts of the logs.
 */
#ifndef NLV_CATALOG_H
#define NLV_CATALOG_H

#include "model/model.h"

typedef struct catalog_field {
    char *name;
    bool is_number; /* in all records of the sample */
} catalog_field;

typedef struct catalog_event {
    char *name;
    GArray *fields; /* catalog_field, by name */
} catalog_event;

typedef struct catalog {
    GArray *events; /* catalog_event, by name */
} catalog;

/* Takes the sample. The model is locked. */
catalog *catalog_new(const model *m);
void catalog_free(catalog *c);

/* Returns the fields of one event, or of all events (NULL), by name; NULL at the end; to be freed with g_strfreev. */
char **catalog_fields(const catalog *c, const char *event, bool numbers_only);

#endif
