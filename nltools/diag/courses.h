/* Shared by courses.c and before_after.c. */
#ifndef NLDIAG_COURSES_H
#define NLDIAG_COURSES_H

#include "diag/findings.h"

enum { SLICES_MAX = 200 };

/* The times of all objects, or of those of a host, by the times of their begins. */
typedef struct slices {
    guint lifeline, host; /* host 0: all */
    int64_t end_ns;       /* of those that began later only the quick ones can have ended */
    bool only_whole;      /* where most are, as those that are not took how long nobody knows */
    guint count;
    double logs[SLICES_MAX], sums_ns[SLICES_MAX], objects[SLICES_MAX]; /* logs: means of logarithms */
    double total_ns;
} slices;

/* Returns whether an object belongs to the slices. */
bool slices_has(const slices *s, const object *one);

/* Adds evidence of what differs after a time: legs, and the resource that changed most. */
void show_difference(finding *made, const observed *o, const slices *s, int64_t at_ns);

#endif
