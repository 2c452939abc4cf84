/*
 * Measures the requests of a lifeline: where their time goes, by segment and by nested pair of events, which took
 * longest, and which did not take the usual course.
 *
 * Segments: steps are ordered by time, and a segment is the time from one step to the next. When an event is repeated
 * (a block that is read in many pieces), the time from its first to its last step is a segment by itself, so that the
 * segments of a request add up to its whole time.
 *
 * Pairs: events called NAME.start and NAME.end (also Start, Begin, End, and without the dot) enclose a piece of work,
 * which may contain other pairs. Its inclusive time is the time from start to end; its exclusive time is that without
 * the pairs directly within.
 *
 * Memory is bounded by the limits of rows, values and examples, besides that of the gatherer.
 */
#ifndef NLSTAT_MEASURE_H
#define NLSTAT_MEASURE_H

#include "base/distribution.h"
#include "stat/gather.h"
#include "stat/series.h"

typedef struct segment {
    guint64 key;       /* orders segments by from, to and by */
    uint16_t from, to; /* indices of events; the same for a repeated event */
    uint16_t by;       /* group, see gather_by */
    nl_distribution times;
} segment;

typedef struct pair {
    guint64 key;         /* orders pairs by start and by */
    uint16_t start, end; /* indices of events */
    uint16_t by;
    char *name; /* NAME */
    nl_distribution inclusive, exclusive;
    uint64_t no_end, no_start; /* starts without an end, ends without a start */
} pair;

/* A request that is shown by name. */
typedef struct example {
    char *name; /* without NULs */
    uint16_t by;
    int64_t from_ns, total_ns;
    uint16_t first, last; /* events: of the longest segment; the missing event (both); the two in the wrong order */
    int64_t longest_ns;   /* the longest segment; -1: none */
} example;

/* Requests that did not take the usual course: their count, and the first few of them. */
typedef struct oddity {
    uint64_t count;
    GArray *examples; /* example */
} oddity;

typedef struct measure {
    const drawing_lifeline *definition;
    guint event_count;
    gather *gatherer;
    bool by;
    size_t slowest_max, examples_max;

    uint64_t requests;
    nl_distribution totals; /* from the first step to the last */
    series totals_series;   /* by the times at which they ended */
    GPtrArray *segments;    /* segment; by key after measure_finish */
    GPtrArray *pairs;       /* pair; by key after measure_finish */
    GArray *slowest;        /* example; the slowest first after measure_finish */
    oddity no_start;        /* lack the lifeline's first event */
    oddity no_end;          /* lack the lifeline's last event */
    oddity disordered;      /* ran in another order */
    uint64_t left_out;      /* times that belong to no row, because there are too many rows */

    GHashTable *segment_rows, *pair_rows;  /* by key */
    uint64_t value_count, value_count_max; /* values in distributions, until the next compaction */
    GArray *stack;                         /* of open pairs of the present request */
    uint16_t *partners; /* the index of a start's end, and of an end's start; PLACE_NONE for other events */
    bool *starts;       /* by index */
} measure;

/*
 * Returns a new measure for a lifeline, which must outlive it. by and memory_max (bytes) are those of gather_new. At
 * most slowest_max and examples_max requests are kept as examples of each sort.
 */
measure *measure_new(const drawing_lifeline *definition, const char *by, size_t memory_max, size_t slowest_max,
                     size_t examples_max);
void measure_free(measure *m);

void measure_add(measure *m, const nl_record *record);

/* Completes the results. Call it after the last record. */
void measure_finish(measure *m);

/* Returns the segment between two events with these names in the group by, or NULL. */
segment *measure_find(const measure *m, const char *from, const char *to, const char *by);

#endif
