/* Numbers as people read them. */
#ifndef NETLOGGER_PROGRAM_UNITS_H
#define NETLOGGER_PROGRAM_UNITS_H

enum { UNITS_SIZE = 32 };

/* A time in the unit that suits it. out has at least UNITS_SIZE bytes; returns it. */
const char *units_time(double ns, char out[UNITS_SIZE]);

/* A number with the prefix that suits it: 12.3 M. Likewise. */
const char *units_quantity(double value, char out[UNITS_SIZE]);

#endif
