/*
 * One request as a graph of spans and events, and its critical path (doc/concepts.md, "Requests"). Spans come from
 * explicit identifiers, from pairs of begin and end events, and from records with a duration. A span's parent is the
 * span that its record names. If the record names neither a span nor a parent, the parent is the smallest enclosing
 * span. The module searches the same thread, then the main thread of the process, and then the main thread of the
 * program. If one record describes a span, a span of any program can be its parent (whole_spans.h). If explicit parents
 * do not join two programs, precedence joins them (precedence.h); the module marks such edges as inferred.
 *
 * Each nanosecond between the first and the last event belongs to one step of the critical path (critical_path.h).
 *
 * If the start or end of an explicit span is missing, the module estimates it from the span's children, because a span
 * contains its children. The member `problems` counts such spans. If hosts' clocks differ, clock_alignment.h corrects
 * the times of spans and of the path, but not the times of events. A build reuses the memory of the previous build. For
 * n events, a build takes O(n) memory and usually O(n log n) time. `problems` counts inconsistent times, missing
 * parents, and parents that form cycles. Only one thread at a time may use a graph.
 */
#ifndef NETLOGGER_REQUESTS_REQUEST_GRAPH_H
#define NETLOGGER_REQUESTS_REQUEST_GRAPH_H

#include "requests/clock_bounds.h"
#include "requests/event_names.h"

#include <glib.h>
#include <stdbool.h>

#define REQUEST_NONE UINT32_MAX

/*
 * Maximum distance of the start or end of an event from 1970, in nanoseconds. This limit prevents overflows in
 * differences of times.
 */
#define REQUEST_TIME_MAX (INT64_MAX / 2 - INT64_C(1000000000000000))

/* The role of an event: a point, the start of a span, the end of a span, or a whole span. */
typedef enum request_role { REQUEST_POINT, REQUEST_BEGIN, REQUEST_END, REQUEST_WHOLE } request_role;

typedef struct request_event {
    int64_t time_ns;           /* for a whole span, the time of its end */
    int64_t duration_ns;       /* duration of a whole span, or the duration in an end record */
    uint64_t span_id, parent;  /* hashes of explicit identifiers, or 0 */
    uint32_t name;             /* number of the event's name */
    uint32_t span_name;        /* number of the span's name; for points, the same number as `name` */
    uint32_t place;            /* number of the host and program */
    uint32_t program;          /* number of the program, the same on every host */
    uint32_t host;             /* number of the host */
    uint32_t thread;           /* number of the thread; 0 if unknown */
    uint32_t order;            /* if two events have the same time, the event with the lower order came first */
    uint32_t payload;          /* offset in the request's payloads (assembler.h) */
    uint32_t payload_size;     /* size of the payload in bytes */
    uint32_t matches;          /* see request_filter_match_record; set by the assembler */
    uint16_t process;          /* number of the process; 0 if unknown */
    uint16_t family, families; /* numbers of the patterns of the program's name in which "*" replaces the last number,
                                  and all numbers; 0: no such pattern (program_families.h) */
    uint8_t role : 2;          /* request_role */
    uint8_t rounding : 5;      /* the duration is rounded to a multiple of 10^rounding ns */
    bool failed : 1;           /* the record reports an error */
    int8_t zone : 7; /* number of half hours that request_graph_build added to the time, because the time was in another
                        zone */
    bool traced : 1; /* a trace ID names the request */
} request_event;

/* Returns the event's kind: a number that is equal for events with the same name and program. */
static inline uint64_t request_event_kind(const request_event *e)
{
    return (uint64_t)e->program << 32 | e->name;
}

/* Returns the time at which an event begins: for a whole span, its start. */
static inline int64_t request_event_begin(const request_event *e)
{
    return e->time_ns - (e->role == REQUEST_WHOLE ? e->duration_ns : 0);
}

/* Compares two events by time, and with equal times by order. For qsort; the arguments are pointers to the events. */
int request_event_compare(const void *a, const void *b);

/* Returns how an event changes the number of open spans of its thread: 1, -1 or 0. `names` has the event's name. */
int request_event_nesting(const request_event *e, const event_names *names);

/* Returns the maximum error of a whole span's start in nanoseconds, due to the rounding of its time and duration. */
static inline int64_t request_event_rounding(const request_event *e)
{
    int64_t rounding_ns = 1000; /* rounding of the record's time; most records have microseconds */
    for (unsigned digits = e->rounding; digits > 3; digits--)
        rounding_ns *= 10;
    return rounding_ns;
}

typedef struct request_span {
    int64_t begin_ns, end_ns;
    int64_t self_ns; /* the time in which no child ran */
    int64_t path_ns; /* the part of self_ns that is on the critical path */
    uint64_t id;     /* 0 if the span has no explicit identifier */
    uint32_t name, place, program, host, thread;
    uint32_t begin, end; /* indices of the start event and the end event; REQUEST_NONE if the record is missing */
    uint32_t parent;     /* index of a span, or REQUEST_NONE */
    uint32_t child_count;
    uint32_t depth;   /* 0 if the span has no parent */
    int64_t zone_ns;  /* time added to the span's start (see request_graph_build), or 0 */
    int64_t shift_ns; /* time added to the span's start and end because of its host's clock (clock_alignment.h), or 0 */
    uint16_t process;
    bool names_parent; /* a record names the span's parent, whose records may be missing */
    bool inferred_parent;
    bool outlives_parent; /* the span ends after its parent, which did not wait for it */
    bool incomplete;      /* the span is explicit, and its start or end is missing */
    bool failed;
} request_span;

