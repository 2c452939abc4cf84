#include "config.h"

#include "convert/otlp_encode.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/time_internal.h"
#include "record/bytes.h"
#include "record/number.h"

#include <ctype.h>
#include <endian.h>
#include <math.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_BYTES = 2, VARINT_SIZE_MAX = 10, NUMBER_SIZE = NL_FIELD_TEXT_SIZE };

/* Fields of the messages of opentelemetry-proto. */
enum {
    REQUEST_RESOURCE = 1,
    OF_RESOURCE = 1,
    OF_SCOPE = 2,
    SCOPE = 1,
    SCOPE_ITEM = 2,
    SCOPE_NAME = 1,
    RESOURCE_ATTRIBUTE = 1,
    KEY = 1,
    VALUE = 2,
    VALUE_STRING = 1,
    VALUE_BOOL = 2,
    VALUE_INT = 3,
    VALUE_DOUBLE = 4,
    VALUE_MAP = 6,
    VALUE_BYTES = 7,
    MAP_ENTRY = 1,
    LOG_TIME = 1,
    LOG_SEVERITY_NUMBER = 2,
    LOG_SEVERITY_TEXT = 3,
    LOG_BODY = 5,
    LOG_ATTRIBUTE = 6,
    LOG_TRACE = 9,
    LOG_SPAN = 10,
    LOG_EVENT_NAME = 12,
    SPAN_TRACE = 1,
    SPAN_ID = 2,
    SPAN_PARENT = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTE = 9,
    SPAN_EVENT = 11,
    SPAN_STATUS = 15,
    EVENT_TIME = 1,
    EVENT_NAME = 2,
    EVENT_ATTRIBUTE = 3,
    STATUS_MESSAGE = 2,
    STATUS_CODE = 3,
};

/* ---- members ---- */

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

static void encode_varint(nl_buffer *out, uint64_t value)
{
    char bytes[VARINT_SIZE_MAX];
    size_t size = 0;
    for (; value > 127; value >>= 7)
        bytes[size++] = (char)(value | 128);
    bytes[size++] = (char)value;
    nl_buffer_append(out, bytes, size);
}

static void encode_key(otlp_encoder *e, unsigned field, unsigned wire)
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
static void encode_open(otlp_encoder *e, unsigned field)
{
    encode_key(e, field, WIRE_BYTES);
    nl_buffer_append(e->out, "", 1);
    e->starts[e->depth++] = e->out->size;
}

static void encode_close(otlp_encoder *e)
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

