/*
 * Finds branches that visits take more often on one host, or in a range of time.
 *
 * A branch is what only some visits of a place do, or do several times: they miss a cache, or make calls. The visits
 * themselves may be as fast as ever, so that only their number costs time. The module compares how often visits take
 * the branch between hosts, and between ranges of time. The difference is a cause only if it is not a consequence of
 * other requested work: for each field, the visits with similar values are compared. Not thread-safe.
 */
#ifndef NLDIAG_BRANCHES_H
#define NLDIAG_BRANCHES_H

#include "diag/visits.h"

typedef struct branch {
    uint32_t place;         /* the place of the visits */
    const column *column;   /* the results of a cache, if the branch is a miss; otherwise NULL */
    uint32_t child;         /* otherwise, the place that the visits call */
    const char *host;       /* the host with the larger share; NULL: a range of time */
    bool is_caller;         /* the host is that of the callers or, if a field names servers, that of the records */
    int64_t from_ns, to_ns; /* the range of time */
    double share, other;    /* shares of the visits that take the branch: here, and elsewhere */
    bool is_repeated;       /* visits make the call several times; the shares are then mean numbers of calls */
    double p;               /* probability of such different shares by chance */
} branch;

/* Returns the branches with different shares; elements are branch. The caller frees the array. */
GArray *find_branches(const visits *v);

/*
 * Returns the time of the additional branches, as parts of visits. For each visit of the log, `parts` has the part, 0
 * to 1, of the visit and of everything in it. `own` has the nanoseconds of the visits of the place itself. The caller
 * frees both arrays with g_free.
 */
void branch_find_time(const visits *v, const branch *b, float **parts, float **own);

#endif