typedef enum request_step_kind {
    REQUEST_SELF,    /* a span ran */
    REQUEST_EDGE,    /* the time between two events: a message, a queue, or program code that no span covers */
    REQUEST_UNKNOWN, /* the time before an event whose cause is unknown */
} request_step_kind;

typedef struct request_step {
    request_step_kind kind;
    int64_t from_ns, to_ns;
    uint32_t span;     /* REQUEST_SELF: index of the span */
    uint32_t from, to; /* indices of the events before and after the step; `from` is REQUEST_NONE for REQUEST_UNKNOWN */
    bool inferred;
    float certainty; /* for an inferred edge, the share of requests with this order (precedence.h); otherwise 1 */
} request_step;

/* An edge of the graph: `to` could not happen before `from`. */
typedef struct request_edge {
    uint32_t from, to; /* indices of events */
    float certainty;   /* see request_step */
    bool inferred;     /* follows from precedence (precedence.h), not from explicit parents or program order */
    bool is_start;     /* leads from the start of a span to the start of a child whose record names this span */
} request_edge;

typedef struct request_problems {
    uint32_t no_begin, no_end; /* numbers of spans without a start record and without an end record */
    uint32_t no_parent;        /* number of spans whose records name a missing parent */
    uint32_t cycles;           /* number of parents that were removed because spans were their own ancestors */
    uint32_t violations; /* number of children that begin before their parents by more than the bound of their clocks */
    uint32_t one_clock;  /* number of violations between programs with the same clock */
    uint32_t imprecise;  /* number of children that begin before or end after their parents by no more than the bound of
                            their clocks */
    uint32_t
        unknown_clocks; /* number of children that begin before their parents, between clocks with unknown errors */
    uint32_t async;     /* number of spans that end after their parents by more than the bound of their clocks */
    uint32_t late;      /* number of spans that end after their parents, between clocks with unknown errors; they are
                           asynchronous, or a clock is wrong */
    uint32_t awaited;   /* number of spans that end after their parents, which waited for them (awaited_spans.h) */
    uint32_t doubtful_clocks; /* number of pairs of visited hosts whose clocks seem to differ (clock_doubts.h); set by
                                 the assembler */
    uint32_t rivals;          /* number of steps of the path that small errors of clocks may change (path_rivals.h) */
    uint32_t missing;         /* number of kinds of events whose records are probably lost (precedence_count_missing) */
} request_problems;

/* The reasons why the path of a request may be wrong. A set of reasons is the sum of their values. */
typedef enum request_doubt {
    REQUEST_DOUBT_RECORDS = 1, /* records are missing */
    REQUEST_DOUBT_CLOCKS = 2,  /* errors of hosts' clocks may change the path */
    REQUEST_DOUBT_TIMES = 4,   /* times or parents contradict each other, and clock errors cannot explain this */
} request_doubt;

/* Returns the set of reasons (request_doubt) that the problems give, or 0. */
unsigned request_problems_doubts(const request_problems *p);

struct precedence;
struct awaited_spans;

/* The members are valid until the next request_graph_build. */
typedef struct request_graph {
    request_event *events; /* the events, in order of time */
    size_t event_count;
    request_span *spans;
    size_t span_count;
    request_step *path; /* the steps from the first event to the last event */
    size_t path_count;
    int64_t from_ns, to_ns;
    request_problems problems;
    bool failed;          /* an event or a span failed */
    bool overlaps;        /* set by the assembler: the spans belong to several requests that cannot be distinguished */
    const char *payloads; /* see assembler_pack; NULL if the events have no payloads */
} request_graph;

/*
 * Returns the difference between the time zones of a span's start and end in nanoseconds: a multiple of half an hour,
 * or 0. error_ns is the logged end minus the measured duration minus the logged start.
 */
int64_t request_find_zone(int64_t error_ns);

/* Creates a graph, which the caller frees. `names` must outlive the graph. */
request_graph *request_graph_new(const event_names *names);
void request_graph_free(request_graph *g); /* NULL is allowed */

/*
 * Builds the graph of one request from at least one event. The times of the events must be within REQUEST_TIME_MAX. The
 * events may be in any order; the function sorts them. The events must stay valid while the graph is used. If `edges`
 * is NULL, only explicit parents join programs. If the duration in an end event proves that the start event is in
 * another time zone, the function corrects the start by a multiple of half an hour. If `clocks` is NULL, nothing is
 * known about the hosts' clocks. If `awaited` is NULL, nothing is known about spans that wait for children.
 */
void request_graph_build(request_graph *g, request_event *events, size_t count, const struct precedence *edges,
                         const clock_bounds *clocks, const struct awaited_spans *awaited);

/*
 * Appends the edges between events of the latest request_graph_build to `edges`, an array of request_edge. The edges
 * show where concurrent parts of the request fork and join. The function omits edges that other edges imply. Call it
 * before the graph, its events, or the `edges` of request_graph_build change.
 */
void request_graph_find_edges(const request_graph *g, GArray *edges);

#endif
