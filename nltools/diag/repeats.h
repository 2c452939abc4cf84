/*
 * Joins the repeats of an event. For a request, a program may log the same event several times in succession, for
 * example when each part of a block arrives. A repeat is the time from one of these events to the next. Successive
 * repeats of a request form a run. Not thread-safe.
 */
#ifndef NLDIAG_REPEATS_H
#define NLDIAG_REPEATS_H

#include "diag/visits.h"

/*
 * At the places where the time of a run does not depend on the number of its repeats, joins each run into one visit. At
 * these places, a repeat is shorter if its run has more repeats, so the search cannot compare repeats with each other.
 * At other places, such as a loop over independent items, each repeat remains a visit. Call this function after
 * visits_finish and before the search.
 */
void visits_join_repeats(visits *v);

#endif
