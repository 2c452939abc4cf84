/*
 * The fields that an option names, but no record has; their names are probably misspelled. If no record or request
 * matches, programs add these names to the message.
 *
 * Only one thread at a time may use an absent_fields.
 */
#ifndef NETLOGGER_PROGRAM_ABSENT_FIELDS_H
#define NETLOGGER_PROGRAM_ABSENT_FIELDS_H

#include <netlogger.h>

typedef struct absent_fields absent_fields;

absent_fields *absent_fields_new(void);
void absent_fields_free(absent_fields *a); /* NULL is allowed */

/* Adds a field. */
void absent_fields_add_name(absent_fields *a, nl_string name);

/* Adds the fields of a filter, except standard fields, which every record may have. */
void absent_fields_add(absent_fields *a, const nl_filter *filter);

/* Removes the fields that a record has. */
void absent_fields_look(absent_fields *a, const nl_record *record);

/*
 * Returns the end of a message, such as "; no record has the field SIEZ", which the caller frees with free. The text is
 * empty if there are no such fields or if `a` is NULL.
 */
char *absent_fields_describe(const absent_fields *a);

#endif
