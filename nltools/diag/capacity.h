/* The number of servers behind a wait. */
#ifndef NLDIAG_CAPACITY_H
#define NLDIAG_CAPACITY_H

#include "diag/observed.h"

/*
 * At most places objects are between the end of a wait and the place until. full is the share of time in which all
 * servers are busy, used that in which at least one is.
 */
typedef struct capacity {
    guint until, places; /* 0 places: there is no bound */
    double full, used;
} capacity;

/* Finds the servers of the shortest way behind l, on its host or on all hosts together. */
capacity capacity_behind(const observed *o, const leg *l, bool on_any);

#endif
