/*
 * Parses the specification of a sensor: its name and arguments.
 *
 *   cpu
 *   ping?host=dpss1.lbl.gov
 *   processes?match=nlsort&files=yes
 *
 * Values may contain %XX. The order of the arguments does not matter, because the canonical text contains them in
 * sorted order. Thread-safe.
 */
#ifndef NLAGENT_SPEC_H
#define NLAGENT_SPEC_H

#include <stdbool.h>
#include <stddef.h>

enum { SPEC_SIZE_MAX = 1024, SPEC_ARGUMENTS_MAX = 16 };

typedef struct sensor_argument {
    char *name, *value;
} sensor_argument;

typedef struct sensor_spec {
    char *name;
    char *text; /* the canonical text */
    sensor_argument arguments[SPEC_ARGUMENTS_MAX];
    size_t count;
} sensor_spec;

/*
 * Parses a specification. A name consists of letters, digits, '-', '_' and '.'. A value may contain any bytes except
 * control characters. The caller frees the result. Returns NULL on failure.
 */
sensor_spec *spec_parse(const char *text);
void spec_free(sensor_spec *spec); /* spec may be NULL */

/* Returns an argument's value, or NULL. */
const char *spec_argument(const sensor_spec *spec, const char *name);

/* Sets *value to an integer argument from `min` to `max`, or to `initial` if the argument is missing. Returns false if
 * the argument is invalid. */
bool spec_number(const sensor_spec *spec, const char *name, long min, long max, long initial, long *value);

/* Returns the name of the first argument that is not in `names`, or NULL. In `names`, a blank is before and after each
 * name. */
const char *spec_unknown(const sensor_spec *spec, const char *names);

/* Returns whether the specification has the argument that its sensor requires. If not, sets the error, which contains
 * `required`. `required` is a text such as "host=NAME", or NULL if the sensor requires no argument. */
bool spec_has_required(const sensor_spec *spec, const char *required);

#endif
