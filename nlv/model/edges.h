/*
 * The edges of a lifeline's requests: the lines that lead to a record, and the earlier records at which they begin.
 * They follow from the order of the lifeline's rows (event_order.h) and from the host and program of each record, so
 * the store needs no memory for them. An edge begins at a row's latest record in the same program, or, if there is
 * none, at its latest record in each other program. A record at which a request waits for several others therefore has
 * an edge from each of them. No state.
 */
#ifndef NLV_EDGES_H
#define NLV_EDGES_H

#include "model/store.h"

#include "base/time_internal.h"

#define EDGES_PAUSE_NS (24 * 3600 * NL_NS_PER_SECOND)

enum {
    EDGES_MAX = 64 /* maximum number of earlier steps that are searched for edges */
};

/* Finds the records at which the lines to a record begin, latest first. Returns the number of these records. */
size_t edges_find(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX]);

/*
 * Returns the record that begins the span that a record ends; STORE_NONE if none exists. If spans with the same name
 * overlap in one program, assumes that the span that began first ends first.
 */
uint32_t edges_find_begin(const store *s, uint32_t record, unsigned layer);

/*
 * Finds the impossible edges of a record. These lead to records that it certainly causes, as their parent or sender,
 * but whose times are earlier by more than the maximum clock difference. Returns the number of these records.
 */
size_t edges_find_violations(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX]);

/*
 * Returns the record of a row at which a line to a record begins that lasts about long_ns; STORE_NONE if the store no
 * longer has it.
 */
uint32_t edges_find_start(const store *s, uint32_t record, unsigned layer, unsigned row, float long_ns);

/*
 * Returns whether a row begins another request with the same ID. This is so if its event begins requests, has already
 * occurred in this request, and this request has either ended or paused for longer than EDGES_PAUSE_NS.
 */
bool edges_begin_again(const store *s, uint32_t last, unsigned layer, const batch_row *row);

#endif
