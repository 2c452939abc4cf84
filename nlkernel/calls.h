/*
 * The numbers of calls between the kernel's functions, computed from records of calls.
 *
 * There are three kinds of records: those of the function tracer (ftrace.function: FUNCTION, CALLER), those of the
 * function graph tracer (such as ftrace.funcgraph_entry: FUNCTION, DEPTH), and samples with call chains (STACK:
 * "outermost;...;innermost", or SYMBOL alone). The records of the graph tracer do not name the caller. It is the
 * function that the same thread entered before, possibly on a different CPU whose records come later. Therefore
 * calls_finish computes these callers at the end. One thread.
 */
#ifndef NLKERNEL_CALLS_H
#define NLKERNEL_CALLS_H

#include <glib.h>
#include <netlogger.h>

typedef struct call_function {
    char *name;
    uint64_t calls, calling; /* calls of the function, and by the function */
    int64_t time_ns;         /* total duration of the measured calls, with the functions that they called */
} call_function;

typedef struct call_edge {
    uint32_t caller, function; /* indices of functions */
    uint64_t calls;
} call_edge;

/* The entry of a thread into a function, or a loss of records. */
typedef struct call_entry {
    int64_t thread; /* its ID; -1 - CPU for the idle threads; INT64_MIN for losses */
    int64_t time_ns;
    uint32_t function, depth;
} call_entry;

/* Starts as zeros. */
typedef struct calls {
    call_function *functions;
    size_t function_count, function_capacity;
    call_edge *edges;
    size_t edge_count, edge_capacity;
    GHashTable *by_name; /* index of a function plus 1, by name */
    GHashTable *by_ends; /* index of an edge plus 1, by caller and function */
    call_entry *entries; /* the entries whose callers calls_finish computes */
    size_t entry_count, entry_capacity;
    uint64_t total; /* calls, or samples */
    uint64_t lost;
    int64_t from_ns, to_ns;
    bool timed;   /* some durations were measured */
    bool samples; /* some records were samples */
    char kernel[96];
} calls;

/* Adds a record. Ignores all records except calls, losses, and the description of the recording. */
void calls_take(calls *c, const nl_record *record);

/* Counts a loss of calls before a time: after the loss, earlier callers are unknown. */
void calls_lose(calls *c, int64_t time_ns, uint64_t count);

/* Computes the callers in the graph. Call it once, after the last record. */
void calls_finish(calls *c);

static inline const char *calls_name(const calls *c, uint32_t function)
{
    return c->functions[function].name;
}

/*
 * Returns the indices of all functions in descending order of heat. The caller frees them. With chains, a function is
 * at least as hot as the functions that it calls, because some functions occur only as callers.
 */
uint32_t *calls_in_order(const calls *c, bool chains);

static inline uint64_t calls_heat(const call_function *f, bool chains)
{
    return chains && f->calling > f->calls ? f->calling : f->calls;
}

/* Sorts the edges by function, then in descending order of calls. No call may be added afterwards. */
void calls_sort_edges(calls *c);

void calls_free(calls *c);

#endif
