/*
 * Finds the units in which programs log times. For example, all times of a program are whole seconds. Memory is
 * bounded. Not thread-safe.
 */
#ifndef NLDIAG_TIME_UNITS_H
#define NLDIAG_TIME_UNITS_H

#include <netlogger.h>

typedef struct time_units time_units;

time_units *time_units_new(void);
void time_units_free(time_units *t);

/* Learns from a record, whose time must be the time that the program has logged. */
void time_units_add(time_units *t, const nl_record *record);

/* Returns the unit of a program's times in nanoseconds: from a minute down to a millisecond. Returns 0 for shorter
 * units. */
double time_units_find(const time_units *t, const char *program);

#endif
