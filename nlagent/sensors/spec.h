/*
 * A sensor as consumers name it: its name, and what it is to look at.
 *
 *   cpu
 *   ping?host=dpss1.lbl.gov
 *   processes?match=nlsort&files=yes
 *
 * %20 and its like are decoded in values. The same sensor named in another order of arguments is the same: the
 * canonical text has them by name.
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
 * Reads one. A name is letters, digits, '-', '_' and '.'; a value any bytes but NUL and control characters. NULL on
 * failure. To be freed with spec_free.
 */
sensor_spec *spec_parse(const char *text);
void spec_free(sensor_spec *spec); /* NULL is allowed */

/* NULL when it was not given. */
const char *spec_argument(const sensor_spec *spec, const char *name);

/* A whole number within bounds; otherwise when it was not given. Returns false when it is invalid. */
bool spec_number(const sensor_spec *spec, const char *name, long least, long most, long otherwise, long *value);

/* The first argument whose name is not among names, each of which stands between blanks; NULL when all are. */
const char *spec_unknown(const sensor_spec *spec, const char *names);

#endif
