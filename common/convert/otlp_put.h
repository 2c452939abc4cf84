/*
 * Appends members of OTLP's messages to an encoder's bytes, in protobuf or JSON. Only the files of the encoder include
 * this header. A member has a name for JSON, written with the macro NAME, and a number for protobuf.
 */
#ifndef NETLOGGER_CONVERT_OTLP_PUT_H
#define NETLOGGER_CONVERT_OTLP_PUT_H

#include "convert/otlp_encode.h"

#include "base/buffer.h"
#include "record/bytes.h"
#include "record/number.h"

#include <endian.h>
#include <string.h>

enum {
    WIRE_VARINT = 0,
    WIRE_I64 = 1,
    WIRE_BYTES = 2,
    WIRE_I32 = 5,
    VARINT_SIZE_MAX = 10,
    NUMBER_SIZE = NL_FIELD_TEXT_SIZE
};

/* Fields of the messages of opentelemetry-proto. */
enum {
    REQUEST_RESOURCE = 1,
    OF_RESOURCE = 1,
    OF_SCOPE = 2,
    SCOPE = 1,
    SCOPE_ITEM = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    SCOPE_ATTRIBUTE = 3,
    RESOURCE_ATTRIBUTE = 1,
    KEY = 1,
    VALUE = 2,
    VALUE_STRING = 1,
    VALUE_BOOL = 2,
    VALUE_INT = 3,
    VALUE_DOUBLE = 4,
    VALUE_ARRAY = 5,
    VALUE_MAP = 6,
    VALUE_BYTES = 7,
    ARRAY_VALUE = 1,
    MAP_ENTRY = 1,
    LOG_TIME = 1,
    LOG_SEVERITY_NUMBER = 2,
    LOG_SEVERITY_TEXT = 3,
    LOG_BODY = 5,
    LOG_ATTRIBUTE = 6,
    LOG_FLAGS = 8,
    LOG_TRACE = 9,
    LOG_SPAN = 10,
    LOG_EVENT_NAME = 12,
    SPAN_TRACE = 1,
    SPAN_ID = 2,
    SPAN_STATE = 3,
    SPAN_PARENT = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTE = 9,
    SPAN_DROPPED_ATTRIBUTES = 10,
    SPAN_EVENT = 11,
    SPAN_DROPPED_EVENTS = 12,
    SPAN_LINK = 13,
    SPAN_DROPPED_LINKS = 14,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16,
    EVENT_TIME = 1,
    EVENT_NAME = 2,
    EVENT_ATTRIBUTE = 3,
    LINK_TRACE = 1,
    LINK_SPAN = 2,
    LINK_STATE = 3,
    LINK_ATTRIBUTE = 4,
    LINK_FLAGS = 6,
    STATUS_MESSAGE = 2,
    STATUS_CODE = 3,
};

/* Appends bytes. For a constant size, this function is faster than nl_buffer_append. */
static inline void encode_put(nl_buffer *out, const char *data, size_t size)
{
    if (__builtin_expect(out->capacity - out->size < size, 0)) {
        nl_buffer_append(out, data, size);
        return;
    }
    memcpy(out->data + out->size, data, size);
    out->size += size;
}
#define ENCODE_PUT(out, literal) encode_put(out, literal, sizeof(literal) - 1)

static inline void encode_varint(nl_buffer *out, uint64_t value)
{
    char bytes[VARINT_SIZE_MAX];
    size_t size = 0;
    for (; value > 127; value >>= 7)
        bytes[size++] = (char)(value | 128);
    bytes[size++] = (char)value;
    nl_buffer_append(out, bytes, size);
}

static inline void encode_key(otlp_encoder *e, unsigned field, unsigned wire)
{
    encode_varint(e->out, field << 3 | wire);
}

/* The text of a member's name in JSON, for parameters called `name`. */
#define NAME(literal) ",\"" literal "\":"

/* JSON: appends the name of a member. */
static inline void encode_name(otlp_encoder *e, const char *name)
{
    encode_put(e->out, name + !e->comma, strlen(name) - !e->comma);
    e->comma = true;
}

/*
 * Protobuf: begins a field whose length precedes its content. Reserves one byte for the length; encode_close makes
 * space for more.
 */
static inline void encode_open(otlp_encoder *e, unsigned field)
{
    encode_key(e, field, WIRE_BYTES);
    nl_buffer_append(e->out, "", 1);
    e->starts[e->depth++] = e->out->size;
}

static inline void encode_close(otlp_encoder *e)
{
    size_t start = e->starts[--e->depth], size = e->out->size - start, extra = 0;
    for (size_t rest = size >> 7; rest > 0; rest >>= 7)
        extra++;
    if (extra > 0) {
        nl_buffer_reserve(e->out, extra);
        memmove(e->out->data + start + extra, e->out->data + start, size);
        e->out->size += extra;
    }
    char *to = e->out->data + start - 1;
    for (; size > 127; size >>= 7)
        *to++ = (char)(size | 128);
    *to = (char)size;
}

static inline void begin_message(otlp_encoder *e, const char *name, unsigned field)
{
    if (e->json) {
        encode_name(e, name);
        ENCODE_PUT(e->out, "{");
        e->comma = false;
    } else {
        encode_open(e, field);
    }
}

