/*
 * Lifelines in an archive: the ID fields of objects, from --id or inferred from the first records, and the views steps
 * and lifelines. One thread.
 */
#ifndef NLTOOLS_ARCHIVE_OBJECTS_H
#define NLTOOLS_ARCHIVE_OBJECTS_H

#include "archive/store.h"

typedef struct objects objects;

/* ids: lists such as FIELD,FIELD, which must outlive the result. */
objects *objects_new(char **ids, size_t count);
void objects_free(objects *l);

/* Returns whether a text is a valid list of fields. */
bool objects_are_fields(const char *ids);

/* Examines a loaded record. */
void objects_see(objects *l, const nl_record *record);

/* Replaces the views, with the ID fields of the archive or of --id, or with inferred ID fields. */
nl_status objects_define(objects *l, store *s);

#endif