static bool is_utf8(nl_string text)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size;
    while (at < end) {
        size_t size = *at < 0x80 ? 1 : utf8_size(at, end);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

static void encode_bytes(otlp_encoder *e, unsigned field, nl_string bytes)
{
    encode_key(e, field, WIRE_BYTES);
    encode_varint(e->out, bytes.size);
    nl_buffer_append(e->out, bytes.data, bytes.size);
}

/* Appends a string. Returns false, and appends nothing, if the text is not UTF-8. */
static inline bool encode_text(otlp_encoder *e, const char *name, unsigned field, nl_string text)
{
    if (!e->json) {
        if (!is_utf8(text))
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
static void encode_valid_text(otlp_encoder *e, const char *name, unsigned field, nl_string text)
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

static void encode_small(otlp_encoder *e, const char *name, unsigned field, unsigned value)
{
    char text[NUMBER_SIZE];
    if (e->json) {
        encode_word(e, name, text, nl_number_format_uint(value, text), false);
    } else {
        encode_key(e, field, WIRE_VARINT);
        encode_varint(e->out, value);
    }
}

static void encode_fixed(otlp_encoder *e, unsigned field, uint64_t value)
{
    encode_key(e, field, WIRE_I64);
    value = htole64(value);
    nl_buffer_append(e->out, &value, sizeof value);
}

/* Appends a time. A time before 1970 becomes 0, because OTLP cannot represent it. */
static void encode_time(otlp_encoder *e, const char *name, unsigned field, int64_t time_ns)
{
    char text[NUMBER_SIZE];
    time_ns = time_ns < 0 ? 0 : time_ns;
    if (e->json)
        encode_word(e, name, text, nl_number_format_uint((uint64_t)time_ns, text), true);
    else
        encode_fixed(e, field, (uint64_t)time_ns);
}

static void encode_id(otlp_encoder *e, const char *name, unsigned field, nl_string digits)
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

/* ---- values ---- */

static void encode_any_text(otlp_encoder *e, nl_string text)
{
    if (encode_text(e, NAME("stringValue"), VALUE_STRING, text))
        return;
    if (!e->json) {
        encode_bytes(e, VALUE_BYTES, text);
        return;
    }
    encode_name(e, NAME("bytesValue"));
    ENCODE_PUT(e->out, "\"");
    base64_put(e->out, text);
    ENCODE_PUT(e->out, "\"");
}

static void encode_double(otlp_encoder *e, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    encode_fixed(e, VALUE_DOUBLE, bits);
}

/* Encodes text that json_is_number accepts. */
static void encode_any_number(otlp_encoder *e, nl_string text)
{
    bool is_double = memchr(text.data, '.', text.size) != NULL;
    if (e->json) {
        encode_word(e, is_double ? NAME("doubleValue") : NAME("intValue"), text.data, text.size, !is_double);
    } else if (is_double) {
        double value = 0;
        nl_number_parse_double(text, &value);
        encode_double(e, value);
    } else {
        int64_t value = 0;
        nl_number_parse_int(text, &value);
        encode_key(e, VALUE_INT, WIRE_VARINT);
        encode_varint(e->out, (uint64_t)value);
    }
}

static void encode_any_double(otlp_encoder *e, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE + 2];
    double value = field->double_value;
    if (!e->json) {
        encode_double(e, value);
        return;
    }
    bool finite = isfinite(value);
    const char *special = isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    nl_string text = finite ? json_double_text(field, scratch) : (nl_string){special, strlen(special)};
    encode_word(e, NAME("doubleValue"), text.data, text.size, !finite);
}

static void encode_any_unsigned(otlp_encoder *e, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    begin_message(e, NAME("kvlistValue"), VALUE_MAP);
    begin_list(e, NAME("values"));
    begin_element(e, MAP_ENTRY);
    encode_text(e, NAME("key"), KEY, (nl_string){"uint", 4});
    begin_message(e, NAME("value"), VALUE);
    encode_text(e, NAME("stringValue"), VALUE_STRING, nl_field_text(field, scratch));
    end_message(e);
    end_message(e);
    end_list(e);
    end_message(e);
}

/* Encodes the content of an AnyValue. */
static void encode_any(otlp_encoder *e, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text;
    switch (field->type) {
    case NL_TYPE_STRING:
        if (e->typed || !json_is_number(field->string))
            encode_any_text(e, field->string);
        else
            encode_any_number(e, field->string);
        return;
    case NL_TYPE_DOUBLE:
        encode_any_double(e, field);
        return;
    case NL_TYPE_BOOL:
        text = nl_field_text(field, scratch);
        if (e->json)
            encode_word(e, NAME("boolValue"), text.data, text.size, false);
        else
            encode_small(e, NULL, VALUE_BOOL, field->bool_value);
        return;
    case NL_TYPE_UINT:
        if (field->uint_value > INT64_MAX) {
            encode_any_unsigned(e, field);
            return;
        }
        if (e->s != NULL)
            sink_lose(e->s, LOSS_UNSIGNED);
        break;
    case NL_TYPE_INT:
        break;
    }
    if (e->json) {
        text = nl_field_text(field, scratch);
        encode_word(e, NAME("intValue"), text.data, text.size, true);
    } else {
        encode_key(e, VALUE_INT, WIRE_VARINT);
        encode_varint(e->out, field->uint_value);
    }
}

/* Encodes an attribute of NetLogger, whose key needs no escapes, in the repeated field `list`. */
static void encode_own_attribute(otlp_encoder *e, unsigned list, const char *key, nl_string text)
{
    begin_element(e, list);
    encode_text(e, NAME("key"), KEY, (nl_string){key, strlen(key)});
    begin_message(e, NAME("value"), VALUE);
    encode_any_text(e, text);
    end_message(e);
    end_message(e);
}

static void encode_attribute(otlp_encoder *e, unsigned list, const nl_field *field)
{
    begin_element(e, list);
    if (e->json) {
        encode_name(e, NAME("key"));
        ENCODE_PUT(e->out, "\"");
        keys_put(&e->keys, field->name, e->out);
        ENCODE_PUT(e->out, "\"");
    } else {
        encode_open(e, KEY);
        keys_put(&e->keys, field->name, e->out);
        encode_close(e);
    }
    begin_message(e, NAME("value"), VALUE);
    encode_any(e, field);
    end_message(e);
    end_message(e);
}

/* ---- sources ---- */

void otlp_begin_source(otlp_encoder *e, bool spans, nl_string host, nl_string prog)
{
    e->comma = false;
    if (e->json)
        ENCODE_PUT(e->out, "{");
    begin_list(e, spans ? NAME("resourceSpans") : NAME("resourceLogs"));
    begin_element(e, REQUEST_RESOURCE);
    begin_message(e, NAME("resource"), OF_RESOURCE);
    begin_list(e, NAME("attributes"));
    if (host.data != NULL)
        encode_own_attribute(e, RESOURCE_ATTRIBUTE, "host.name", host);
    if (prog.data != NULL)
        encode_own_attribute(e, RESOURCE_ATTRIBUTE, "service.name", prog);
    end_list(e);
    end_message(e);
    begin_list(e, spans ? NAME("scopeSpans") : NAME("scopeLogs"));
    begin_element(e, OF_SCOPE);
    begin_message(e, NAME("scope"), SCOPE);
    encode_text(e, NAME("name"), SCOPE_NAME, (nl_string){OTLP_SCOPE, strlen(OTLP_SCOPE)});
    end_message(e);
    begin_list(e, spans ? NAME("spans") : NAME("logRecords"));
}

void otlp_end_source(otlp_encoder *e)
{
    end_list(e);
    end_message(e);
    end_list(e);
    end_message(e);
    end_list(e);
    if (e->json)
        ENCODE_PUT(e->out, "}");
}

/* ---- identifiers ---- */

/* Returns the kind of identifier that a field with this name contains. Ignores the case and separators of the name. */
static otlp_id_kind id_kind_of(nl_string name)
{
    static const struct {
        const char *letters;
        otlp_id_kind kind;
    } names[] = {{"traceid", OTLP_ID_TRACE},
                 {"spanid", OTLP_ID_SPAN},
                 {"parentid", OTLP_ID_PARENT},
                 {"parentspanid", OTLP_ID_PARENT}};
    char letters[16];
    size_t count = 0;
    for (size_t i = 0; i < name.size; i++)
        if (isalnum((unsigned char)name.data[i])) {
            if (count == sizeof letters - 1)
                return OTLP_ID_NONE;
            letters[count++] = (char)tolower((unsigned char)name.data[i]);
        }
    letters[count] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(letters, names[i].letters) == 0)
            return names[i].kind;
    return OTLP_ID_NONE;
}

nl_string otlp_record_id(const nl_record *record, otlp_id_kind kind, char scratch[NL_FIELD_TEXT_SIZE])
{
    for (size_t i = 0; i < record->field_count; i++)
        if (id_kind_of(record->fields[i].name) == kind)
            return nl_field_text(&record->fields[i], scratch);
    return (nl_string){"", 0};
}

bool otlp_is_id(nl_string text, size_t digits)
{
    bool zero = true;
    for (size_t i = 0; i < text.size; i++) {
        if (!isxdigit((unsigned char)text.data[i]))
            return false;
        zero = zero && text.data[i] == '0';
    }
    return text.size == digits && !zero;
}

/* ---- log records ---- */

/* The SeverityNumber of each level. OTLP has one name for each range of four numbers. */
static const unsigned char severities[] = {
    [NL_EMERGENCY] = 24, [NL_ALERT] = 21, [NL_ERROR] = 17,  [NL_WARNING] = 13,   [NL_AUTH] = 10,
    [NL_SECURITY] = 14,  [NL_USAGE] = 9,  [NL_SYSTEM] = 11, [NL_IMPORTANT] = 12, [NL_DEBUG] = 5};

/*
 * Encodes the level of a log record. Returns whether the level also needs an attribute of NetLogger (OTLP_LEVEL_KEY).
 */
static bool encode_level(otlp_encoder *e, const nl_record *record)
{
    nl_string text = level_as_text(record);
    if (record->level != NL_LEVEL_NONE)
        encode_small(e, NAME("severityNumber"), LOG_SEVERITY_NUMBER, severities[record->level]);
    return text.data != NULL && (text.size == 0 || !encode_text(e, NAME("severityText"), LOG_SEVERITY_TEXT, text));
}

static void encode_event(otlp_encoder *e, nl_string event)
{
    if (event.data == NULL)
        return;
    if (event.size > 0)
        encode_text(e, NAME("eventName"), LOG_EVENT_NAME, event);
    begin_message(e, NAME("body"), LOG_BODY);
    encode_any_text(e, event);
    end_message(e);
}

/*
 * Returns the record's first field of this kind. Returns NULL if the record has no such field, or the field is not a
 * valid identifier with this number of digits.
 */
static const nl_field *find_context(const nl_record *record, otlp_id_kind kind, size_t digits)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        if (id_kind_of(field->name) == kind)
            return field->type == NL_TYPE_STRING && otlp_is_id(field->string, digits) ? field : NULL;
    }
    return NULL;
}

