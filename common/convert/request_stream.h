/*
 * The requests of a conversion, for formats that have spans. They are the requests of common/requests, with the records
 * of each span.
 *
 * Records are kept until the fields that identify requests are known: from an nlv configuration file, or from the first
 * records. After that, each request is passed on when it is over, and memory is bounded (assembler.h). Only one thread
 * at a time may use a stream.
 */
#ifndef NETLOGGER_CONVERT_REQUEST_STREAM_H
#define NETLOGGER_CONVERT_REQUEST_STREAM_H

#include "requests/assembler.h"
#include "requests/drawing.h"

#define STREAM_NONE SIZE_MAX

/* A span with its records. */
typedef struct stream_span {
    int64_t begin_ns, end_ns;
    const char *name;
    size_t begin, end; /* numbers of the records of the span's start and end, which may be the same record; STREAM_NONE
                        * if a record is missing */
    size_t parent;     /* index of a span; STREAM_NONE if the span has no parent */
    size_t first_point, point_count; /* in stream_request.points */
    bool made;                       /* the span is not in the log; it is the whole request, or the time between two of
                                      * the request's events */
    bool failed;
} stream_span;

typedef struct stream_request {
    const char *name; /* the values of the ID fields */
    const stream_span *spans;
    size_t span_count;
    const size_t *points; /* records that neither begin nor end a span, ordered by span */
} stream_request;

typedef struct request_stream request_stream;

/* All arguments are valid only during the call. */
typedef struct request_stream_user {
    void (*request)(void *user, const stream_request *request);
    void (*single)(void *user, const nl_record *record); /* for a record that belongs to no request */
    void (*counter)(void *user, const nl_record *record, const drawing_loadline *, double value); /* or NULL */
    void *user;
} request_stream_user;

/* `shared` is the result of request_stream_share, or NULL. */
request_stream *request_stream_new(void *shared, const request_stream_user *user);
void request_stream_free(request_stream *s);

/* Adds a record. See sink_put for typed. */
void request_stream_add(request_stream *s, const nl_record *record, bool typed);

/* Passes on all requests. Call it after the last record. */
void request_stream_finish(request_stream *s);

/* Returns whether the values of records have types (see sink_put). */
bool request_stream_is_typed(const request_stream *s);

/*
 * Call it during a call of user.request. Returns the record with this number in one of two slots, which is valid until
 * the slot is used again. If the record is larger than 64 KiB, it has only a time and an event, and *whole is false.
 */
const nl_record *request_stream_record(request_stream *s, size_t number, int slot, bool *whole);

/*
 * Like request_stream_record, for the record of a span's start. If that record is missing, uses the record of the
 * span's end. If both are missing, uses the record of the request's first event.
 */
const nl_record *request_stream_span_record(request_stream *s, const stream_span *span, int slot, bool *whole);

/*
 * The share and unshare functions of these exporters. request_stream_share reads the nlv configuration file, unless
 * drawing_path is NULL.
 */
void *request_stream_share(const char *drawing_path);
void request_stream_unshare(void *shared);

#endif
