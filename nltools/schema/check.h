/* nlschema check: compares logs with a schema. One thread. */
#ifndef NLTOOLS_SCHEMA_CHECK_H
#define NLTOOLS_SCHEMA_CHECK_H

#include "schema.h"

typedef struct schema_check schema_check;

/* Returns a new check against s, which must outlive it. strict: an unknown event is also a deviation. */
schema_check *schema_check_new(const schema *s, bool strict);
void schema_check_free(schema_check *c);

/* Checks the record with a number, from 1, of the log source. */
void schema_check_record(schema_check *c, const nl_record *record, const char *source, uint64_t number);

/* Returns the number of deviations so far. */
uint64_t schema_check_deviations(const schema_check *c);

/* Appends the first deviations of each kind, and their number. */
void schema_check_report(const schema_check *c, GString *out);

/* Returns the report as JSON. The caller frees it with json_object_put. */
json_object *schema_check_report_json(const schema_check *c);

#endif
