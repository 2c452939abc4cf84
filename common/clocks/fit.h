/*
 * A clock's correction out of bounds: a function c of a clock's time, linear piece by piece, that keeps within
 *
 *   low <= c(time) <= high
 *
 * of every bound. A measurement (an exchange of timestamps) gives both, a message one: what was received at t cannot
 * have been sent later. Of all lines within the bounds the one is taken that keeps the furthest from them, which lies
 * midway between the convex hulls of the two kinds: A. Duda, G. Harrus, Y. Haddad, G. Bernard, "Estimating Global Time
 * in Distributed Systems", ICDCS 1987; L. Zhang, Z. Liu, C. Honghui Xia, "Clock Synchronization Algorithms for Network
 * Measurements", INFOCOM 2002. A piece is as long as there is such a line; then the next begins, and the two are
 * joined, unless the clock was set in between.
 */
#ifndef NETLOGGER_TIMEKEEPING_FIT_H
#define NETLOGGER_TIMEKEEPING_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds. Infinite where there is no bound. */
typedef struct fit_bound {
    int64_t time_ns; /* by the clock that is corrected */
    double low_ns, high_ns;
} fit_bound;

/* The line at_ns + slope * (time - from_ns), good for times in [from_ns, to_ns]. */
typedef struct fit_piece {
    int64_t from_ns, to_ns;
    double at_ns, slope;
    double low_error_ns, high_error_ns; /* by so much the truth may be below and above; infinite: nothing says */
    bool set;                           /* the clock was set, or jumped, between the piece before and this one ... */
    int64_t set_ns;                     /* ... at that time of the clock, the first that it had after that */
} fit_piece;

typedef struct fit {
    fit_piece *pieces;
    size_t count;
} fit;

/* When a clock was set: the first time that it had after that. */
typedef struct fit_step {
    int64_t time_ns;
    double step_ns; /* what was added to it */
} fit_step;

/* The correction; bounds and steps are sorted by time here. Empty when there are no bounds. To be freed with fit_free.
 */
fit fit_find(fit_bound *bounds, size_t count, fit_step *steps, size_t step_count);

/* c(time); before the first piece, and behind the last, as these say. 0 of an empty one. */
double fit_at(const fit *f, int64_t time_ns);

/* The larger of the two errors there; it grows with the time from what is known. */
double fit_error_at(const fit *f, int64_t time_ns);

void fit_free(fit *f);

#endif
