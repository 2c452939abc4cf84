/* So many at a time: how many places there are behind a wait. */
#ifndef NLDIAG_CAPACITY_H
#define NLDIAG_CAPACITY_H

#include "diag/observed.h"

/* Where objects are behind a wait, from place on until they are at until: so many at once, all places taken full of the
 * time, one or more taken used of it. */
typedef struct capacity {
    guint until, places; /* 0 places: there is no bound */
    double full, used;
} capacity;

/* The least way behind l of which so many at a time are on, on its host or all together. */
capacity capacity_behind(const observed *o, const leg *l, bool on_any);

#endif
