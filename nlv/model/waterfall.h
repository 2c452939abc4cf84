/*
 * A waterfall contains the spans of one request in the order of a tree, the critical path, and the request's records.
 * It also contains the waits, which are the long edges of the critical path between spans. Each span and wait has the
 * median duration of the same spans and waits of other requests.
 *
 * request_lines.c builds the graph of the request from its records. The waterfall is a copy, so that threads can draw
 * it without the model's lock.
 */
#ifndef NLV_WATERFALL_H
#define NLV_WATERFALL_H

#include "model/model.h"

enum {
    WATERFALL_ROWS_MAX = 2000,
    WATERFALL_RECORDS_MAX = 200,
    WATERFALL_WAITS_MAX = 100, /* maximum ratio of the request's duration to a wait's duration */
};

/* A span, or a wait. */
typedef struct waterfall_row {
    bool is_wait;
    char *name;               /* the span's name, or the names of the events before and after the wait */
    char *place;              /* host and program; for a wait between two places, both places */
    unsigned color;           /* number of the color of the span's host */
    unsigned depth;           /* 0 for a row without a parent */
    unsigned parent;          /* index of the row of a span, or G_MAXUINT */
    int64_t begin_ns, end_ns; /* nanoseconds since the start of the request */
    int64_t path_ns;          /* the span's self time or the wait's time on the critical path, in nanoseconds */
    double median_ns; /* median duration in nanoseconds, in a sample of requests, of spans with this name and program,
                         or of waits between these events; -1: unknown */
    double certainty; /* for a wait whose edge is inferred, see request_step; otherwise 1 */
    bool failed, incomplete, inferred;
} waterfall_row;

/* A part of the critical path. */
typedef struct waterfall_step {
    unsigned row; /* index of the running span or of the wait, or G_MAXUINT for a short edge */
    int64_t from_ns, to_ns;
} waterfall_step;

/* A record of the request. */
typedef struct waterfall_record {
    int64_t time_ns; /* nanoseconds since the start of the request */
    char *event, *place;
    char *fields; /* the other fields, except the request's ID */
} waterfall_record;

typedef struct waterfall {
    GArray *rows;       /* waterfall_row; parents before their children */
    GArray *path;       /* waterfall_step */
    GArray *records;    /* waterfall_record, by time; empty if the request has too many records for a graph */
    int64_t length_ns;  /* duration of the request */
    unsigned left_out;  /* number of rows beyond WATERFALL_ROWS_MAX */
    unsigned more;      /* number of records beyond WATERFALL_RECORDS_MAX */
    const char *reason; /* a sentence with the reason why there are no rows, or NULL */
} waterfall;

/*
 * Returns the waterfall of the request of a record (request_lines.h). `record` is STORE_NONE if the record is no longer
 * in memory. The caller locks the model, and frees the result.
 */
waterfall *waterfall_read(const model *m, size_t lifeline, uint32_t record);
void waterfall_free(waterfall *w); /* NULL is allowed */

#endif
