/*
 * Lists the events of the logs and their fields, for the editor. The list comes from a sample: the first records of
 * each event, and records from all parts of the logs.
 */
#ifndef NLV_CATALOG_H
#define NLV_CATALOG_H

#include "model/model.h"

typedef struct catalog_field {
    char *name;
    bool is_number; /* the field is a number in all records of the sample */
} catalog_field;

typedef struct catalog_event {
    char *name;
    GArray *fields; /* catalog_field, sorted by name */
} catalog_event;

typedef struct catalog {
    GArray *events; /* catalog_event, sorted by name */
} catalog;

/* Reads the sample and returns the catalog. The caller holds the model's lock. */
catalog *catalog_new(const model *m);
void catalog_free(catalog *c);

/*
 * Returns the names of the fields of one event, or of all events if `event` is NULL. If numbers_only is true, returns
 * only fields that are numbers. The array is sorted and NULL-terminated. The caller frees it with g_strfreev.
 */
char **catalog_fields(const catalog *c, const char *event, bool numbers_only);

#endif
