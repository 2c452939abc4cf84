/* Sorts numbers. */
#ifndef NLDIAG_NUMBERS_H
#define NLDIAG_NUMBERS_H

#include <stddef.h>

/* Compare int64_t or double for qsort. */
int compare_ns(const void *a, const void *b);
int compare_doubles(const void *a, const void *b);

/* Returns the median of at least one value. Sorts the values. */
double median(double *values, size_t count);

/*
 * Returns the spread of at least one value around the middle as a standard deviation, from the median of the
 * deviations, which is robust against outliers. Overwrites the values.
 */
double spread_around(double *values, size_t count, double middle);

#endif
