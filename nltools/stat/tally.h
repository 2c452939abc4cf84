/*
 * Adds up the critical paths of many requests by span and by edge, to show the share of each span and edge in the
 * requests' time.
 *
 * A row is a span's name in one program, an edge between two events, a part of a span between two of its own events, or
 * a group of requests. The times of spans and edges on the critical paths add up to the time of all requests. The
 * maximum numbers of rows, values and examples limit the memory. Not thread-safe.
 */
#ifndef NLSTAT_TALLY_H
#define NLSTAT_TALLY_H

#include "base/distribution.h"
#include "requests/assembler.h"
#include "stat/series.h"
#include "stat/transfers.h"

#include <glib.h>

enum { TALLY_PATH_MAX = 1000 };

/* The group that collects the times of new groups when there are too many rows. */
#define TALLY_BY_OTHERS UINT32_MAX

typedef enum tally_kind { TALLY_SPAN, TALLY_EDGE, TALLY_PART, TALLY_GROUP } tally_kind;

typedef struct tally_key {
    uint32_t kind;          /* tally_kind */
    uint32_t span, program; /* numbers of the names of the span and the program; also set for parts */
    uint32_t from, to;      /* numbers of the names of events; REQUEST_NONE: no event */
    uint32_t inferred;
    uint32_t by; /* number of the group */
} tally_key;

typedef struct tally_row {
    tally_key key;
    uint64_t path_count; /* number of steps on critical paths */
    double path_ns;      /* total duration of these steps in nanoseconds */
    double certainty;    /* sum of the steps' certainty (request_step) */
    double self_ns;      /* for spans: the time in which no child was running */
    uint64_t failed;
    nl_distribution times; /* durations of the spans or requests; for edges and parts, durations of the steps */
} tally_row;

/* A part of an example's critical path: consecutive steps that belong to one row. */
typedef struct tally_step {
    tally_key key;
    int64_t from_ns, took_ns;
} tally_step;

/* A request that the report shows individually. */
typedef struct tally_example {
    char *name;
    uint32_t by;
    int64_t from_ns, total_ns;
    request_span *spans; /* in tree order: parents before their children, siblings by time */
    size_t span_count;
    tally_step *path;  /* in order of time */
    size_t path_count; /* at most TALLY_PATH_MAX */
    tally_key longest; /* the row with the largest share of the critical path */
    double longest_ns;
    bool failed;
    unsigned doubts; /* sum of request_doubt */
} tally_example;

/* The numbers of requests that begin or end with an event, and of requests that contain the event. Index 0: first
 * event; index 1: last event. */
typedef struct tally_event {
    uint64_t ends[2];
    uint64_t requests[2]; /* number of requests that have the event and are incomplete at this end */
    uint64_t latest;      /* number of the latest request that has the event */
} tally_event;

/* Spans whose start and end were logged in different time zones. */
typedef struct tally_zone {
    uint32_t event, host; /* event and host of the starts */
    int64_t zone_ns; /* difference of the time zones in nanoseconds, which request_graph_build added to the times of the
                        starts */
    uint64_t count;
} tally_zone;

enum { TALLY_ZONES_MAX = 16, TALLY_CACHE_SIZE = 1024 };

typedef struct tally {
    size_t slowest_max;
    /* cut: number of requests that nlstat measured before they ended; left_out: number of durations without a row */
    uint64_t requests, failed, cut, left_out;
    /* Numbers of requests whose path may be wrong (request_doubt): for any reason; because of missing records, wrong
     * clocks, or contradictory times. */
    uint64_t doubtful, lossy, skewed, contradictory;
    double doubtful_ns;        /* duration of the doubtful requests */
    request_problems problems; /* sums over all requests */
    tally_zone zones[TALLY_ZONES_MAX];
    size_t zone_count;
    nl_distribution totals; /* durations from the first event to the last */
    series totals_series;   /* the same durations, by the requests' end times */
    GPtrArray *rows;   /* elements are tally_row; sorted by share after tally_finish, with parts after their spans */
    GPtrArray *groups; /* elements are tally_row; sorted like rows. NULL: requests have no groups */
    GArray *slowest;   /* elements are tally_example; the slowest comes first after tally_finish */
    GHashTable *by_key;
    transfers *transfers;
    GArray *events;    /* elements are tally_event; indexed by the number of the name */
    uint64_t whole[2]; /* number of requests that are complete at each end (tally_count_without) */
    uint64_t value_count, value_count_max;
    tally_row *cache[TALLY_CACHE_SIZE]; /* indexed by a hash of the key */
} tally;

/*
 * Returns a new tally, which keeps at most slowest_max examples. If `groups` is true, the tally also adds up the
 * requests of each group.
 */
tally *tally_new(size_t slowest_max, bool groups);
void tally_free(tally *t); /* t may be NULL */

/*
 * If the reader's current record reports a transfer, appends the number of bytes and the name of the transferred
 * object, such as a file, to `buffer`. For assembler_pack.
 */
void tally_pack(const request_reader *reader, nl_buffer *buffer);

/* Adds a request (assembler_take). */
void tally_add(tally *t, const request_reader *reader, const request_graph *graph, const char *name, uint32_t by,
               bool cut);

/* Sorts the results. Call the function after the last request. */
void tally_finish(tally *t);

/*
 * Returns the number of requests that lack the event with which most requests begin. If `last` is true, uses the event
 * with which most requests end. Sets *name to this event. There must be at least one request. The usual last step may
 * be optional. A request without this step therefore counts as complete if all its spans have ended, and its last event
 * is the end of a span in the program that began the request.
 */
uint64_t tally_count_without(const tally *t, bool last, uint32_t *name);

#endif
