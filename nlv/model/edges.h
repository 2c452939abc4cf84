/*
 * Finds the edges of a lifeline's requests: the lines that lead to a record, and the earlier records at which they
 * begin. The edges follow from the order of the lifeline's rows (event_order.h) and from each record's host and
 * program, so the store needs no memory for them. For each row that precedes a record's row, an edge begins at the
 * latest record of that row in the same program. If the program has no record in that row, an edge begins at the row's
 * latest record in each other program. If a record waits for several earlier records, an edge therefore leads from each
 * of them to the record. This module has no state.
 */
#ifndef NLV_EDGES_H
#define NLV_EDGES_H

#include "model/store.h"

#include "base/time_internal.h"

#define EDGES_PAUSE_NS (24 * 3600 * NL_NS_PER_SECOND)

enum {
    EDGES_MAX = 64 /* maximum number of earlier steps in which the module searches for edges */
};

/* Finds the records at which the lines to a record begin, latest first. Returns the number of these records. */
size_t edges_find(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX]);

/*
 * For a record that ends a span, returns the record that begins the span, or STORE_NONE if there is no such record. If
 * spans with the same name overlap in one program, assumes that they end in the order in which they began.
 */
uint32_t edges_find_begin(const store *s, uint32_t record, unsigned layer);

/*
 * Finds the impossible edges of a record. These edges lead to records that the record certainly causes, as their parent
 * or sender. The edge is impossible if the caused record is earlier by more than the maximum difference of the two
 * clocks. Stores the caused records in `found`, and returns their number.
 */
size_t edges_find_violations(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX]);

/*
 * Returns the record at which a line to `record` begins. The returned record is in `row`, and the line lasts long_ns
 * nanoseconds. Returns STORE_NONE if that record is not among the EDGES_MAX previous steps.
 */
uint32_t edges_find_start(const store *s, uint32_t record, unsigned layer, unsigned row, float long_ns);

/*
 * Returns whether a row begins a new request with the same ID as the current request, whose last step is `last`. The
 * row's event must begin requests, and must have occurred in the current request in the same program. In addition, one
 * of these conditions must be true: the current request has ended; it has paused for longer than EDGES_PAUSE_NS; its
 * last step is later than the row's record.
 */
bool edges_begin_again(const store *s, uint32_t last, unsigned layer, const batch_row *row);

#endif
