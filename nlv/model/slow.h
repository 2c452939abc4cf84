/*
 * Finds where the requests of a log spend most of their time: the kind of line with the largest share of the requests'
 * critical paths. A path leads from a request's last record back through the latest cause of each record (edges.h).
 * This module has no state.
 */
#ifndef NLV_SLOW_H
#define NLV_SLOW_H

#include "model/store.h"

typedef struct slow_line {
    bool is_found;
    size_t lifeline;
    uint32_t from, to;  /* the records that the longest line of this kind joins */
    double typical_ns;  /* the median duration of lines of this kind */
    int64_t typical_at; /* the median time at which they end */
    size_t requests;    /* number of requests in the sample */
} slow_line;

/*
 * Finds the slowest kind of line in a time range. Samples requests that end in the range, or later by at most the
 * length of the range.
 */
slow_line slow_find(const store *s, int64_t from_ns, int64_t to_ns);

#endif
