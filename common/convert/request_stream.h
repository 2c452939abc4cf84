/*
 * Finds the requests in the records of a conversion, for formats that have spans.
 *
 * The fields that identify requests come from an nlv configuration file, or from the first records. The stream stores
 * records until these fields are known. After that, the stream passes on each request when the request has ended, and
 * memory is bounded (assembler.h). Only one thread at a time may use a stream.
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
    size_t begin, end; /* numbers of the records of the start and the end; may be equal; STREAM_NONE: no record */
    size_t parent;     /* index of a span; STREAM_NONE if the span has no parent */
    size_t first_point, point_count; /* the span's points in stream_request.points */
    bool made; /* no record names the span; it is the whole request, or a segment between two of its events */
    bool failed;
} stream_span;

typedef struct stream_request {
    const char *name; /* the trace ID, the values of the ID fields, or the name of the outermost span of a thread */
    const stream_span *spans;
    size_t span_count;
    const size_t *points; /* numbers of the records that neither begin nor end a span, ordered by span */
} stream_request;

typedef struct request_stream request_stream;

/* The functions that receive the results. All their arguments are valid only during the call. */
typedef struct request_stream_user {
    void (*request)(void *user, const stream_request *request);
    void (*single)(void *user, const nl_record *record); /* for a record that belongs to no request */
    void (*counter)(void *user, const nl_record *record, const drawing_loadline *, double value); /* or NULL */
    /* called for each record that is larger than 64 KiB, with the number of fields that were left out; or NULL */
    void (*lose)(void *user, size_t field_count);
    void *user;
} request_stream_user;

/* Creates a stream, which the caller frees. `shared` is the result of request_stream_share, or NULL. */
request_stream *request_stream_new(void *shared, const request_stream_user *user);
void request_stream_free(request_stream *s);

/* Adds a record. sink_put describes `typed`. */
void request_stream_add(request_stream *s, const nl_record *record, bool typed);

/* Passes on all remaining requests. Call it after the last record. */
void request_stream_finish(request_stream *s);

/* Returns whether the values of records have types (see sink_put). */
bool request_stream_is_typed(const request_stream *s);

/*
 * Returns the record with this number of the current request. Call it only during a call of user.request. `slot` is 0
 * or 1; the result is valid until the next call with the same slot. If the record is larger than 64 KiB, the result has
 * only the fields that fit, and truncated standard fields.
 */
const nl_record *request_stream_record(request_stream *s, size_t number, int slot);

/*
 * Like request_stream_record with slot 0, for the record of a span's start. If that record is missing, uses the record
 * of the span's end. If both are missing, uses the record of the request's first event.
 */
const nl_record *request_stream_span_record(request_stream *s, const stream_span *span);

/*
 * The functions share and unshare (see exporter_kind) of the exporters that use a stream. request_stream_share reads
 * the nlv configuration file drawing_path, which may be NULL. On failure, reports the error and returns NULL.
 */
void *request_stream_share(const char *drawing_path);
void request_stream_unshare(void *shared);

/*
 * Like request_stream_share, for the ID fields of a drawing. The events of the drawing do not matter. The caller keeps
 * the drawing. assembler_options describes `fraction` and `has_nanoseconds`.
 */
void *request_stream_share_ids(const drawing *d, nl_fraction fraction, bool has_nanoseconds);

#endif
