/*
 * A waterfall contains the spans of one request in the order of a tree, the critical path, the median duration of spans
 * with the same name, and the request's records.
 *
 * request_lines.c builds the graph of the request from its records. The waterfall is a copy, so that it can be drawn
 * without the model's lock.
 */
#ifndef NLV_WATERFALL_H
#define NLV_WATERFALL_H

#include "model/model.h"

enum { WATERFALL_SPANS_MAX = 2000, WATERFALL_RECORDS_MAX = 200 };

typedef struct waterfall_span {
    char *name, *place;       /* the span's name; its host and program */
    unsigned host;            /* number of the host; hosts are numbered in the order of their first spans */
    unsigned depth;           /* 0 for a span without a parent */
    unsigned parent;          /* index of a span, or G_MAXUINT */
    int64_t begin_ns, end_ns; /* nanoseconds since the start of the request */
    int64_t path_ns;          /* the span's self time on the critical path in nanoseconds */
    double median_ns; /* median duration in nanoseconds of spans with this name and program in a sample of requests, or
                         -1 */
    bool failed, incomplete;
} waterfall_span;

/* A part of the critical path. */
typedef struct waterfall_step {
    unsigned span; /* index of the span that ran, or G_MAXUINT for the time between two spans */
    int64_t from_ns, to_ns;
} waterfall_step;

/* A record of the request. */
typedef struct waterfall_record {
    int64_t time_ns; /* nanoseconds since the start of the request */
    char *event, *place;
    char *fields; /* the other fields, except the request's ID */
} waterfall_record;

typedef struct waterfall {
    GArray *spans;      /* waterfall_span; parents before their children */
    GArray *path;       /* waterfall_step */
    GArray *records;    /* waterfall_record, by time; empty if the request has too many records for a graph */
    int64_t length_ns;  /* duration of the request */
    unsigned left_out;  /* number of spans beyond WATERFALL_SPANS_MAX */
    unsigned more;      /* number of records beyond WATERFALL_RECORDS_MAX */
    const char *reason; /* a sentence with the reason why there are no spans, or NULL */
} waterfall;

/*
 * Returns the waterfall of the request of a record (request_lines.h). `record` is STORE_NONE if the record is no longer
 * in memory. The caller locks the model, and frees the result.
 */
waterfall *waterfall_read(const model *m, size_t lifeline, uint32_t record);
void waterfall_free(waterfall *w); /* NULL is allowed */

#endif
