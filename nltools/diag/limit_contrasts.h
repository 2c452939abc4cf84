/*
 * Compares the visits during which a host reaches a limit with the other visits of the same place. A limit that is
 * reached only at times explains a visit's time only if the visits at these times take longer. Caller: limits.c. No
 * state.
 */
#ifndef NLDIAG_LIMIT_CONTRASTS_H
#define NLDIAG_LIMIT_CONTRASTS_H

#include "diag/findings.h"

/* A sensor's field that shows a limit. The limit is reached if the value is at least `full`. */
typedef struct limit_gauge {
    const char *event, *field, *instance; /* instance is NULL for all instances, of which the largest value counts */
    double full;
} limit_gauge;

enum { LIMIT_GAUGES_MAX = 3 };

/* The comparison for one limit. Free it with limit_contrast_free. */
typedef struct limit_contrast {
    /* For each visit, the part of its time that the limit explains, 0 to 1. NAN: the visit's place cannot be compared,
     * because the host reaches the limit always, or never, or has no sensors. */
    float *parts;
    double *claims_ns; /* for each place, the time on critical paths that the limit explains; 0: none; NAN: unknown */
    double *slow_ns, *other_ns; /* for each place that the limit explains: mean times at the limit and at other times */
} limit_contrast;

/*
 * Compares the visits of each place. `gauges` ends with an element whose event is NULL. The gauge that explains most of
 * a place's time counts. The comparison is a test against chance at the level of the search (search.h). In addition,
 * the visits must depend on the gauge more than on the same gauge at shifted times, because slow changes often coincide
 * by chance.
 */
limit_contrast *limit_contrast_new(const visits *v, const limit_gauge *gauges);
void limit_contrast_free(limit_contrast *c);

/* If several limits explain a place, keeps only the one that explains most of its time. The others then explain none.
 */
void limit_contrasts_compete(const visits *v, limit_contrast *const *all, size_t count);

#endif
