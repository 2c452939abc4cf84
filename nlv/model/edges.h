/*
 * The edges of a lifeline's requests: the lines that lead to a record, and the earlier records at which they begin.
 * They follow from the order of the lifeline's rows (event_order.h) and from the host and program of each record, so
 * the store needs no memory for them. A row's latest record in the same program counts, or else that of each program: a
 * record at which a request waits for several others has an edge from each. No state.
 */
#ifndef NLV_EDGES_H
#define NLV_EDGES_H

#include "model/store.h"

#include "base/time_internal.h"

#define EDGES_PAUSE_NS (24 * 3600 * NL_NS_PER_SECOND)

enum {
    EDGES_MAX = 64 /* maximum number of steps before a record that may be edges */
};

/* Finds the records at which the lines to a record begin, the latest first. Returns their number. */
size_t edges_find(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX]);

/*
 * Returns the record that begins the span that a record ends; STORE_NONE if none exists. If spans of one name overlap
 * in one program, the one that began first ends first.
 */
uint32_t edges_find_begin(const store *s, uint32_t record, unsigned layer);

/*
 * Finds the impossible edges of a record: the records that it certainly causes, as their parent or sender, but that are
 * earlier by more than the bound of the clocks. Returns their number.
 */
size_t edges_find_violations(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX]);

/* Returns the record of a row at which a line of about long_ns to a record begins; STORE_NONE if the store no longer
 * has it. */
uint32_t edges_find_start(const store *s, uint32_t record, unsigned layer, unsigned row, float long_ns);

/*
 * Returns whether a row begins another request with the same ID: its event begins requests and has occurred in this
 * request, which has ended with its last record so far, or has paused for more than a day.
 */
bool edges_begin_again(const store *s, uint32_t last, unsigned layer, const batch_row *row);

#endif
