/*
 * Sorts the lines of a table by time; the sort is stable.
 *
 * If the lines are nearly in order, as from a collector, each piece is sorted in the processor's cache, and overlapping
 * pieces are merged. Otherwise the lines are distributed by the first digit of their times, and each group is sorted in
 * the cache. If a group is too large, all lines are sorted by a radix sort from the least significant digit, whose time
 * does not depend on how the times are distributed.
 */
#ifndef NLSORT_ORDER_H
#define NLSORT_ORDER_H

#include "table.h"
#include "record/line_scanner.h"

/* The sorted lines. Free with order_free. order_free does not need the table's lists, which may be freed earlier. */
typedef struct order {
    nl_scanned_line *lines;
    size_t count;
    size_t capacity;
} order;

order order_table(table *t);
void order_free(order *o);

/* Sorts a piece into `to`. to and spare each have the size of the piece. */
void order_piece(const piece *p, nl_scanned_line *to, nl_scanned_line *spare);

/* Returns the number of sorted lines before time_ns. If same is set, lines at time_ns also count. */
size_t order_count_before(const nl_scanned_line *lines, size_t count, int64_t time_ns, bool same);

/* Merges the sorted parts lines[0..middle) and lines[middle..count). */
void order_merge(nl_scanned_line *lines, size_t middle, size_t count, line_list *spare);

#endif
