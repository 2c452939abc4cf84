/* Groups the records of a trace into requests, whose steps are the ordered events of a lifeline. Not thread-safe. */
#ifndef NETLOGGER_ANALYSIS_LIFELINES_H
#define NETLOGGER_ANALYSIS_LIFELINES_H

#include "requests/drawing.h"
#include "requests/trace.h"

/* A record of a request. */
typedef struct lifeline_step {
    uint32_t record; /* in the trace */
    uint32_t event;  /* index in the lifeline's events */
} lifeline_step;

typedef struct lifeline_object {
    uint32_t first_step, step_count; /* in steps, by time */
    uint32_t color;                  /* a string of the trace: the value with its own color */
    uint32_t name;                   /* a string: the value of the last ID field */
} lifeline_object;

typedef struct lifelines {
    const drawing_lifeline *definition;
    uint32_t event_count;
    uint32_t *events;         /* strings, in order */
    lifeline_object *objects; /* requests, in the order of their first steps */
    size_t object_count;
    lifeline_step *steps;
    size_t step_count;
    int32_t *object_of_record; /* request of each record; -1: no request */
} lifelines;

/* Groups a sorted trace. t and definition must outlive the result. */
lifelines *lifelines_build(const trace *t, const drawing_lifeline *definition);
void lifelines_free(lifelines *l);

/* Returns the value of an ID (drawing.h) in a record, or TRACE_NONE. */
uint32_t lifelines_id_value(const trace *t, const trace_record *record, const char *id);

int64_t lifelines_time_ns(const lifelines *l, const trace *t, const lifeline_step *step);

#endif
