/*
 * Encodes records as requests of OTLP, in protobuf or JSON. nlconv's exporters and netlogd's output use it.
 *
 *   otlp_begin_source -> otlp_encode_log, or otlp_begin_span, otlp_encode_point ..., otlp_end_span -> otlp_end_source
 *
 * In JSON, the items of one host and program (a source) are a request. In protobuf, a request is any number of sources.
 * doc/formats.md defines the members. Only one thread at a time may use an encoder.
 */
#ifndef NETLOGGER_CONVERT_OTLP_ENCODE_H
#define NETLOGGER_CONVERT_OTLP_ENCODE_H

#include "convert/json_text.h"
#include "convert/keys.h"
#include "convert/otlp.h"

enum { OTLP_DEPTH_MAX = 12, OTLP_TRACE_DIGITS = 32, OTLP_SPAN_DIGITS = 16 };

/* Initialize the structure with zeros and these first members. */
typedef struct otlp_encoder {
    nl_buffer *out;
    bool json;
    bool typed;    /* see sink_put */
    bool contexts; /* log records have traceId and spanId, which changes the order of fields when they are read back */
    sink *s;       /* counts losses; NULL: losses are not counted */
    keys keys;
    bool comma; /* JSON: a member or element precedes the next one */
    unsigned depth;
    size_t starts[OTLP_DEPTH_MAX]; /* protobuf: offsets of the open messages' contents */
} otlp_encoder;

void otlp_encoder_free(otlp_encoder *e);

/* Begins and ends the items of a host and program. If `spans` is true, the items are spans, otherwise log records. */
void otlp_begin_source(otlp_encoder *e, bool spans, nl_string host, nl_string prog);
void otlp_end_source(otlp_encoder *e);

void otlp_encode_log(otlp_encoder *e, const nl_record *record);

/* IDs are hexadecimal digits; data is NULL if a span has no parent. */
typedef struct otlp_span {
    nl_string trace, span, parent;
    nl_string name, message; /* message: the status message; data is NULL if there is none */
    int64_t begin_ns, end_ns;
    bool failed;
} otlp_span;

/*
 * Begins a span. Its attributes are the fields of the records that begin and end it; either may be NULL. Identifiers,
 * values of the span's other members, and the times of Chrome's traces are omitted.
 */
void otlp_begin_span(otlp_encoder *e, const otlp_span *span, const nl_record *begin, const nl_record *end);
void otlp_encode_point(otlp_encoder *e, const nl_record *record); /* an event of the span */
void otlp_end_span(otlp_encoder *e, const otlp_span *span);

/* Identifiers in the fields of a record. */
typedef enum otlp_id_kind { OTLP_ID_NONE, OTLP_ID_TRACE, OTLP_ID_SPAN, OTLP_ID_PARENT } otlp_id_kind;

/* Returns the text of a record's identifier, which is empty if the record does not have it. */
nl_string otlp_record_id(const nl_record *record, otlp_id_kind kind, char scratch[NL_FIELD_TEXT_SIZE]);

/* Returns whether the text is an ID with this number of digits that is not zero. */
bool otlp_is_id(nl_string text, size_t digits);

#endif
