/*
 * Lifelines in an archive: the fields that name objects, by which its views tell each object's steps and its life. They
 * are said, or found out from the first records that are loaded.
 */
#ifndef NLTOOLS_ARCHIVE_OBJECTS_H
#define NLTOOLS_ARCHIVE_OBJECTS_H

#include "archive/store.h"

typedef struct objects objects;

/* ids: FIELD,FIELD... each, count of them. */
objects *objects_new(char **ids, size_t count);
void objects_free(objects *l);

/* Whether that can be such a list. */
bool objects_are_fields(const char *ids);

/* Shows a record that is loaded. */
void objects_see(objects *l, const nl_record *record);

/* Makes the views anew, of those that the archive knows and those that were said, or, when there are none, found. */
nl_status objects_define(objects *l, store *s);

#endif
