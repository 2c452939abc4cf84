/*
 * Where the time of many requests goes: sums of their critical paths, by span and by edge.
 *
 * A row is a span's name in one program, an edge between two events, or a part of a span between two of its own events.
 * The shares of spans and edges on the critical paths add up to the time of all requests. Memory is bounded by the
 * limits of rows, values and examples. One thread at a time.
 */
#ifndef NLSTAT_TALLY_H
#define NLSTAT_TALLY_H

#include "base/distribution.h"
#include "requests/assembler.h"
#include "stat/series.h"
#include "stat/transfers.h"

#include <glib.h>

enum { TALLY_PATH_MAX = 1000 };

typedef enum tally_kind { TALLY_SPAN, TALLY_EDGE, TALLY_PART } tally_kind;

typedef struct tally_key {
    uint32_t kind;          /* tally_kind */
    uint32_t span, program; /* names; of parts too */
    uint32_t from, to;      /* names of events; REQUEST_NONE: none */
    uint32_t inferred;
    uint32_t by; /* number of the group */
} tally_key;

typedef struct tally_row {
    tally_key key;
    uint64_t path_count; /* steps of critical paths */
    double path_ns;      /* their time */
    double certainty;    /* sum over these steps, see request_step */
    double self_ns;      /* of spans: the time in which no child ran */
    uint64_t failed;
    nl_distribution times; /* durations of spans; otherwise of steps */
} tally_row;

/* A part of an example's critical path: consecutive steps of one row. */
typedef struct tally_step {
    tally_key key;
    int64_t from_ns, took_ns;
} tally_step;

/* A request that is shown by itself. */
typedef struct tally_example {
    char *name;
    uint32_t by;
    int64_t from_ns, total_ns;
    request_span *spans; /* in the order of a tree: parents before their children, by time */
    size_t span_count;
    tally_step *path;  /* in order of time */
    size_t path_count; /* at most TALLY_PATH_MAX */
    tally_key longest; /* the row that has most of its critical path */
    double longest_ns;
    bool failed;
} tally_example;

/* How many requests have an event, and how many begin and end with it. [1]: for the last event, [0]: for the first. */
typedef struct tally_event {
    uint64_t ends[2];
    uint64_t requests[2]; /* that have the event and are not whole at this end */
    uint64_t latest;      /* number of the latest request that has it */
} tally_event;

/* Spans whose begins were logged in another time zone than their ends. */
typedef struct tally_zone {
    uint32_t event, host; /* of the begins */
    int64_t zone_ns;      /* was added to the begins' times */
    uint64_t count;
} tally_zone;

enum { TALLY_ZONES_MAX = 16, TALLY_CACHE_SIZE = 1024 };

typedef struct tally {
    size_t slowest_max;
    uint64_t requests, failed, cut, left_out;
    request_problems problems; /* sums */
    tally_zone zones[TALLY_ZONES_MAX];
    size_t zone_count;
    nl_distribution totals; /* from the first event to the last */
    series totals_series;   /* by the times at which requests ended */
    GPtrArray *rows;        /* tally_row; by share after tally_finish, parts behind their spans */
    GArray *slowest;        /* tally_example; the slowest first after tally_finish */
    GHashTable *by_key;
    transfers *transfers;
    GArray *events;    /* tally_event by name */
    uint64_t whole[2]; /* requests whose first and last events need no others, see tally_count_without */
    uint64_t value_count, value_count_max;
    tally_row *cache[TALLY_CACHE_SIZE]; /* by key */
} tally;

/* Keeps at most slowest_max examples. */
tally *tally_new(size_t slowest_max);
void tally_free(tally *t); /* NULL is allowed */

/* Keeps the bytes of transfers with an event: for assembler_pack. */
void tally_pack(const request_reader *reader, nl_buffer *buffer);

/* Adds a request, see assembler_take. */
void tally_add(tally *t, const request_reader *reader, const request_graph *graph, const char *name, uint32_t by,
               bool cut);

/* Sorts the results. Call it after the last request. */
void tally_finish(tally *t);

/*
 * Returns how many requests lack the event with which most requests begin, or with last, end. Sets *name to the event;
 * there must be a request. Steps may be optional: a request that ends with the end of a span lacks nothing if this span
 * is in the program that began the request, and all spans have ended.
 */
uint64_t tally_count_without(const tally *t, bool last, uint32_t *name);

/* Returns the row of a key, or NULL. */
tally_row *tally_find(const tally *t, const tally_key *key);

#endif
