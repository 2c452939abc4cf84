/* Formats numbers for people to read. Any thread may call these functions. */
#ifndef NETLOGGER_PROGRAM_UNITS_H
#define NETLOGGER_PROGRAM_UNITS_H

enum { UNITS_SIZE = 32 };

/* Writes a duration with a suitable unit. Returns `out`. */
const char *units_time(double ns, char out[UNITS_SIZE]);

/* Writes a number with a suitable prefix, such as 12.3 M. Returns `out`. */
const char *units_quantity(double value, char out[UNITS_SIZE]);

/* Writes a number with a suitable prefix and the unit, such as 12.3 MB or 5 B. Returns `out`. */
const char *units_amount(double value, const char *unit, char out[UNITS_SIZE]);

#endif
