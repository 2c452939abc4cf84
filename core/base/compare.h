/* Comparison functions for qsort and g_array_sort. No state. */
#ifndef NETLOGGER_BASE_COMPARE_H
#define NETLOGGER_BASE_COMPARE_H

#include <stdint.h>

/* Compares two int64_t. The arguments are pointers to them. */
static inline int nl_compare_int64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

#endif
