/*
 * Records calls of the kernel's functions with ftrace's function tracers, in the recorder's instance.
 *
 * The tracers write ordinary events: ftrace.function, with FUNCTION and CALLER, or ftrace.funcgraph_entry and
 * ftrace.funcgraph_exit of the function graph tracer. If possible, the kernel excludes the recorder's own threads,
 * because reading a page causes several hundred calls.
 */
#ifndef NLKERNEL_FUNCTIONS_H
#define NLKERNEL_FUNCTIONS_H

#include "events.h"
#include "instance.h"
#include "kallsyms.h"

typedef enum functions_kind {
    FUNCTIONS_NONE,
    FUNCTIONS_ANY,   /* FUNCTIONS_GRAPH if nlkernel records all functions and the graph tracer works in an instance;
                        otherwise, FUNCTIONS_CALLS */
    FUNCTIONS_CALLS, /* the `function` tracer, which records each call with its caller */
    FUNCTIONS_GRAPH, /* the `function_graph` tracer, which records the duration of each call; the nesting of calls shows
                        the caller */
} functions_kind;

/* Adds the tracer's events to a list in which kernel_events_read left space. Returns false and sets the error on
 * failure. */
bool functions_describe(kernel_events *events, const tracing *t, functions_kind kind, const kallsyms *symbols);

/* Returns whether an instance supports the tracer of a kind other than FUNCTIONS_ANY. If not, sets the error. */
bool functions_offered(const instance *i, functions_kind kind);

/*
 * Sets the tracer and the globs of functions. !GLOB excludes functions. Returns false and sets the error if the kernel
 * lacks or rejects the tracer, or if no function matches one of the globs.
 */
bool functions_choose(const instance *i, functions_kind kind, const char *const *globs, size_t count);

#endif
