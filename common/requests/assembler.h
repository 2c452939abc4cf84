/*
 * Gathers the events of a stream of records into requests. When a request is over, the module hands out the request: it
 * calls assembler_options.take with the request's graph.
 *
 * A request is complete when its latest event is of the kind with which most requests end. A trace is complete when its
 * root and its other spans have ended. A complete request is over after ASSEMBLER_IDLE_S seconds of the log's time
 * without an event. Other requests are over after assembler_options.pause_s seconds without an event. A request is also
 * over when its ID begins another request (restarts.h). Records may be out of order by up to ASSEMBLER_IDLE_S seconds.
 *
 * From the first ASSEMBLER_LEARNED requests with ID fields, the module learns which events cause other events
 * (precedence.h), and which first events are repeated steps (restarts.h). The module hands out these requests at the
 * end of the learning. The module also learns small differences between the clocks of hosts (clock_shifts.h), and
 * corrects the times of the events that it hands out. From the first ASSEMBLER_LEARNED traces, the module learns
 * differences between clocks, and which spans wait for their children (awaited_spans.h).
 *
 * Without IDs, each outermost span of a thread is a request. If outermost spans overlap, the module cannot know which
 * records belong together. The module counts these spans, and hands them out as one graph whose member `overlaps` is
 * true.
 *
 * Memory is bounded: beyond memory_max, the module hands out requests early, complete requests first. Only one thread
 * at a time may use an assembler.
 */
#ifndef NETLOGGER_REQUESTS_ASSEMBLER_H
#define NETLOGGER_REQUESTS_ASSEMBLER_H

#include "requests/clock_doubts.h"
#include "requests/request_filter.h"
#include "requests/request_graph.h"
#include "requests/request_reader.h"

enum {
    ASSEMBLER_IDLE_S = 10,
    ASSEMBLER_PAUSE_MAX_S = 24 * 3600,
    ASSEMBLER_LEARNED = 1000,
    ASSEMBLER_PAYLOAD_MAX = 1 << 16
};

typedef struct assembler assembler;

/*
 * Receives a request. All arguments are valid only during the call. `name` is the request's ID or, for a span of a
 * thread, the name of the span. `by` is the number of the request's group (see assembler_by). If `cut` is true, the
 * assembler reached memory_max before the request was over.
 */
typedef void assembler_take(void *user, const request_graph *graph, const char *name, uint32_t by, bool cut);

/*
 * Appends the data that the user needs from a record (the payload) to `buffer`. The assembler drops a payload of more
 * than ASSEMBLER_PAYLOAD_MAX bytes. The payload of an event is at graph->payloads + event->payload. The assembler calls
 * this function in the order of the records.
 */
typedef void assembler_pack(void *user, const nl_record *record, nl_buffer *buffer);

typedef struct assembler_options {
    const char *const *ids; /* ID fields (see request_reader_new) */
    /*
     * The names of the events that belong to requests, ended by NULL. NULL means all events. The caller keeps the
     * names.
     */
    const char *const *events;
    bool again;           /* each occurrence of the first event in `events` begins a new request */
    bool untraced;        /* ignore records that have a trace ID, because another assembler builds their requests */
    bool has_nanoseconds; /* see request_reader_expect_nanoseconds */
    bool splits_unnamed;  /* see request_reader_split_unnamed */
    nl_fraction fraction;
    /*
     * The name of the field whose first value in a request is the request's group. If `by` is "HOST", the group is the
     * rarest host of the request (the host that the fewest requests visit). If `by` is NULL, requests have no group.
     * The caller keeps the string.
     */
    const char *by;
    const request_filter *where; /* `take` gets only matching requests and overlapping spans; NULL: all */
    size_t memory_max;           /* bytes */
    size_t request_max;   /* bytes; the assembler hands out larger requests in parts, with `cut` set; 0: no limit */
    unsigned pause_s;     /* maximum time in seconds between two events of a request; 0: ASSEMBLER_PAUSE_MAX_S */
    assembler_pack *pack; /* NULL: events have no payload */
    assembler_take *take;
    assembler_take *others; /* gets the requests that do not match `where`; NULL: the assembler drops these requests */
    assembler_take *rest; /* gets the events of threads that no span encloses; NULL: the assembler drops these events */
    void *user;
} assembler_options;

assembler *assembler_new(const assembler_options *options);
void assembler_free(assembler *a); /* NULL is allowed. Drops the requests that were not handed out */

/*
 * Adds a record. Returns whether the record belongs to a request. Also add the records of sensors, because some of them
 * bound the differences between hosts' clocks.
 */
bool assembler_add(assembler *a, const nl_record *record);

/*
 * From the requests that have been idle longest, learns with which events most requests end. These requests need not be
 * over. If `enough` is true, also ends the learning, and hands out the requests that are over. Does nothing after the
 * learning. More records may follow.
 */
void assembler_learn(assembler *a, bool enough);

/* Hands out all remaining requests. Call it after the last record. */
void assembler_finish(assembler *a);

/*
 * Builds the graph of some events of a request that was handed out. `events` is the user's copy of these events. The
 * user has created `g` with the event names of assembler_reader. The function does not set g->payloads.
 */
void assembler_build_part(const assembler *a, request_graph *g, request_event *events, size_t count);

/*
 * Returns the number of outermost spans in the graphs whose member `overlaps` is true. The requests of these spans are
 * unknown.
 */
uint64_t assembler_overlapping(const assembler *a);

/* Returns the number of requests that do not match assembler_options.where. */
uint64_t assembler_unselected(const assembler *a);

/* Returns the number of hosts whose times were corrected. Sets *max_ns to the largest correction, or to 0. */
size_t assembler_corrected_hosts(const assembler *a, int64_t *max_ns);

/* Returns the hosts whose clocks seem to differ. Valid until assembler_free. */
const clock_doubts *assembler_clock_doubts(const assembler *a);

/* Returns the text of the group with the number `by`, or "" for 0. The assembler owns the text. */
const char *assembler_by(const assembler *a, uint32_t by);

/* Returns the reader, which has the names of events, hosts and programs in graphs. */
const request_reader *assembler_reader(const assembler *a);

#endif
