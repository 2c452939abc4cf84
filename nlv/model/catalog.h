/*
 * What there is to be drawn: the events of the logs with the fields that their records have, as far as some of the
 * records tell it, evenly chosen, with the first few of every event.
 */
#ifndef NLV_CATALOG_H
#define NLV_CATALOG_H

#include "model/model.h"

typedef struct catalog_field {
    char *name;
    bool is_number; /* in all records that were looked at */
} catalog_field;

typedef struct catalog_event {
    char *name;
    GArray *fields; /* catalog_field, by name */
} catalog_event;

typedef struct catalog {
    GArray *events; /* catalog_event, by name */
} catalog;

/* Of what the model has by now. The model is locked. */
catalog *catalog_new(const model *m);
void catalog_free(catalog *c);

/* The names of all fields of all events, or of the numeric ones, of one event (NULL: all): by name, NULL at the end, to
 * be freed with g_strfreev. */
char **catalog_fields(const catalog *c, const char *event, bool numbers_only);

#endif
