/*
 * Counts the calls between the kernel's functions, from records of calls.
 *
 * There are three kinds of records:
 * - function tracer: ftrace.function with FUNCTION and CALLER, or TEXT such as "tcp_v4_rcv <-- ip_local_deliver"
 * - function graph tracer: records such as ftrace.funcgraph_entry with FUNCTION and DEPTH
 * - samples with call chains: STACK ("outermost;...;innermost"), or SYMBOL alone The graph tracer does not record the
 *   caller, which is the latest function at the next lower depth that the same thread entered. The thread may have
 *   entered this function on another CPU, whose records come later. Therefore, calls_finish computes these callers at
 *   the end. Not thread-safe.
 */
#ifndef NLKERNEL_CALLS_H
#define NLKERNEL_CALLS_H

#include <glib.h>
#include <netlogger.h>

typedef struct call_function {
    char *name;
    uint64_t calls, calling; /* calls: number of calls to the function; calling: number of calls by the function */
    int64_t time_ns;         /* total duration of the measured calls, including the functions that they called */
} call_function;

typedef struct call_edge {
    uint32_t caller, function; /* indices of functions */
    uint64_t calls;
} call_edge;

/* A thread's entry into a function, or a loss of records. */
typedef struct call_entry {
    int64_t thread; /* thread ID; for the idle thread of CPU n: -1 - n; for a loss: INT64_MIN */
    int64_t time_ns;
    uint32_t function, depth;
} call_entry;

/* Initially all zero. */
typedef struct calls {
    call_function *functions;
    size_t function_count, function_capacity;
    call_edge *edges;
    size_t edge_count, edge_capacity;
    GHashTable *by_name; /* maps a name to 1 plus the index of its function */
    GHashTable *by_ends; /* maps a caller and function to 1 plus the index of their edge */
    call_entry *entries; /* the entries whose callers calls_finish computes */
    size_t entry_count, entry_capacity;
    uint64_t total;         /* number of calls, or of samples */
    uint64_t lost;          /* number of lost events */
    int64_t from_ns, to_ns; /* times of the earliest and latest call */
    bool timed;             /* at least one record contains a duration */
    bool samples;           /* at least one record is a sample */
    char kernel[96];
} calls;

/* Adds a record. Ignores records other than calls, losses and the description of the recording. */
void calls_take(calls *c, const nl_record *record);

/*
 * Adds a loss of `count` calls before the time `time_ns`. A function that a thread entered before the loss never counts
 * as the caller of a call after the loss.
 */
void calls_lose(calls *c, int64_t time_ns, uint64_t count);

/* Computes the callers that the graph tracer did not record. Call this function once, after the last record. */
void calls_finish(calls *c);

static inline const char *calls_name(const calls *c, uint32_t function)
{
    return c->functions[function].name;
}

/*
 * Returns the indices of all functions in descending order of heat. The caller frees the array. The heat is the number
 * of calls to a function. With `chains`, the heat is at least the number of calls by the function, because some
 * functions occur only as callers.
 */
uint32_t *calls_in_order(const calls *c, bool chains);

static inline uint64_t calls_heat(const call_function *f, bool chains)
{
    return chains && f->calling > f->calls ? f->calling : f->calls;
}

/* Sorts the edges by function, then in descending order of calls. Do not add calls afterwards. */
void calls_sort_edges(calls *c);

void calls_free(calls *c);

#endif
