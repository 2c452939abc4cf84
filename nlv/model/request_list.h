/*
 * The list of the logs' requests: a summary of each request, and the counts of requests by start and duration
 * (heat_map.h).
 *
 * request_reading.c appends each request after its end. The request table, the heat map and the selection of requests
 * read the list. The list has a maximum number of requests: when it is full, it drops the faster half of the requests
 * without errors. The heat map still counts the dropped requests. The list owns its names. The model's lock protects
 * the list.
 */
#ifndef NLV_REQUEST_LIST_H
#define NLV_REQUEST_LIST_H

#include "model/heat_map.h"
#include "model/names.h"

#include <glib.h>

enum {
    REQUEST_LIST_MAX = 1 << 21,
    REQUEST_LIST_CHUNK = 1 << 14,
    REQUEST_LOGS_MAX = 4,            /* maximum number of logs that the list counts separately */
    REQUEST_NO_LIFELINE = UINT8_MAX, /* request_summary.lifeline of the requests of drawing_threads */
};

/* The reasons why a request counts as an error. A request may have several reasons. */
enum {
    REQUEST_FAILED = 1,     /* a record reports an error: its level or its status */
    REQUEST_INCOMPLETE = 2, /* its start, its end, or an event that similar requests have is missing */
};

typedef struct request_summary {
    int64_t start_ns, duration_ns;
    /* The time and the place (batch.h) of the request's latest record that the drawing shows as a step. Without a
     * lifeline, the members are the time and the place of the latest record. */
    int64_t step_ns;
    uint64_t step_place;
    uint32_t name_hash; /* hash of the values of its ID fields (request_name_hash) */
    uint16_t slowest; /* number of a name in request_list.names: the span or edge with the largest share of the path */
    uint16_t host_count;
    uint8_t share;    /* share of this span or edge on the critical path, in percent */
    uint8_t position; /* start of the longest part of this span or edge, in percent of the request's duration */
    uint8_t lifeline; /* index of the drawing's lifeline, or REQUEST_NO_LIFELINE */
    uint8_t errors;   /* sum of the reasons above; 0: no error */
} request_summary;

/* The requests of one log. */
typedef struct request_log {
    unsigned file;         /* the log's number in the places of its records (place_file) */
    request_summary first; /* the first request of the log in the list */
    heat_map heat;
} request_log;

typedef struct request_list {
    GPtrArray *chunks; /* chunks of REQUEST_LIST_CHUNK summaries, in the order in which the requests ended */
    uint32_t count, max;
    uint64_t dropped; /* number of requests that only the heat map counts */
    names *names;     /* names of spans and edges */
    heat_map heat;    /* the requests of all logs */
    bool by_log;      /* also count the requests of each log separately; set before the first request */
    request_log logs[REQUEST_LOGS_MAX];
    unsigned log_count; /* number of logs with requests; REQUEST_LOGS_MAX + 1: more logs than `logs` can hold */
} request_list;

/* Returns a list of at most `max` requests; `max` is at most REQUEST_LIST_MAX. */
request_list *request_list_new(uint32_t max);
void request_list_free(request_list *l); /* NULL is allowed */

void request_list_append(request_list *l, const request_summary *request);

/* Returns whether the logs [0, log_count) have their own counts, and there are at least two logs. */
static inline bool request_list_has_logs(const request_list *l)
{
    return l->log_count >= 2 && l->log_count <= REQUEST_LOGS_MAX;
}

static inline const request_summary *request_list_at(const request_list *l, uint32_t i)
{
    return (const request_summary *)g_ptr_array_index(l->chunks, i / REQUEST_LIST_CHUNK) + i % REQUEST_LIST_CHUNK;
}

/*
 * Returns the hash of a request's name, for request_summary. The name consists of the values of the ID fields,
 * separated by blanks.
 */
uint32_t request_name_hash(const char *name);

/* Returns the reasons of request_summary.errors as text, or "". */
const char *request_errors_text(uint8_t errors);

/* Returns the errors (request_summary.errors) of those requests of a lifeline whose step is at a place in `places`
 * (uint64_t, sorted). Sets *is_listed to whether the list has a request with a step at these places. */
uint8_t request_list_find_errors(const request_list *l, uint8_t lifeline, const GArray *places, bool *is_listed);

typedef enum request_column {
    REQUEST_BY_START,
    REQUEST_BY_DURATION,
    REQUEST_BY_SLOWEST, /* the name of the span or edge */
    REQUEST_BY_SHARE,
    REQUEST_BY_POSITION,
    REQUEST_BY_HOSTS,
    REQUEST_BY_ERROR,
} request_column;

/* A selection of the requests that meet all conditions. */
typedef struct request_choice {
    int64_t from_ns, to_ns;         /* the times at which the requests start: [from_ns, to_ns) */
    double shortest_ns, longest_ns; /* the durations of the requests: [shortest_ns, longest_ns) */
    bool only_errors;               /* only requests that count as errors */
    const char *text; /* NULL or "": any request. Otherwise, the name of a request, a part of the name of its slowest
                         span, or a part of the word "failed" or "incomplete" */
} request_choice;

extern const request_choice request_choice_all;

/*
 * Sorts the requests of a choice by a column, and then by duration, longest first. Sets *found to the indices of the
 * first `max` requests. The caller frees *found with g_free. Returns the number of all requests of the choice, which
 * may be larger than `max`.
 */
size_t request_list_sort(const request_list *l, const request_choice *choice, request_column column, bool descending,
                         size_t max, uint32_t **found);

#endif
