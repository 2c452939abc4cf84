/* nlschema check: whether a log is what a schema says. Uses GLib; one thread. */
#ifndef NLTOOLS_SCHEMA_CHECK_H
#define NLTOOLS_SCHEMA_CHECK_H

#include "schema.h"

typedef struct schema_check schema_check;

/* A check against s, which it borrows; freed with schema_check_free. strict: an unknown event is a deviation too. */
schema_check *schema_check_new(const schema *s, bool strict);
void schema_check_free(schema_check *c);

/* Looks at a record, which is number (from 1) in the log source. */
void schema_check_record(schema_check *c, const nl_record *record, const char *source, uint64_t number);

/* How many deviations there were so far. */
uint64_t schema_check_deviations(const schema_check *c);

/* Adds to out what was found: the first of each kind, and how many there are of each. */
void schema_check_report(const schema_check *c, GString *out);

/* The same as JSON, for json_object_put. */
json_object *schema_check_report_json(const schema_check *c);

#endif
