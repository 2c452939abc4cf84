/* Extracts a part of a store for a filter on event, host and program, or for selected records, without reading the
 * logs.
 */
#ifndef NLV_SUBSET_H
#define NLV_SUBSET_H

#include "requests/drawing.h"
#include "model/store.h"

#include <stdatomic.h>

/* Returns whether a filter uses no other fields than event, host and program. */
bool subset_is_enough(const nl_filter *filter);

/*
 * Returns a store with the records of `full` that match the filter (NULL: all) and whose places (batch.h) are in
 * `places` (NULL: all), a sorted array of uint64_t. `full` must be settled. `d` is the drawing of `full`. Returns NULL
 * if *stopping became true, or if some names share a number because there are too many names.
 */
store *subset_new(const store *full, const nl_filter *filter, const GArray *places, const drawing *d,
                  const atomic_bool *stopping);

#endif
