/*
 * Sorts numbers that belong to indices, such as the times of visits, faster than qsort: a radix sort, which compares no
 * pairs. Thread-safe.
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
