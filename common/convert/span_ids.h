/*
 * The identifiers of a request's spans, for formats whose identifiers are hexadecimal numbers (W3C Trace Context). An
 * identifier in the log that is valid stays unchanged. A number replaces any other identifier. This module has no
 * state. Only one thread at a time may use a stream.
 */
#ifndef NETLOGGER_CONVERT_SPAN_IDS_H
#define NETLOGGER_CONVERT_SPAN_IDS_H

#include "convert/otlp_encode.h"
#include "convert/request_stream.h"

typedef struct span_id {
    char text[OTLP_SPAN_DIGITS + 1];
} span_id;

/*
 * Sets the trace ID, and the IDs of all spans of the current request: `ids` has an element for each span. Uses the
 * numbers from *next_id on, and increases *next_id by the number of spans. Call it only during a call of user.request.
 */
void span_ids_choose(request_stream *s, const stream_request *r, uint64_t *next_id, char trace[OTLP_TRACE_DIGITS + 1],
                     span_id *ids);

/* Writes the trace ID that span_ids_choose makes from the number *next_id. */
void span_ids_make_trace(uint64_t next_id, char trace[OTLP_TRACE_DIGITS + 1]);

/*
 * Returns the ID of a span's parent, or a text without data if the span has no parent. The result may point into
 * `scratch`, to `ids`, or into a record of the stream (slot 0).
 */
nl_string span_ids_parent(request_stream *s, const stream_request *r, size_t index, const span_id *ids,
                          char scratch[NL_FIELD_TEXT_SIZE]);

#endif
