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

/* Sorts in ascending order of keys. Items with equal keys remain in their order. */
void keyed_sort(keyed *items, size_t count);

#endif
