/*
 * The units of fields, from schemas (nlschema(1)) and from the documentation of the sensors (doc/sensors.md).
 *
 * Reads the files *.schema in netlogger/schemas in the user's and the system's data directories, and in the directory
 * of the installation. If several schemas give different units for a field of an event, uses none of them.
 */
#ifndef NETLOGGER_REQUESTS_FIELD_UNITS_H
#define NETLOGGER_REQUESTS_FIELD_UNITS_H

typedef struct field_units field_units;

/* Reads all schemas. Ignores files that are invalid, which nlschema reports. */
field_units *field_units_new(void);
void field_units_free(field_units *u);

/* Returns the unit of an event's field, or NULL if no schema declares the field. The result is "" if a schema declares
 * that it has no unit. `u` owns the result. */
const char *field_units_find(const field_units *u, const char *event, const char *field);

/* A row of the documentation of the sensors; common/local.mk generates the rows. The last row has no event. */
typedef struct sensor_unit {
    const char *event, *field, *unit;
} sensor_unit;
extern const sensor_unit sensor_units[];

#endif
