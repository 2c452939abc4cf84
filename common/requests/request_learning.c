#include "config.h"

#include "requests/request_learning.h"

#include "requests/awaited_spans.h"
#include "requests/path_rivals.h"

#include <glib.h>
#include <stdlib.h>

enum { COMPLETE_MIN = 30 /* with fewer complete requests, also learn from incomplete requests */ };

/* The passes of request_learning_run (see precedence_learn_programs and precedence_learn_kinds), and those of
 * request_learning_run_traces. */
typedef enum learning_pass {
    LEARN_PROGRAMS,
    LEARN_CLOCKS,
    LEARN_KINDS,
    LEARN_FROM_COMPLETE,
    LEARN_FROM_INCOMPLETE,
    LEARN_REPLIES,
    LEARN_AWAITED,
    LEARN_TRACE_CLOCKS
} learning_pass;

struct request_learning {
    precedence *edges;
    clock_shifts *shifts, *trace_shifts; /* from requests without trace IDs, and from traces */
    awaited_spans *awaited;
    learning_pass pass;
    uint32_t learned;            /* number of requests from which the current pass has learned orders */
    bool has_orders, has_traces; /* the learning from requests without trace IDs, or from traces, has ended */
};

request_learning *request_learning_new(const event_names *names)
{
    request_learning *l = g_new0(request_learning, 1);
    l->edges = precedence_new(names);
    l->shifts = clock_shifts_new(names);
    l->trace_shifts = clock_shifts_new(names);
    l->awaited = awaited_spans_new();
    return l;
}

void request_learning_free(request_learning *l)
{
    if (l == NULL)
        return;
    precedence_free(l->edges);
    clock_shifts_free(l->shifts);
    clock_shifts_free(l->trace_shifts);
    awaited_spans_free(l->awaited);
    g_free(l);
}

void request_learning_correct(const request_learning *l, request_event *events, size_t count, bool is_trace)
{
    if (clock_shifts_apply(is_trace ? l->trace_shifts : l->shifts, events, count))
        qsort(events, count, sizeof *events, request_event_compare);
}

static void learn_pass(request_learning *l, const request_event *events, size_t count)
{
    switch (l->pass) {
    case LEARN_PROGRAMS:
        precedence_learn_programs(l->edges, events, count);
        break;
    case LEARN_CLOCKS:
        clock_shifts_learn(l->shifts, precedence_families(l->edges), events, count);
        break;
    case LEARN_KINDS:
        precedence_learn_kinds(l->edges, events, count);
        break;
    case LEARN_FROM_COMPLETE:
    case LEARN_FROM_INCOMPLETE:
        if ((precedence_count_missing(l->edges, events, count) == 0) != (l->pass == LEARN_FROM_COMPLETE))
            break;
        precedence_learn(l->edges, events, count);
        l->learned++;
        break;
    case LEARN_REPLIES:
        precedence_learn_replies(l->edges, events, count);
        break;
    case LEARN_AWAITED:
    case LEARN_TRACE_CLOCKS:
        break; /* see request_learning_add_trace */
    }
}

void request_learning_add(request_learning *l, const request_event *events, size_t count)
{
    request_event *corrected = g_memdup2(events, count * sizeof *events);
    request_learning_correct(l, corrected, count, false);
    learn_pass(l, corrected, count);
    g_free(corrected);
}

void request_learning_run(request_learning *l, request_learning_walk *walk, void *user, const clock_bounds *clocks)
{
    l->pass = LEARN_PROGRAMS;
    walk(user, l);
    l->pass = LEARN_CLOCKS;
    walk(user, l);
    clock_shifts_settle(l->shifts, clocks);
    l->pass = LEARN_KINDS;
    walk(user, l);
    bool has_losses = precedence_settle_kinds(l->edges);
    l->pass = LEARN_FROM_COMPLETE;
    walk(user, l);
    l->pass = LEARN_FROM_INCOMPLETE;
    if (l->learned < COMPLETE_MIN && has_losses)
        walk(user, l);
    const bool has_callers = precedence_settle(l->edges);
    l->pass = LEARN_REPLIES;
    if (has_callers)
        walk(user, l);
    precedence_settle_replies(l->edges);
    l->has_orders = true;
}

void request_learning_add_trace(request_learning *l, request_graph *g, const request_event *events, size_t count,
                                const clock_bounds *clocks)
{
    request_event *corrected = g_memdup2(events, count * sizeof *events);
    request_learning_correct(l, corrected, count, true);
    request_learning_build(l, g, corrected, count, true, clocks);
    if (l->pass == LEARN_TRACE_CLOCKS)
        clock_shifts_learn_trace(l->trace_shifts, g, l->awaited);
    else
        awaited_spans_learn(l->awaited, g);
    g->events = NULL;
    g->event_count = 0;
    g_free(corrected);
}

void request_learning_run_traces(request_learning *l, request_learning_walk *walk, void *user,
                                 const clock_bounds *clocks)
{
    l->pass = LEARN_AWAITED;
    walk(user, l);
    awaited_spans_settle(l->awaited);
    l->has_traces = true;
    l->pass = LEARN_TRACE_CLOCKS;
    walk(user, l);
    clock_shifts_settle(l->trace_shifts, clocks);
}

void request_learning_build(const request_learning *l, request_graph *g, request_event *events, size_t count,
                            bool is_trace, const clock_bounds *clocks)
{
    request_graph_build(g, events, count, l->has_orders && !is_trace ? l->edges : NULL, clocks,
                        l->has_traces ? l->awaited : NULL);
    if (!l->has_orders || is_trace)
        return;
    g->problems.doubtful_clocks = clock_doubts_count(clock_shifts_doubts(l->shifts), events, count);
    g->problems.rivals = path_rivals_count(g, l->edges, l->shifts);
}

size_t request_learning_corrected_hosts(const request_learning *l, int64_t *max_ns)
{
    int64_t trace_max_ns;
    const size_t count = clock_shifts_count(l->shifts, max_ns),
                 of_traces = clock_shifts_count(l->trace_shifts, &trace_max_ns);
    *max_ns = MAX(*max_ns, trace_max_ns);
    return MAX(count, of_traces);
}

const clock_doubts *request_learning_clock_doubts(const request_learning *l)
{
    return clock_shifts_doubts(l->shifts);
}
