/*
 * Fits a clock's correction to bounds: a piecewise linear function c of the clock's time with
 *
 *   low <= c(time) <= high
 *
 * for every bound. A measurement (an exchange of timestamps) gives both bounds. A message gives one bound, because it
 * was sent before it was received. The fit is the line that is farthest from all bounds, midway between the convex
 * hulls of the two kinds of bounds. See A. Duda, G. Harrus, Y. Haddad, G. Bernard, "Estimating Global Time in
 * Distributed Systems", ICDCS 1987; L. Zhang, Z. Liu, C. Honghui Xia, "Clock Synchronization Algorithms for Network
 * Measurements", INFOCOM 2002. A piece extends as long as a line fits. The next piece begins at the end of the previous
 * piece, without a jump, unless the clock was set between the two pieces. If memory runs out, the program ends. Only
 * one thread may use a fit.
 */
#ifndef NETLOGGER_TIMEKEEPING_FIT_H
#define NETLOGGER_TIMEKEEPING_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A missing bound is infinite. */
typedef struct fit_bound {
    int64_t time_ns; /* time by the clock to correct */
    double low_ns, high_ns;
} fit_bound;

/* The line at_ns + slope * (time - from_ns) for times from from_ns to to_ns. */
typedef struct fit_piece {
    int64_t from_ns, to_ns;
    double at_ns, slope;
    double low_error_ns, high_error_ns; /* maximum distance of the true value below and above the line, or infinity */
    bool set;                           /* the clock was set, or jumped, before this piece */
    int64_t set_ns;                     /* if set: the first time after the jump; estimated if no step was recorded */
} fit_piece;

typedef struct fit {
    fit_piece *pieces;
    size_t count;
} fit;

typedef struct fit_step {
    int64_t time_ns; /* the first time after the step */
    double step_ns;  /* nanoseconds that the step added to the clock */
} fit_step;

/*
 * Returns the correction, which the caller frees with fit_free. Without bounds, the correction is empty. Sorts the
 * arrays by time, and may overwrite bounds.
 */
fit fit_find(fit_bound *bounds, size_t count, fit_step *steps, size_t step_count);

/*
 * Returns c(time). Before the first piece and after the last piece, the line of that piece continues. An empty
 * correction is 0.
 */
double fit_at(const fit *f, int64_t time_ns);

/* Returns the maximum error, or infinity if there are no bounds. The error grows with the distance from the nearest
 * bounds. */
double fit_error_at(const fit *f, int64_t time_ns);

void fit_free(fit *f);

#endif
