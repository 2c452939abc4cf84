/*
 * Puts a table's lines in the order of their times. Stable.
 *
 * Lines that come from a collector are nearly in order: then each piece is put in order by itself, in the processor's
 * cache, and only where neighbours overlap are they merged. Otherwise they are distributed by the first digit of their
 * times, and what has the same is put in order in the cache. Where too many have the same they are distributed by all
 * digits, the least significant first, which takes the same time whatever the times are.
 */
#ifndef NLSORT_ORDER_H
#define NLSORT_ORDER_H

#include "table.h"
#include "record/line_scanner.h"

/* All lines in order, room for capacity of them. Freed with order_free. The table's lists may be given back. */
typedef struct order {
    nl_scanned_line *lines;
    size_t count;
    size_t capacity;
} order;

order order_table(table *t);
void order_free(order *o);

/* Sorts a piece into to; both to and spare have room for it. */
void order_piece(const piece *p, nl_scanned_line *to, nl_scanned_line *spare);

/* How many of lines, which are in order, come before one of that time: those of the same time too, or not. */
size_t order_count_before(const nl_scanned_line *lines, size_t count, int64_t time_ns, bool same);

/* Merges lines[0..middle) and lines[middle..count), each in order, where they overlap. */
void order_merge(nl_scanned_line *lines, size_t middle, size_t count, line_list *spare);

#endif
