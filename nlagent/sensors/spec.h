/*
 * The specification of a sensor: its name and arguments.
 *
 *   cpu
 *   ping?host=dpss1.lbl.gov
 *   processes?match=nlsort&files=yes
 *
 * Values may contain %XX. The order of arguments does not matter: the canonical text sorts them. Any thread.
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
    char *text; /* canonical */
    sensor_argument arguments[SPEC_ARGUMENTS_MAX];
    size_t count;
} sensor_spec;

/*
 * Parses a specification. A name consists of letters, digits, '-', '_' and '.'; a value of any bytes except control
 * characters. The caller frees the result. Returns NULL on failure.
 */
sensor_spec *spec_parse(const char *text);
void spec_free(sensor_spec *spec); /* NULL is allowed */

/* Returns an argument's value, or NULL. */
const char *spec_argument(const sensor_spec *spec, const char *name);

/* Reads an integer argument between min and max, or uses the initial value. Returns false if it is invalid. */
bool spec_number(const sensor_spec *spec, const char *name, long min, long max, long initial, long *value);

/* Returns the first argument that is not among names (each between blanks), or NULL. */
const char *spec_unknown(const sensor_spec *spec, const char *names);

#endif
