/*
 * Every call of the kernel's functions, with its caller: ftrace's function tracer, in the recorder's own instance.
 *
 * What the tracer writes are events beside the others: ftrace.function, with FUNCTION and CALLER by name, or, of the
 * function graph tracer, ftrace.funcgraph_entry and ftrace.funcgraph_exit. What the recorder's own threads do is left
 * out by the kernel where it can: reading a page calls some hundred functions.
 */
#ifndef NLKERNEL_FUNCTIONS_H
#define NLKERNEL_FUNCTIONS_H

#include "events.h"
#include "instance.h"
#include "kallsyms.h"

/* Which of ftrace's tracers sees the functions. */
typedef enum functions_kind {
    FUNCTIONS_NONE,
    FUNCTIONS_ANY,   /* the graph where an instance may have it and all functions are meant; else calls */
    FUNCTIONS_CALLS, /* function: calls with their callers */
    FUNCTIONS_GRAPH, /* function_graph: how long each took; the caller is what was entered before */
} functions_kind;

/* Adds the tracers' events, in room that kernel_events_read left. False with the reason in nl_error_message(). */
bool functions_describe(kernel_events *events, const tracing *t, functions_kind kind, const kallsyms *symbols);

/* Whether a set of buffers offers a kind's tracer; FUNCTIONS_ANY is none. */
bool functions_offered(const instance *i, functions_kind kind);

/*
 * Chooses the tracer and which functions it is to see: globs, or !globs of those that it is not to; none: all. False
 * with the reason: this kernel has no such tracer, or refuses it, or no function is called so.
 */
bool functions_choose(const instance *i, functions_kind kind, const char *const *globs, size_t count);

#endif
