/*
 * Sorts items by a number, such as visits by time, with a radix sort, which is faster than qsort. Thread-safe.
 */
#ifndef NLDIAG_KEYED_SORT_H
#define NLDIAG_KEYED_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct keyed {
    int64_t key;
    uint32_t index;
} keyed;

/* Sorts in ascending order of keys. The sort is stable. */
void keyed_sort(keyed *items, size_t count);

/* Returns a key that is in the same order as the doubles. `value` must not be NAN. */
int64_t key_of_double(double value);

/* Sorts doubles, none of which is NAN, in ascending order. */
void sort_doubles(double *values, size_t count);

/* Returns the median of doubles, none of which is NAN, or 0 if there are no values. Changes the order of the values,
 * but is faster than sort_doubles. */
double select_median(double *values, size_t count);

#endif
