/*
 * Where the time of lifelines goes: the time between one step and the next, gathered over all objects.
 *
 * Steps are taken in order of time. When an event is repeated (a block that is read in many pieces) the time from its
 * first to its last is a segment by itself, so that the segments of an object add up to all of its time.
 */
#ifndef NETLOGGER_ANALYSIS_SEGMENTS_H
#define NETLOGGER_ANALYSIS_SEGMENTS_H

#include "analysis/lifelines.h"

typedef struct segment {
    uint32_t from, to; /* places in the lifeline's order; the same for a repeated event */
    uint32_t color;    /* of the objects, TRACE_NONE for all together */
    GArray *times_ns;  /* int64_t, sorted */
    double total_ns;
} segment;

/* All segments that occur, in the order of their events; one for each color when by_color. Freed with segments_free. */
GPtrArray *segments_measure(const trace *t, const lifelines *l, bool by_color);
void segments_free(GPtrArray *segments);

/* The time that a share (0 to 1) of a segment's times does not exceed: exact, by the nearest rank. */
int64_t segment_quantile_ns(const segment *s, double share);

#endif
