/* Numbers in order: what those that look at distributions share. */
#ifndef NLDIAG_NUMBERS_H
#define NLDIAG_NUMBERS_H

#include <stddef.h>

/* For sorting: of int64_t, and of double. */
int compare_ns(const void *a, const void *b);
int compare_doubles(const void *a, const void *b);

/* Of at least one; puts them in order. */
double median(double *values, size_t count);

/* What at least one differ by, as a standard deviation: by the median of what they are from their middle, which few
 * that are far off do not move. Overwrites them. */
double spread_around(double *values, size_t count, double middle);

#endif