void otlp_encode_log(otlp_encoder *e, const nl_record *record)
{
    char time[NL_TIME_TEXT_SIZE];
    const nl_field *trace = e->contexts ? find_context(record, OTLP_ID_TRACE, OTLP_TRACE_DIGITS) : NULL;
    const nl_field *span = e->contexts ? find_context(record, OTLP_ID_SPAN, OTLP_SPAN_DIGITS) : NULL;
    begin_element(e, SCOPE_ITEM);
    encode_time(e, NAME("timeUnixNano"), LOG_TIME, record->time_ns);
    bool own_level = encode_level(e, record);
    encode_event(e, record->event);
    if (trace != NULL)
        encode_id(e, NAME("traceId"), LOG_TRACE, trace->string);
    if (span != NULL)
        encode_id(e, NAME("spanId"), LOG_SPAN, span->string);
    begin_list(e, NAME("attributes"));
    if (record->time_ns < 0)
        encode_own_attribute(e, LOG_ATTRIBUTE, OTLP_TIME_KEY,
                             (nl_string){time, nl_time_format_iso(record->time_ns, time)});
    if (own_level)
        encode_own_attribute(e, LOG_ATTRIBUTE, OTLP_LEVEL_KEY, level_as_text(record));
    keys_begin(&e->keys, record->field_count + 2);
    keys_count(&e->keys, (nl_string){OTLP_TIME_KEY, strlen(OTLP_TIME_KEY)});
    keys_count(&e->keys, (nl_string){OTLP_LEVEL_KEY, strlen(OTLP_LEVEL_KEY)});
    for (size_t i = 0; i < record->field_count; i++)
        if (&record->fields[i] != trace && &record->fields[i] != span)
            encode_attribute(e, LOG_ATTRIBUTE, &record->fields[i]);
    end_list(e);
    end_message(e);
}

