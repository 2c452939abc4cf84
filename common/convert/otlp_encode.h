/*
 * Encodes records as OTLP requests, in protobuf or JSON. nlconv's exporters and netlogd's output use this module.
 *
 *   otlp_begin_source -> otlp_encode_log, or otlp_begin_span, otlp_encode_point ..., otlp_end_span -> otlp_end_source
 *
 * A source is a host and a program, with the other attributes of the OTLP resource and scope from which a record came.
 * Its items are its log records or spans. In JSON, a request has one source. In protobuf, a request has any number of
 * sources. doc/formats.md defines the members. Only one thread at a time may use an encoder.
 */
#ifndef NETLOGGER_CONVERT_OTLP_ENCODE_H
#define NETLOGGER_CONVERT_OTLP_ENCODE_H

#include "convert/json_text.h"
#include "convert/keys.h"
#include "convert/otlp.h"

/*
 * The values in an attribute may be nested to a depth of OTLP_NESTING_MAX. Each of these values consists of up to three
 * nested messages.
 */
enum { OTLP_DEPTH_MAX = 12 + 3 * OTLP_NESTING_MAX, OTLP_TRACE_DIGITS = 32, OTLP_SPAN_DIGITS = 16 };

/* Fields of a record that become attributes. */
typedef struct otlp_fields {
    const nl_field **fields;
    size_t count, capacity;
    nl_string kinds; /* value of the field OTLP_KINDS */
} otlp_fields;

/* Set the members before `keys`, and initialize the other members with zeros. */
typedef struct otlp_encoder {
    nl_buffer *out;
    bool json;
    bool typed;    /* see sink_put */
    bool contexts; /* log records have traceId and spanId; reading them back may change the order of fields */
    sink *s;       /* counts losses; NULL: the encoder does not count losses */
    keys keys;
    otlp_fields fields; /* fields of the current item */
    nl_buffer text;     /* strings of the current array */
    bool open;          /* a source is open */
    nl_buffer source;   /* describes the latest source */
    nl_buffer next;     /* like source, for the next record */
    bool linking;       /* the current span's links have begun */
    bool comma;         /* JSON: the next member or element needs a comma before it */
    unsigned depth;
    size_t starts[OTLP_DEPTH_MAX]; /* protobuf: offsets of the open messages' contents */
} otlp_encoder;

void otlp_encoder_free(otlp_encoder *e);

/*
 * Begin and end the source of a record. If `spans` is true, its items are spans. Otherwise, they are log records. If no
 * source is open, otlp_end_source does nothing.
 */
void otlp_begin_source(otlp_encoder *e, bool spans, const nl_record *record);
void otlp_end_source(otlp_encoder *e);

/* Returns whether the open source is the source of a record. Returns false if no source is open. */
bool otlp_is_source(otlp_encoder *e, const nl_record *record);

void otlp_encode_log(otlp_encoder *e, const nl_record *record);

/* IDs are hexadecimal digits; data is NULL if a span has no parent. */
typedef struct otlp_span {
    nl_string trace, span, parent;
    nl_string name, message; /* message: the status message; its data is NULL if the span has no message */
    int64_t begin_ns, end_ns;
    bool failed, ok; /* whether the span's status code is error or ok */
    uint32_t dropped_events;
} otlp_span;

/*
 * Sets the status message, and the status code if the span has not failed, from the record that ends the span. The
 * record must outlive the span.
 */
void otlp_span_set_status(otlp_span *span, const nl_record *end);

/*
 * Begins a span. Its attributes are the fields of the records that begin and end it; either may be NULL. Omits fields
 * that repeat an identifier or another member of the span, and the time fields of Chrome's traces.
 */
void otlp_begin_span(otlp_encoder *e, const otlp_span *span, const nl_record *begin, const nl_record *end);

/* Encode an event or a link of the span. In JSON, all events must precede the links. */
void otlp_encode_point(otlp_encoder *e, const nl_record *record);
void otlp_encode_link(otlp_encoder *e, const nl_record *record);

/* Returns whether a record in a span is a link: its event is NAME.link, and LINK.TRACE and LINK.SPAN are valid. */
bool otlp_is_link(const nl_record *record, nl_string span_name);

void otlp_end_span(otlp_encoder *e);

typedef enum otlp_id_kind { OTLP_ID_NONE, OTLP_ID_TRACE, OTLP_ID_SPAN, OTLP_ID_PARENT } otlp_id_kind;

/* Returns the kind of identifier that a field with this name contains. Ignores the case and separators of the name. */
otlp_id_kind otlp_id_kind_of(nl_string name);

/* Returns the text of a record's first identifier of this kind, or an empty text. The text may point into `scratch`. */
nl_string otlp_record_id(const nl_record *record, otlp_id_kind kind, char scratch[NL_FIELD_TEXT_SIZE]);

/* The names of span kinds, by their OTLP numbers, with NULL after the last name. The kind 0 is unknown. */
extern const char *const otlp_span_kinds[];

/* Returns the OTLP number of the span kind in a field SPAN.KIND, or 0 for other fields. */
unsigned otlp_span_kind_of(const nl_field *field);

/* Returns whether a record has a field with this name and value. NULL for the record is allowed. */
bool otlp_has_field(const nl_record *record, const nl_field *field);

/* Returns whether the text has exactly this number of hexadecimal digits, which are not all zero. */
bool otlp_is_id(nl_string text, size_t digits);

#endif
