/*
 * Encodes records as requests of OTLP, in protobuf or JSON. nlconv's exporters and netlogd's output use this module.
 *
 *   otlp_begin_source -> otlp_encode_log, or otlp_begin_span, otlp_encode_point ..., otlp_end_span -> otlp_end_source
 *
 * A source is one host and program; its items are its log records or spans. In JSON, a request has one source. In
 * protobuf, a request has any number of sources. doc/formats.md defines the members. Only one thread at a time may use
 * an encoder.
 */
#ifndef NETLOGGER_CONVERT_OTLP_ENCODE_H
#define NETLOGGER_CONVERT_OTLP_ENCODE_H

#include "convert/json_text.h"
#include "convert/keys.h"
#include "convert/otlp.h"

enum { OTLP_DEPTH_MAX = 12, OTLP_TRACE_DIGITS = 32, OTLP_SPAN_DIGITS = 16 };

/* Set the members before `keys`, and initialize the other members with zeros. */
typedef struct otlp_encoder {
    nl_buffer *out;
    bool json;
    bool typed;    /* see sink_put */
    bool contexts; /* log records have traceId and spanId; reading them back may change the order of fields */
    sink *s;       /* counts losses; NULL: losses are not counted */
    keys keys;
    bool comma; /* JSON: the next member or element needs a comma before it */
    unsigned depth;
    size_t starts[OTLP_DEPTH_MAX]; /* protobuf: offsets of the open messages' contents */
} otlp_encoder;

void otlp_encoder_free(otlp_encoder *e);

/* Begin and end a source. If `spans` is true, its items are spans. Otherwise, they are log records. */
void otlp_begin_source(otlp_encoder *e, bool spans, nl_string host, nl_string prog);
void otlp_end_source(otlp_encoder *e);

void otlp_encode_log(otlp_encoder *e, const nl_record *record);

/* IDs are hexadecimal digits; data is NULL if a span has no parent. */
typedef struct otlp_span {
    nl_string trace, span, parent;
    nl_string name, message; /* message: the status message; its data is NULL if the span has no message */
    int64_t begin_ns, end_ns;
    bool failed;
} otlp_span;

/*
 * Begins a span. Its attributes are the fields of the records that begin and end it; either may be NULL. Fields that
 * repeat an identifier or another member of the span, and the time fields of Chrome's traces, are omitted.
 */
void otlp_begin_span(otlp_encoder *e, const otlp_span *span, const nl_record *begin, const nl_record *end);
void otlp_encode_point(otlp_encoder *e, const nl_record *record); /* an event of the span */
void otlp_end_span(otlp_encoder *e, const otlp_span *span);

typedef enum otlp_id_kind { OTLP_ID_NONE, OTLP_ID_TRACE, OTLP_ID_SPAN, OTLP_ID_PARENT } otlp_id_kind;

/* Returns the text of a record's first identifier of this kind, or an empty text. The text may point into `scratch`. */
nl_string otlp_record_id(const nl_record *record, otlp_id_kind kind, char scratch[NL_FIELD_TEXT_SIZE]);

/* Returns whether the text has exactly this number of hexadecimal digits, which are not all zero. */
bool otlp_is_id(nl_string text, size_t digits);

#endif