/* ---- spans ---- */

static bool has_field(const nl_record *record, const nl_field *field)
{
    nl_field there;
    char one[NL_FIELD_TEXT_SIZE], other[NL_FIELD_TEXT_SIZE];
    if (record == NULL)
        return false;
    for (size_t i = 0; i < record->field_count; i++) {
        there = record->fields[i];
        if (there.name.size != field->name.size || memcmp(there.name.data, field->name.data, there.name.size) != 0)
            continue;
        nl_string a = nl_field_text(&there, one), b = nl_field_text(field, other);
        if (a.size == b.size && memcmp(a.data, b.data, a.size) == 0)
            return true;
    }
    return false;
}

/*
 * Returns whether a field is the phase or the duration of a span in Chrome's traces. These fields repeat the times of
 * the OTLP span.
 */
static bool is_chrome_time(const nl_record *record, const nl_field *field)
{
    nl_field phase;
    bool is_phase = field->name.size == 2 && memcmp(field->name.data, "ph", 2) == 0,
         is_duration = field->name.size == 3 && memcmp(field->name.data, "dur", 3) == 0;
    return (is_phase || is_duration) && nl_record_find(record, "ph", &phase) && phase.type == NL_TYPE_STRING &&
           phase.string.size == 1 && strchr("BEX", *phase.string.data) != NULL;
}

static bool is_named(const nl_field *field, const char *name)
{
    return field->name.size == strlen(name) && memcmp(field->name.data, name, field->name.size) == 0;
}

