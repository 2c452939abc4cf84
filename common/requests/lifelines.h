/*
 * Lifelines: the records of a trace that belong to one object (a request, a block, a job), as its steps through ordered
 * events.
 */
#ifndef NETLOGGER_ANALYSIS_LIFELINES_H
#define NETLOGGER_ANALYSIS_LIFELINES_H

#include "requests/drawing.h"
#include "requests/trace.h"

/* One record of an object. */
typedef struct lifeline_step {
    uint32_t record; /* in the trace */
    uint32_t event;  /* its place in the order, from 0 */
} lifeline_step;

typedef struct lifeline_object {
    uint32_t first_step, step_count; /* in steps, by time */
    uint32_t color;                  /* a string of the trace: what tells objects apart by colour */
    uint32_t name;                   /* the value of its last id field */
} lifeline_object;

typedef struct lifelines {
    const drawing_lifeline *definition;
    uint32_t event_count;
    uint32_t *events;         /* the events' strings, in order */
    lifeline_object *objects; /* in the order of their first steps */
    size_t object_count;
    lifeline_step *steps;
    size_t step_count;
    int32_t *object_of_record; /* -1 for records of no object here; trace_count entries */
} lifelines;

/* Groups a sorted trace. What it holds refers to trace and definition, which must outlive it. */
lifelines *lifelines_build(const trace *t, const drawing_lifeline *definition);
void lifelines_free(lifelines *l);

/* The value that an id (drawing.h) has in a record; TRACE_NONE when it has none. */
uint32_t lifelines_id_value(const trace *t, const trace_record *record, const char *id);

/* The time of a step. */
int64_t lifelines_time_ns(const lifelines *l, const trace *t, const lifeline_step *step);

#endif
