/* What courses.c and before_after.c share. */
#ifndef NLDIAG_COURSES_H
#define NLDIAG_COURSES_H

#include "diag/findings.h"

enum { SLICES_MAX = 200 };

/* Objects, all or those known by one host, as they began. */
typedef struct slices {
    guint lifeline, host; /* host 0: all */
    int64_t end_ns;       /* of those that began later only the quick ones can have ended */
    bool only_whole;      /* where most are, as those that are not took how long nobody knows */
    guint count;
    double logs[SLICES_MAX], sums_ns[SLICES_MAX], objects[SLICES_MAX]; /* logs: means of logarithms */
    double total_ns;
} slices;

/* Whether an object is one of those. */
bool slices_has(const slices *s, const object *one);

/* Adds what is different of those that began from a time on: ways, and a number in the log. */
void show_difference(finding *made, const observed *o, const slices *s, int64_t at_ns);

#endif
