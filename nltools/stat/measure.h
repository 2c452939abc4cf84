/*
 * What is found out about the lifelines of a log: where the time of objects goes, by segment and by nested pair of
 * events, which objects took longest, and which did not go the usual way.
 *
 * Segments. Steps are taken in order of time; a segment is from one step to the next. When an event is repeated (a
 * block that is read in many pieces) the time from its first to its last is a segment by itself, so that the segments
 * of an object add up to all of its time.
 *
 * Pairs. Events called NAME.start and NAME.end (also Start, Begin, End, and without the dot) enclose a piece of work,
 * other pairs may lie within it. Its inclusive time is all from start to end, its exclusive time that without the pairs
 * directly within.
 */
#ifndef NLSTAT_MEASURE_H
#define NLSTAT_MEASURE_H

#include "base/distribution.h"
#include "stat/gather.h"
#include "stat/series.h"

typedef struct segment {
    uint16_t from, to; /* places in the order; the same for a repeated event */
    uint16_t by;       /* gather_by's */
    nl_distribution times;
} segment;

typedef struct pair {
    uint16_t start, end; /* places in the order */
    uint16_t by;
    char *name; /* NAME */
    nl_distribution inclusive, exclusive;
    uint64_t no_end, no_start; /* starts without an end, ends without a start */
} pair;

/* An object that is shown by name. */
typedef struct example {
    char *name; /* without NULs */
    uint16_t by;
    int64_t from_ns, total_ns;
    uint16_t first, last; /* places: of the longest segment; of the missing event (both); of the step back */
    int64_t longest_ns;   /* segment */
} example;

/* A way not to be as usual: how many objects, and the first few of them. */
typedef struct oddity {
    uint64_t count;
    GArray *examples; /* example */
} oddity;

typedef struct measure {
    const drawing_lifeline *definition;
    guint event_count;
    gather *gatherer;
    bool by;
    size_t slowest_most, examples_most;

    uint64_t objects;
    nl_distribution totals; /* from the first step to the last */
    series totals_series;   /* by when they ended */
    GPtrArray *segments;    /* segment; by place after measure_finish */
    GPtrArray *pairs;       /* pair, likewise */
    GArray *slowest;        /* example; the slowest first after measure_finish */
    oddity no_start;        /* lack the first event of the order */
    oddity no_end;          /* lack the last one */
    oddity disordered;      /* ran against the order */

    GHashTable *segment_ids; /* from, to and by in 64 bits, to segment */
    GHashTable *pair_ids;    /* start and by in 64 bits, to pair */
    GArray *stack;           /* of open pairs of the present object */
    uint16_t *partners;      /* the end's place of a start, and the reverse; PLACE_NONE for the others */
    bool *starts;            /* by place */
} measure;

/*
 * For a lifeline of a drawing, which must outlive it. by as gather_new has it; steps_most bounds memory; at most
 * slowest_most and examples_most objects are kept as examples.
 */
measure *measure_new(const drawing_lifeline *definition, const char *by, size_t steps_most, size_t slowest_most,
                     size_t examples_most);
void measure_free(measure *m);

void measure_add(measure *m, const nl_record *record);

/* After the last record: everything above is filled in. */
void measure_finish(measure *m);

/* The time of all objects together. */
double measure_total_ns(const measure *m);

/* The segment from and to these events (by name) of that value of by; NULL when there is none. */
segment *measure_find(const measure *m, const char *from, const char *to, const char *by);

#endif
