/*
 * The edges of a lifeline's requests: from which earlier records the lines to a record come. They follow from the order
 * of the lifeline's rows (event_order.h) and from the host and program of each record, so the store needs no memory for
 * them. A row's latest record in the same program counts, or else that of each program: a record at which a request
 * waits for several others has an edge from each. No state.
 */
#ifndef NLV_EDGES_H
#define NLV_EDGES_H

#include "model/store.h"

#include "base/time_internal.h"

#define EDGES_PAUSE_NS (24 * 3600 * NL_NS_PER_SECOND)

enum {
    EDGES_MAX = 64 /* steps before a record that are looked at, and so its edges */
};

/* Finds the records that the lines to a record come from, the latest first. Returns their number. */
size_t edges_find(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX]);

/*
 * Finds the begin of the span that a record ends; STORE_NONE if there is none. If spans of one name run side by side in
 * one program, the first begin ends first.
 */
uint32_t edges_find_begin(const store *s, uint32_t record, unsigned layer);

/*
 * Finds the earlier records that this record certainly causes, contrary to their times: it is their parent or sent what
 * they received, by more than the bound of the clocks. Returns their number.
 */
size_t edges_find_violations(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX]);

/* The start of a line to a record from a row, of about long_ns; STORE_NONE if it is no longer there. */
uint32_t edges_find_start(const store *s, uint32_t record, unsigned layer, unsigned row, float long_ns);

/*
 * Whether a row begins another request with the same ID, as the request began: the request was over with its last
 * record so far, or paused for more than a day.
 */
bool edges_begin_again(const store *s, uint32_t last, unsigned layer, const batch_row *row);

#endif
