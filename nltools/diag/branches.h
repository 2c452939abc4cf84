/*
 * Finds branches that visits take more often on one host or in one time range.
 *
 * A branch is a cache miss or a call that only some visits of a place make, or that visits make several times. Each
 * miss or call may be as fast as usual, so that only the number of misses or calls costs time. The module compares how
 * often visits take the branch between hosts, and between time ranges. The difference is a cause only if the
 * requested work does not explain it. For each field, the module therefore compares visits with similar values. Not
 * thread-safe.
 */
#ifndef NLDIAG_BRANCHES_H
#define NLDIAG_BRANCHES_H

#include "diag/visits.h"

typedef struct branch {
    uint32_t place;         /* the place of the visits */
    const column *column;   /* if the branch is a miss, the results of the cache; otherwise NULL */
    uint32_t child;         /* if the branch is a call, the place that the visits call */
    const char *host;       /* the host with the larger share; NULL: a time range */
    bool is_caller;         /* `host` is the callers' host or, if a field names servers, the host of the records */
    int64_t from_ns, to_ns; /* the time range */
    double share, other;    /* shares of the visits that take the branch: share here, and share elsewhere */
    bool is_repeated;       /* visits make the call several times; the shares are then mean numbers of calls */
    double p;               /* probability of such different shares by chance */
} branch;

/* Returns the branches with different shares; elements are branch. The caller frees the array. */
GArray *find_branches(const visits *v);

/*
 * Finds the time that the additional misses or calls take. The caller frees both arrays with g_free. For each visit of
 * the log, `parts` has the part of the visit (0 to 1), and of all visits in it, that the additional misses or calls
 * take. `own` has the time that these misses or calls take from the own times of the place's visits, in nanoseconds.
 */
void branch_find_time(const visits *v, const branch *b, float **parts, float **own);

#endif
