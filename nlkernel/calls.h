/*
 * Who called whom, how often: what recorded calls of functions come to.
 *
 * Taken are records of the function tracer (ftrace.function: FUNCTION, CALLER), of the function graph tracer
 * (ftrace.funcgraph_entry and the like: FUNCTION and DEPTH, whose callers are known by what the same thread entered
 * before, be it on another CPU, whose records may come later: so they are found out at the end), and samples with call
 * chains (STACK, "outermost;...;innermost", or SYMBOL alone). One thread.
 */
#ifndef NLKERNEL_CALLS_H
#define NLKERNEL_CALLS_H

#include <netlogger.h>

enum { CALLS_NONE = UINT32_MAX };

typedef struct call_function {
    uint32_t name, size;     /* place among the names, NUL behind it */
    uint64_t calls, calling; /* of it, and of others by it */
    int64_t time_ns;         /* in it and what it called, where that was measured */
} call_function;

typedef struct call_edge {
    uint32_t caller, function; /* places */
    uint64_t calls;
} call_edge;

typedef struct call_table {
    uint32_t *places; /* one more than the place; 0: free */
    size_t capacity;  /* a power of two */
} call_table;

/* A function that a thread entered, as the function graph tracer has it; or, without one, that something was lost. */
typedef struct call_entry {
    int64_t thread; /* of idle threads the CPU, negative */
    int64_t time_ns;
    uint32_t function, depth;
} call_entry;

typedef struct calls {
    call_function *functions;
    size_t function_count;
    call_edge *edges;
    size_t edge_count;
    nl_buffer names;
    call_table by_name, by_ends;
    call_entry *entries; /* whose callers calls_finish finds out */
    size_t entry_count;
    uint64_t total; /* calls, or samples */
    uint64_t lost;
    int64_t from_ns, to_ns;
    bool timed;   /* some time was measured */
    bool samples; /* there were samples with their chains */
    char kernel[96];
} calls;

/* Zeroes at first. What is no call is passed over. */
void calls_take(calls *c, const nl_record *record);

/* So many calls are missing before that time: who was within what is not known any more. */
void calls_lose(calls *c, int64_t time_ns, uint64_t count);

/* Once all are taken: finds the callers that could not be known before. */
void calls_finish(calls *c);

/* One call; caller {NULL, 0}: not known. Returns the function's place. */
uint32_t calls_add(calls *c, nl_string caller, nl_string function);

const char *calls_name(const calls *c, uint32_t function);

/*
 * Places of functions, most calls first, to be freed. chains: what calls others often is as hot as what is called;
 * there are functions that are never seen but as callers.
 */
uint32_t *calls_in_order(const calls *c, bool chains);

/* How hot a function is, as calls_in_order has it. */
static inline uint64_t calls_heat(const call_function *f, bool chains)
{
    return chains && f->calling > f->calls ? f->calling : f->calls;
}

/* Puts the edges in order of their function, and of those most calls first. */
void calls_sort_edges(calls *c);

void calls_free(calls *c);

#endif