static inline void end_message(otlp_encoder *e)
{
    if (e->json)
        ENCODE_PUT(e->out, "}");
    else
        encode_close(e);
    e->comma = true;
}

static inline void begin_list(otlp_encoder *e, const char *name)
{
    if (!e->json)
        return;
    encode_name(e, name);
    ENCODE_PUT(e->out, "[");
    e->comma = false;
}

static inline void end_list(otlp_encoder *e)
{
    if (e->json)
        ENCODE_PUT(e->out, "]");
    e->comma = true;
}

/* Begins a message that is an element of a list. end_message ends it. */
static inline void begin_element(otlp_encoder *e, unsigned field)
{
    if (e->json) {
        if (e->comma)
            ENCODE_PUT(e->out, ",");
        ENCODE_PUT(e->out, "{");
        e->comma = false;
    } else {
        encode_open(e, field);
    }
}

static inline void encode_bytes(otlp_encoder *e, unsigned field, nl_string bytes)
{
    encode_key(e, field, WIRE_BYTES);
    encode_varint(e->out, bytes.size);
    nl_buffer_append(e->out, bytes.data, bytes.size);
}

/* Appends a string. Returns false, and appends nothing, if the text is not UTF-8. */
static inline bool encode_text(otlp_encoder *e, const char *name, unsigned field, nl_string text)
{
    if (!e->json) {
        if (!utf8_is_valid(text))
            return false;
        encode_bytes(e, field, text);
        return true;
    }
    size_t before = e->out->size;
    bool comma = e->comma;
    encode_name(e, name);
    if (json_put_quoted(e->out, text))
        return true;
    e->out->size = before;
    e->comma = comma;
    return false;
}

/* Like encode_text, but replaces invalid UTF-8. */
static inline void encode_valid_text(otlp_encoder *e, const char *name, unsigned field, nl_string text)
{
    if (e->json) {
        encode_name(e, name);
        json_put_name(e->out, text);
    } else {
        encode_open(e, field);
        encoding_make_valid(e->out, text);
        encode_close(e);
    }
}

static inline void encode_word(otlp_encoder *e, const char *name, const char *word, size_t size, bool quoted)
{
    encode_name(e, name);
    if (quoted)
        ENCODE_PUT(e->out, "\"");
    encode_put(e->out, word, size);
    if (quoted)
        ENCODE_PUT(e->out, "\"");
}

static inline void encode_small(otlp_encoder *e, const char *name, unsigned field, unsigned value)
{
    char text[NUMBER_SIZE];
    if (e->json) {
        encode_word(e, name, text, nl_number_format_uint(value, text), false);
    } else {
        encode_key(e, field, WIRE_VARINT);
        encode_varint(e->out, value);
    }
}

static inline void encode_fixed(otlp_encoder *e, unsigned field, uint64_t value)
{
    encode_key(e, field, WIRE_I64);
    value = htole64(value);
    nl_buffer_append(e->out, &value, sizeof value);
}

static inline void encode_flags(otlp_encoder *e, const char *name, unsigned field, uint32_t value)
{
    if (e->json) {
        encode_small(e, name, field, value);
    } else {
        encode_key(e, field, WIRE_I32);
        value = htole32(value);
        nl_buffer_append(e->out, &value, sizeof value);
    }
}

/* Appends a time. A time before 1970 becomes 0, because OTLP cannot represent it. */
static inline void encode_time(otlp_encoder *e, const char *name, unsigned field, int64_t time_ns)
{
    char text[NUMBER_SIZE];
    time_ns = time_ns < 0 ? 0 : time_ns;
    if (e->json)
        encode_word(e, name, text, nl_number_format_uint((uint64_t)time_ns, text), true);
    else
        encode_fixed(e, field, (uint64_t)time_ns);
}

static inline void encode_id(otlp_encoder *e, const char *name, unsigned field, nl_string digits)
{
    char bytes[OTLP_TRACE_DIGITS / 2];
    if (e->json) {
        encode_word(e, name, digits.data, digits.size, true);
        return;
    }
    for (size_t i = 0; i < digits.size / 2; i++)
        bytes[i] = (char)(16 * nl_hex_digit(digits.data[2 * i]) + nl_hex_digit(digits.data[2 * i + 1]));
    encode_bytes(e, field, (nl_string){bytes, digits.size / 2});
}

/* ---- attributes (otlp_attributes.c) ---- */

/* Encodes the content of an AnyValue: a string, or bytes if the text is not UTF-8. */
void otlp_put_any_text(otlp_encoder *e, nl_string text);

/* Encodes an attribute of NetLogger, whose key needs no escapes, in the repeated field `list`. */
void otlp_put_attribute(otlp_encoder *e, unsigned list, const char *key, nl_string text);

/*
 * Encodes fields as attributes in the repeated field `list`. A key is the name of a field without its first `prefix`
 * bytes. Call keys_begin first.
 */
void otlp_put_fields(otlp_encoder *e, unsigned list, const otlp_fields *fields, size_t prefix);

/* Adds a field, which must outlive `f`. */
void otlp_fields_add(otlp_fields *f, const nl_field *field);
void otlp_fields_clear(otlp_fields *f);
void otlp_fields_free(otlp_fields *f);

#endif
