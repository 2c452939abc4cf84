/*
 * The gaps between the moments of requests on different hosts, as evidence about the hosts' clocks (clock_shifts.h,
 * clock_doubts.h). A moment is a point, or the start or the end of a span. The gap from one moment to another moment is
 * the difference of their logged times.
 *
 * Memory is bounded: the module learns from at most CLOCK_GAPS_HOSTS_MAX hosts, and from about a million gaps. Callers:
 * clock_shifts.c. Only one thread at a time may use the object.
 */
#ifndef NETLOGGER_REQUESTS_CLOCK_GAPS_H
#define NETLOGGER_REQUESTS_CLOCK_GAPS_H

#include "requests/awaited_spans.h"
#include "requests/program_families.h"

#include <glib.h>

enum { CLOCK_GAPS_HOSTS_MAX = 64 /* the module ignores requests that visit further hosts */ };

/* The gaps from the moments of one kind to the moments of another kind, on two hosts. */
typedef struct gap_set {
    uint64_t a, b;           /* the kinds of moments; a < b */
    uint16_t host_a, host_b; /* indices in clock_gaps.hosts */
    uint64_t span_a, span_b; /* the kinds of the spans that these moments begin or end; 0 for points */
    event_side side_a, side_b;
    uint32_t firsts_a, firsts_b;       /* numbers of gaps from and to the first moment of a place */
    uint32_t entrances_a, entrances_b; /* numbers of these gaps, if the place has several moments */
    uint32_t alone;                    /* number of gaps of requests that visit only the two places */
    bool is_call, is_reply;            /* the gaps between the starts, or between the ends, of calls */
    uint32_t outliving;                /* number of replies without a gap, because the caller did not wait for them */
    GArray *gaps;                      /* int64_t: in nanoseconds; sorted by clock_gaps_sort */
} gap_set;

typedef struct clock_gaps {
    GArray *hosts;     /* uint32_t: numbers of the hosts, without 0 */
    GArray *durations; /* int64_t: durations of the requests in nanoseconds; sorted by clock_gaps_sort */
    GHashTable *sets;  /* a set of gap_set */
    const event_names *names;
    uint32_t pairs;
} clock_gaps;

/* `names` has the names of the events and must outlive the object. If it is NULL, events without a role are points. */
clock_gaps *clock_gaps_new(const event_names *names);
void clock_gaps_free(clock_gaps *c); /* NULL is allowed */

/*
 * Learns from the events of one request. Only the first moment of each kind counts. `families` determines the kinds of
 * events. Ignores large requests.
 */
void clock_gaps_learn(clock_gaps *c, const program_families *families, const request_event *events, size_t count);

/*
 * Learns from the calls of a trace: spans that name a parent on another host. Adds the gap from the start of the parent
 * to the start of the child (is_call) and, in another set, the gap from the end of the child to the end of the parent
 * (is_reply). If a child ends after its parent, `awaited` determines whether the parent waited for the child. Uses the
 * logged times, without the graph's shifts.
 */
void clock_gaps_learn_calls(clock_gaps *c, const request_graph *g, const awaited_spans *awaited);

/*
 * Sorts the times of each set, and returns the sets with gaps, sorted by their kinds. The caller frees the array; `c`
 * owns the sets.
 */
GPtrArray *clock_gaps_sort(clock_gaps *c);

/* Returns the median duration of the requests in nanoseconds, or 0. Call it after clock_gaps_sort. */
int64_t clock_gaps_median_duration(const clock_gaps *c);

/* Removes all gaps. Keeps the hosts. */
void clock_gaps_clear(clock_gaps *c);

#endif