/* Returns the OTLP number of the span kind in a SPAN.KIND field (which otlp_records.c makes), or 0 for other fields. */
static unsigned span_kind_of(const nl_field *field)
{
    static const char *const kinds[] = {"internal", "server", "client", "producer", "consumer"};
    if (is_named(field, "SPAN.KIND") && field->type == NL_TYPE_STRING)
        for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if (field->string.size == strlen(kinds[i]) && memcmp(field->string.data, kinds[i], field->string.size) == 0)
                return i + 1;
    return 0;
}

/* Returns whether a member of the span or of its status already has the value of a field. */
static bool is_span_member(const otlp_span *span, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    return span_kind_of(field) != 0 || (span->message.data != NULL && is_named(field, "STATUS.MESSAGE")) ||
           (is_named(field, "STATUS") && text.size == 1 && *text.data == (span->failed ? '2' : '0'));
}

/*
 * Encodes the fields of a span's two records as attributes. If both records have an equal field, encodes it once.
 * `span` is NULL for an event of a span.
 */
static void encode_attributes(otlp_encoder *e, const otlp_span *span, const nl_record *begin, const nl_record *end)
{
    const nl_record *records[] = {begin, end};
    begin_list(e, NAME("attributes"));
    keys_begin(&e->keys, (begin != NULL ? begin->field_count : 0) + (end != NULL ? end->field_count : 0));
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; records[k] != NULL && i < records[k]->field_count; i++) {
            const nl_field *field = &records[k]->fields[i];
            if (id_kind_of(field->name) == OTLP_ID_NONE && !is_chrome_time(records[k], field) &&
                (span == NULL || !is_span_member(span, field)) && (k == 0 || !has_field(begin, field)))
                encode_attribute(e, span != NULL ? SPAN_ATTRIBUTE : EVENT_ATTRIBUTE, field);
        }
    end_list(e);
}

static unsigned find_span_kind(const nl_record *record)
{
    unsigned kind = 0;
    for (size_t i = 0; record != NULL && i < record->field_count && kind == 0; i++)
        kind = span_kind_of(&record->fields[i]);
    return kind != 0 ? kind : 1; /* internal */
}

static void lose_time(otlp_encoder *e, int64_t time_ns)
{
    if (time_ns < 0 && e->s != NULL)
        sink_lose(e->s, LOSS_TIMES);
}

void otlp_begin_span(otlp_encoder *e, const otlp_span *span, const nl_record *begin, const nl_record *end)
{
    begin_element(e, SCOPE_ITEM);
    encode_id(e, NAME("traceId"), SPAN_TRACE, span->trace);
    encode_id(e, NAME("spanId"), SPAN_ID, span->span);
    if (span->parent.data != NULL)
        encode_id(e, NAME("parentSpanId"), SPAN_PARENT, span->parent);
    encode_valid_text(e, NAME("name"), SPAN_NAME, span->name);
    encode_small(e, NAME("kind"), SPAN_KIND, find_span_kind(begin));
    lose_time(e, span->begin_ns);
    encode_time(e, NAME("startTimeUnixNano"), SPAN_START, span->begin_ns);
    lose_time(e, span->end_ns);
    encode_time(e, NAME("endTimeUnixNano"), SPAN_END, span->end_ns);
    encode_attributes(e, span, begin, end);
    begin_list(e, NAME("events"));
}

void otlp_encode_point(otlp_encoder *e, const nl_record *record)
{
    begin_element(e, SPAN_EVENT);
    lose_time(e, record->time_ns);
    encode_time(e, NAME("timeUnixNano"), EVENT_TIME, record->time_ns);
    encode_valid_text(e, NAME("name"), EVENT_NAME, record->event);
    encode_attributes(e, NULL, record, NULL);
    end_message(e);
}

void otlp_end_span(otlp_encoder *e, const otlp_span *span)
{
    end_list(e);
    if (span->failed || span->message.data != NULL) {
        begin_message(e, NAME("status"), SPAN_STATUS);
        if (span->message.data != NULL)
            encode_valid_text(e, NAME("message"), STATUS_MESSAGE, span->message);
        encode_small(e, NAME("code"), STATUS_CODE, span->failed ? 2 : 0);
        end_message(e);
    }
    end_message(e);
}

void otlp_encoder_free(otlp_encoder *e)
{
    keys_free(&e->keys);
}
