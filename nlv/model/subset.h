/*
 * A part of a store, by a filter that asks for nothing but what the store itself has (event, host, program): made
 * without reading the logs again.
 */
#ifndef NLV_SUBSET_H
#define NLV_SUBSET_H

#include "requests/drawing.h"
#include "model/store.h"

#include <stdatomic.h>

/* Whether a filter is such a one. */
bool subset_is_enough(const nl_filter *filter);

/*
 * The records of full, which is settled, that match, as if only they had been read, drawn as d says, which is what full
 * is of. NULL when stopping became true, or there are so many names that they cannot be told apart.
 */
store *subset_new(const store *full, const nl_filter *filter, const drawing *d, const atomic_bool *stopping);

#endif
