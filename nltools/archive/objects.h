/*
 * Defines the lifelines in a database: the ID fields that identify requests or other objects, and the SQL views `steps`
 * and `lifelines`. The ID fields come from --id, or the module infers them from the first records. Not thread-safe.
 */
#ifndef NLTOOLS_ARCHIVE_OBJECTS_H
#define NLTOOLS_ARCHIVE_OBJECTS_H

#include "archive/store.h"

typedef struct objects objects;

/* Returns a new object. `ids` contains lists of the form FIELD,FIELD, and must outlive the object. */
objects *objects_new(char **ids, size_t count);
void objects_free(objects *l);

/* Returns whether ids is a valid list of fields. */
bool objects_are_fields(const char *ids);

/* Examines a loaded record to infer ID fields. */
void objects_see(objects *l, const nl_record *record);

/*
 * Adds the ID fields from --id to the database, and replaces the views. If there is no --id and the database has no ID
 * fields, adds the inferred ID fields.
 */
nl_status objects_define(objects *l, store *s);

#endif
