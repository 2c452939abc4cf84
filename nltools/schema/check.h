/* nlschema check: compares logs with a schema. Not thread-safe. */
#ifndef NLTOOLS_SCHEMA_CHECK_H
#define NLTOOLS_SCHEMA_CHECK_H

#include "schema.h"

typedef struct schema_check schema_check;

/* Returns a new check against the schema s, which must outlive the check. If `strict` is true, unknown events are also
 * deviations. */
schema_check *schema_check_new(const schema *s, bool strict);
void schema_check_free(schema_check *c);

/*
 * Checks a record. `source` is the name of the record's log, and `number` is the record's position in the log, from 1.
 */
void schema_check_record(schema_check *c, const nl_record *record, const char *source, uint64_t number);

/* Returns the number of deviations so far. */
uint64_t schema_check_deviations(const schema_check *c);

/* Appends the first deviations of each kind, and the number of deviations. */
void schema_check_report(const schema_check *c, GString *out);

/* Returns the report as JSON. The caller frees it with json_object_put. */
json_object *schema_check_report_json(const schema_check *c);

#endif
