/*
 * Joins the repeats of an event. A program may log the same event several times in succession for a request, for
 * example for each part of a block that arrives. A repeat is the time from one of these events to the next. Successive
 * repeats of a request form a run. Not thread-safe.
 */
#ifndef NLDIAG_REPEATS_H
#define NLDIAG_REPEATS_H

#include "diag/visits.h"

/*
 * Joins each run into one visit, at the places where the time of a run does not depend on the number of its repeats. At
 * these places, the length of a repeat depends on the number of repeats in its run, so repeats cannot be compared with
 * each other. At other places, such as a loop over independent items, each repeat remains a visit. Call this function
 * after visits_finish and before the search.
 */
void visits_join_repeats(visits *v);

#endif
