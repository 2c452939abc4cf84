/*
 * Puts a table's lines in the order of their times. Stable.
 *
 * Lines that come from a collector are nearly in order: then each piece is put in order by itself, in the processor's
 * cache, and only where neighbours overlap are they merged. Otherwise they are distributed by the digits of their
 * times, the least significant first, which takes the same time whatever the order was.
 */
#ifndef NLSORT_ORDER_H
#define NLSORT_ORDER_H

#include "table.h"

/* All lines in order, room for capacity of them. Freed with order_free. The table's lists are given back. */
typedef struct order {
    nl_scanned_line *lines;
    size_t count;
    size_t capacity;
} order;

order order_table(table *t);
void order_free(order *o);

#endif
