/*
 * Reads OpenTelemetry logs and spans. See otlp_write.c for the form of NetLogger's own logs, and doc/formats.md for
 * other logs.
 */
#include "config.h"

#include "convert/otlp.h"

#include "convert/builder.h"
#include "convert/json_scan.h"

#include <inttypes.h>
#include <string.h>

typedef struct otlp_reader {
    importer base;
    builder builder;
    const char *error; /* the first error in the line */
    sink *s;
    nl_string resource, scope; /* JSON text */
    nl_string trace, span;     /* JSON text of the span's IDs */
    size_t line_size;
} otlp_reader;

/* A member to find. Its value is JSON text, whose data is NULL if the object does not have the member. */
typedef struct wanted {
    const char *name;
    nl_string text;
} wanted;

static bool otlp_read_fail(otlp_reader *r, const char *error)
{
    if (r->error == NULL)
        r->error = error;
    return false;
}

static char *allocate(void *user, size_t size)
{
    return builder_bytes(user, size);
}

static json_scan scan_of(otlp_reader *r, nl_string text)
{
    const char *end = text.data != NULL ? text.data + text.size : NULL;
    return (json_scan){.at = text.data, .end = end, .allocate = allocate, .user = &r->builder};
}

static bool equals(nl_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* Finds members of the object in text. */
static bool pick(otlp_reader *r, nl_string text, wanted *members, size_t count)
{
    json_scan j = scan_of(r, text);
    bool first = true;
    nl_string key, value;
    if (text.data == NULL)
        return true;
    if (!json_take(&j, '{'))
        return otlp_read_fail(r, "expected an object");
    while (json_next(&j, '}', &first) && json_key(&j, &key) && json_any(&j, &value))
        for (size_t i = 0; i < count; i++)
            if (equals(key, members[i].name) && !equals(value, "null"))
                members[i].text = value;
    return j.error == NULL || otlp_read_fail(r, j.error);
}
#define PICK(r, text, members) pick(r, text, members, sizeof(members) / sizeof((members)[0]))

/* Calls take for each value of the array in text. */
static bool each(otlp_reader *r, nl_string text, bool (*take)(otlp_reader *r, nl_string value))
{
    json_scan j = scan_of(r, text);
    bool first = true;
    nl_string value;
    if (text.data == NULL)
        return true;
    if (!json_take(&j, '['))
        return otlp_read_fail(r, "expected an array");
    while (json_next(&j, ']', &first) && json_any(&j, &value))
        if (!take(r, value))
            return false;
    return j.error == NULL || otlp_read_fail(r, j.error);
}

/* Converts a JSON string or number to text. */
static bool text_of(otlp_reader *r, nl_string text, nl_string *out)
{
    json_scan j = scan_of(r, text);
    *out = (nl_string){NULL, 0};
    if (text.data == NULL)
        return true;
    if (text.data[0] != '"') {
        *out = text;
        return true;
    }
    return json_string(&j, out) || otlp_read_fail(r, j.error);
}

static bool bytes_of(otlp_reader *r, nl_string text, nl_string *out)
{
    if (!text_of(r, text, out))
        return false;
    char *bytes = builder_bytes(&r->builder, out->size);
    size_t size = bytes != NULL ? base64_get(*out, bytes) : SIZE_MAX;
    *out = (nl_string){bytes, size};
    return size != SIZE_MAX || otlp_read_fail(r, "a bytesValue is not base64");
}

/* Reads {"values":[{"key":"uint", ...}]}, which is NetLogger's form for large unsigned integers. Other lists stay
 * text. */
static bool list_value(otlp_reader *r, nl_string text, nl_field *field)
{
    static const char before[] = "{\"values\":[{\"key\":\"uint\",\"value\":{\"stringValue\":\"", after[] = "\"}}]}";
    size_t around = sizeof before + sizeof after - 2;
    (void)r;
    if (text.size > around && memcmp(text.data, before, sizeof before - 1) == 0 &&
        json_unsigned((nl_string){text.data + sizeof before - 1, text.size - around}, &field->uint_value)) {
        field->type = NL_TYPE_UINT;
        return true;
    }
    field->type = NL_TYPE_STRING;
    field->string = text;
    return true;
}

static bool double_value(otlp_reader *r, nl_string text, nl_field *field)
{
    nl_field as_text = {.type = NL_TYPE_STRING};
    if (!text_of(r, text, &as_text.string))
        return false;
    field->type = NL_TYPE_DOUBLE;
    return nl_field_double(&as_text, &field->double_value) || otlp_read_fail(r, "a doubleValue is not a number");
}

/* Sets the type and value of a field from an AnyValue. */
static bool any_value(otlp_reader *r, nl_string text, nl_field *field)
{
    enum { STRING, INT, DOUBLE, BOOL, BYTES, ARRAY, LIST };
    wanted w[] = {{.name = "stringValue"}, {.name = "intValue"},   {.name = "doubleValue"}, {.name = "boolValue"},
                  {.name = "bytesValue"},  {.name = "arrayValue"}, {.name = "kvlistValue"}};
    if (!PICK(r, text, w))
        return false;
    nl_string value;
    field->type = NL_TYPE_STRING;
    if (w[INT].text.data != NULL) {
        if (!text_of(r, w[INT].text, &value))
            return false;
        json_number_value(value, field);
        return true;
    }
    if (w[DOUBLE].text.data != NULL)
        return double_value(r, w[DOUBLE].text, field);
    if (w[BOOL].text.data != NULL) {
        field->type = NL_TYPE_BOOL;
        field->bool_value = equals(w[BOOL].text, "true");
        return true;
    }
    if (w[LIST].text.data != NULL)
        return list_value(r, w[LIST].text, field);
    if (w[BYTES].text.data != NULL)
        return bytes_of(r, w[BYTES].text, &field->string);
    field->string = w[ARRAY].text;
    if (w[STRING].text.data != NULL)
        return text_of(r, w[STRING].text, &field->string);
    if (field->string.data == NULL)
        field->string = (nl_string){"", 0};
    return true;
}

/* Sets a field from an attribute. */
static bool read_attribute(otlp_reader *r, nl_string text, nl_field *field)
{
    wanted w[] = {{.name = "key"}, {.name = "value"}};
    if (!PICK(r, text, w) || !text_of(r, w[0].text, &field->name))
        return false;
    if (field->name.data == NULL)
        return otlp_read_fail(r, "an attribute has no key");
    return any_value(r, w[1].text, field);
}

static void otlp_read_add_field(otlp_reader *r, const nl_field *value)
{
    nl_field *field = builder_add(&r->builder, value->name, r->s);
    nl_string name = field->name;
    *field = *value;
    field->name = name;
}

static nl_string as_text(otlp_reader *r, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    if (text.data != scratch)
        return text;
    char *bytes = builder_bytes(&r->builder, text.size);
    if (bytes != NULL)
        memcpy(bytes, text.data, text.size);
    return (nl_string){bytes, bytes != NULL ? text.size : 0};
}

static bool set_member(otlp_reader *r, member m, nl_string text)
{
    return builder_set(&r->builder, m, text) || otlp_read_fail(r, "invalid time");
}

static bool is_unset(const otlp_reader *r, member m)
{
    return (r->builder.seen & 1u << m) == 0;
}

static bool otlp_read_resource_attribute(otlp_reader *r, nl_string text)
{
    nl_field value;
    if (!read_attribute(r, text, &value))
        return false;
    if (equals(value.name, "host.name") && is_unset(r, MEMBER_HOST))
        return set_member(r, MEMBER_HOST, as_text(r, &value));
    if (equals(value.name, "service.name") && is_unset(r, MEMBER_PROG))
        return set_member(r, MEMBER_PROG, as_text(r, &value));
    otlp_read_add_field(r, &value);
    return true;
}

static bool otlp_read_attribute(otlp_reader *r, nl_string text)
{
    nl_field value;
    if (!read_attribute(r, text, &value))
        return false;
    if (equals(value.name, OTLP_TIME_KEY))
        return set_member(r, MEMBER_TIME, as_text(r, &value));
    if (equals(value.name, OTLP_LEVEL_KEY))
        return set_member(r, MEMBER_LEVEL, as_text(r, &value));
    otlp_read_add_field(r, &value);
    return true;
}

static void begin_record(otlp_reader *r)
{
    builder_begin(&r->builder, 3 * r->line_size + 4096);
}

/* Adds the fields from the resource and the scope. */
static bool otlp_add_surroundings(otlp_reader *r)
{
    wanted resource[] = {{.name = "attributes"}}, scope[] = {{.name = "name"}};
    nl_string name;
    if (!PICK(r, r->resource, resource) || !each(r, resource[0].text, otlp_read_resource_attribute) ||
        !PICK(r, r->scope, scope) || !text_of(r, scope[0].text, &name))
        return false;
    if (name.data != NULL && name.size > 0 && !equals(name, OTLP_SCOPE))
        builder_add_text(&r->builder, (nl_string){"otel.scope.name", 15}, name, r->s);
    return true;
}

/* Sets the time from nanoseconds since 1970. */
static bool otlp_read_time(otlp_reader *r, nl_string text)
{
    nl_string digits;
    uint64_t time_ns;
    if (!text_of(r, text, &digits))
        return false;
    if (digits.data == NULL || !json_unsigned(digits, &time_ns) || time_ns > INT64_MAX)
        return otlp_read_fail(r, digits.data == NULL ? "missing timeUnixNano" : "invalid time");
    nl_record_set_time(r->builder.record, (int64_t)time_ns);
    r->builder.seen |= 1u << MEMBER_TIME;
    return true;
}

static bool otlp_read_severity(otlp_reader *r, nl_string number, nl_string text)
{
    uint64_t severity;
    nl_string text_value;
    if (!text_of(r, text, &text_value))
        return false;
    if (text_value.data != NULL)
        return set_member(r, MEMBER_LEVEL, text_value);
    if (number.data == NULL || !json_unsigned(number, &severity) || severity == 0 || !is_unset(r, MEMBER_LEVEL))
        return true;
    nl_level level = severity <= 8    ? NL_DEBUG
                     : severity <= 12 ? NL_USAGE
                     : severity <= 16 ? NL_WARNING
                     : severity <= 20 ? NL_ERROR
                                      : NL_EMERGENCY;
    const char *name = nl_level_name(level);
    return set_member(r, MEMBER_LEVEL, (nl_string){name, strlen(name)});
}

static bool otlp_read_add_text(otlp_reader *r, const char *name, nl_string text)
{
    nl_string value;
    if (!text_of(r, text, &value))
        return false;
    if (value.data != NULL && value.size > 0)
        builder_add_text(&r->builder, (nl_string){name, strlen(name)}, value, r->s);
    return true;
}

/* In NetLogger's own logs, the body is the event. In other logs that have an eventName, the body is a field. */
static bool otlp_read_take_event(otlp_reader *r, nl_string event, nl_string body)
{
    nl_string name;
    nl_field value = {.name = {"body", 4}};
    if (!text_of(r, event, &name) || (body.data != NULL && !any_value(r, body, &value)))
        return false;
    nl_string text = body.data != NULL ? as_text(r, &value) : (nl_string){NULL, 0};
    if (name.data == NULL || name.size == 0)
        return body.data == NULL || set_member(r, MEMBER_EVENT, text);
    if (body.data != NULL && !(text.size == name.size && memcmp(text.data, name.data, name.size) == 0))
        otlp_read_add_field(r, &value);
    return set_member(r, MEMBER_EVENT, name);
}

static bool finish(otlp_reader *r)
{
    return builder_finish(&r->builder, true, r->s) || otlp_read_fail(r, "missing time");
}

static bool otlp_read_log(otlp_reader *r, nl_string text)
{
    enum { TIME, OBSERVED, NUMBER, SEVERITY, EVENT, BODY, ATTRIBUTES, TRACE, SPAN };
    wanted w[] = {{.name = "timeUnixNano"},   {.name = "observedTimeUnixNano"},
                  {.name = "severityNumber"}, {.name = "severityText"},
                  {.name = "eventName"},      {.name = "body"},
                  {.name = "attributes"},     {.name = "traceId"},
                  {.name = "spanId"}};
    begin_record(r);
    if (!PICK(r, text, w) || !otlp_add_surroundings(r) || !otlp_read_take_event(r, w[EVENT].text, w[BODY].text) ||
        !otlp_read_add_text(r, "trace_id", w[TRACE].text) || !otlp_read_add_text(r, "span_id", w[SPAN].text) ||
        !each(r, w[ATTRIBUTES].text, otlp_read_attribute))
        return false;
    bool unknown = w[TIME].text.data == NULL || equals(w[TIME].text, "\"0\"") || equals(w[TIME].text, "0");
    if (is_unset(r, MEMBER_TIME) &&
        !otlp_read_time(r, unknown && w[OBSERVED].text.data != NULL ? w[OBSERVED].text : w[TIME].text))
        return false;
    return otlp_read_severity(r, w[NUMBER].text, w[SEVERITY].text) && finish(r);
}

/* ---- spans: a record for the start, for each event, and for the end ---- */

static bool begin_span_record(otlp_reader *r, nl_string time, nl_string name, const char *suffix)
{
    begin_record(r);
    nl_string text_value;
    if (!otlp_add_surroundings(r) || !otlp_read_time(r, time) || !text_of(r, name, &text_value))
        return false;
    size_t size = strlen(suffix);
    char *event = builder_bytes(&r->builder, text_value.size + size);
    if (event == NULL)
        return otlp_read_fail(r, "names are too long");
    if (text_value.size > 0)
        memcpy(event, text_value.data, text_value.size);
    memcpy(event + text_value.size, suffix, size);
    return set_member(r, MEMBER_EVENT, (nl_string){event, text_value.size + size}) &&
           otlp_read_add_text(r, "trace_id", r->trace) && otlp_read_add_text(r, "span_id", r->span);
}

static bool otlp_read_span_event(otlp_reader *r, nl_string text)
{
    enum { TIME, NAME, ATTRIBUTES };
    wanted w[] = {{.name = "timeUnixNano"}, {.name = "name"}, {.name = "attributes"}};
    return PICK(r, text, w) && begin_span_record(r, w[TIME].text, w[NAME].text, "") &&
           each(r, w[ATTRIBUTES].text, otlp_read_attribute) && finish(r);
}

static bool otlp_read_span(otlp_reader *r, nl_string text)
{
    enum { TRACE, SPAN, PARENT, NAME, START, END, ATTRIBUTES, EVENTS, STATUS };
    wanted w[] = {{.name = "traceId"},
                  {.name = "spanId"},
                  {.name = "parentSpanId"},
                  {.name = "name"},
                  {.name = "startTimeUnixNano"},
                  {.name = "endTimeUnixNano"},
                  {.name = "attributes"},
                  {.name = "events"},
                  {.name = "status"}};
    wanted status[] = {{.name = "code"}, {.name = "message"}};
    if (!PICK(r, text, w))
        return false;
    r->trace = w[TRACE].text;
    r->span = w[SPAN].text;
    return begin_span_record(r, w[START].text, w[NAME].text, ".Start") &&
           otlp_read_add_text(r, "parent_id", w[PARENT].text) && each(r, w[ATTRIBUTES].text, otlp_read_attribute) &&
           finish(r) && each(r, w[EVENTS].text, otlp_read_span_event) &&
           begin_span_record(r, w[END].text, w[NAME].text, ".End") && PICK(r, w[STATUS].text, status) &&
           otlp_read_add_text(r, "status", status[0].text) && otlp_read_add_text(r, "message", status[1].text) &&
           finish(r);
}

/* ---- scopes and requests ---- */

static bool otlp_read_scope(otlp_reader *r, nl_string text)
{
    wanted w[] = {{.name = "scope"}, {.name = "logRecords"}, {.name = "spans"}};
    if (!PICK(r, text, w))
        return false;
    r->scope = w[0].text;
    return each(r, w[1].text, otlp_read_log) && each(r, w[2].text, otlp_read_span);
}

static bool otlp_read_resource(otlp_reader *r, nl_string text)
{
    wanted w[] = {{.name = "resource"}, {.name = "scopeLogs"}, {.name = "scopeSpans"}};
    if (!PICK(r, text, w))
        return false;
    r->resource = w[0].text;
    return each(r, w[1].text, otlp_read_scope) && each(r, w[2].text, otlp_read_scope);
}

/* Reads a request, which is one line. */
static bool otlp_read_take_line(otlp_reader *r, nl_string line)
{
    wanted w[] = {{.name = "resourceLogs"}, {.name = "resourceSpans"}};
    json_scan j = scan_of(r, line);
    nl_string all;
    begin_record(r);
    if (!json_any(&j, &all))
        return otlp_read_fail(r, j.error);
    json_blank(&j);
    if (j.at != j.end)
        return otlp_read_fail(r, "unexpected text after the object");
    if (!PICK(r, all, w))
        return false;
    if (w[0].text.data == NULL && w[1].text.data == NULL)
        return otlp_read_fail(r, "found neither resourceLogs nor resourceSpans");
    return each(r, w[0].text, otlp_read_resource) && each(r, w[1].text, otlp_read_resource);
}

static void otlp_read_close_reader(importer *base)
{
    otlp_reader *r = (otlp_reader *)base;
    builder_free(&r->builder);
}

static bool is_blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at == end;
}

static void read_lines(importer *base, const char *data, size_t size, sink *s)
{
    otlp_reader *r = (otlp_reader *)base;
    r->s = s;
    uint64_t number = 1;
    for (const char *at = data, *end = data + size; at < end && !s->stopped; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline != NULL ? newline : end;
        r->error = NULL;
        r->line_size = (size_t)(stop - at);
        if (!is_blank(at, stop) && !otlp_read_take_line(r, (nl_string){at, r->line_size}))
            sink_malformed(s, number, (uint64_t)(at - data), r->error, at, r->line_size);
        at = newline != NULL ? newline + 1 : end;
    }
}

static bool otlp_read_detect(const char *data, size_t size)
{
    builder none = {0};
    json_scan j = {.at = data, .end = data + size, .allocate = allocate, .user = &none};
    nl_string key;
    return json_take(&j, '{') && json_key(&j, &key) && (equals(key, "resourceLogs") || equals(key, "resourceSpans"));
}

const importer_kind otlp_importer = {
    .name = "otlp",
    .what = "OpenTelemetry logs and spans (OTLP) as JSON lines",
    .detect = otlp_read_detect,
    .size = sizeof(otlp_reader),
    .close = otlp_read_close_reader,
    .read = read_lines,
};
