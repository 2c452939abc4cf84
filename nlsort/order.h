/*
 * Sorts the lines of a table by time. Lines with equal times keep their order (the sort is stable).
 *
 * If the lines are nearly in order, such as in a collector's file, the module sorts each piece in the processor's
 * cache, and merges pieces that overlap. Otherwise, the module distributes the lines by the first digit of their times,
 * and sorts each group in the cache. If a group is too large, the module sorts all lines with a radix sort that begins
 * with the least significant digit. The duration of that sort does not depend on the distribution of the times.
 */
#ifndef NLSORT_ORDER_H
#define NLSORT_ORDER_H

#include "table.h"
#include "record/line_scanner.h"

/* The sorted lines. Free the structure with order_free. The table's lists may be freed before that. */
typedef struct order {
    nl_scanned_line *lines;
    size_t count;
    size_t capacity;
} order;

order order_table(table *t);
void order_free(order *o);

/* Sorts a piece into `to`. `to` and `spare` must each have space for the lines of the piece. */
void order_piece(const piece *p, nl_scanned_line *to, nl_scanned_line *spare);

/* Returns the number of sorted lines before time_ns. If `same` is true, also counts lines at time_ns. */
size_t order_count_before(const nl_scanned_line *lines, size_t count, int64_t time_ns, bool same);

/* Merges the two sorted ranges lines[0..middle) and lines[middle..count). */
void order_merge(nl_scanned_line *lines, size_t middle, size_t count, line_list *spare);

#endif
