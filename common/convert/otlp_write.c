/*
 * Writes OpenTelemetry logs (OTLP) as JSON lines; each line is an ExportLogsServiceRequest.
 *
 * A record becomes a LogRecord. Its event is eventName and body; its fields are attributes with the keys of keys.h.
 * Consecutive records from the same host (resource attribute host.name) and program (service.name) share a line.
 * otlp.h has the attributes for the values that a LogRecord cannot hold.
 */
#include "config.h"

#include "convert/otlp.h"
#include "base/time_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LINE_RECORDS = 100 };

typedef struct otlp_writer {
    exporter base;
    keys keys;
    nl_buffer source; /* host and program of the open line */
    nl_buffer next;
    unsigned count; /* number of records in the open line; 0 if no line is open */
} otlp_writer;

static void otlp_write_close_writer(exporter *base)
{
    otlp_writer *w = (otlp_writer *)base;
    keys_free(&w->keys);
    nl_buffer_free(&w->source);
    nl_buffer_free(&w->next);
}

static void otlp_put_text(nl_buffer *out, nl_string text)
{
    size_t before = out->size;
    JSON_PUT(out, "{\"stringValue\":");
    if (!json_put_quoted(out, text)) {
        out->size = before;
        JSON_PUT(out, "{\"bytesValue\":\"");
        base64_put(out, text);
        JSON_PUT(out, "\"");
    }
    JSON_PUT(out, "}");
}

static void put_double(nl_buffer *out, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE + 2];
    double value = field->double_value;
    JSON_PUT(out, "{\"doubleValue\":");
    if (isnan(value)) {
        JSON_PUT(out, "\"NaN\"");
    } else if (isinf(value) && value > 0) {
        JSON_PUT(out, "\"Infinity\"");
    } else if (isinf(value)) {
        JSON_PUT(out, "\"-Infinity\"");
    } else {
        nl_string text = json_double_text(field, scratch);
        json_put(out, text.data, text.size);
    }
    JSON_PUT(out, "}");
}

static void put_word(nl_buffer *out, const char *before, nl_string text, const char *after)
{
    json_put(out, before, strlen(before));
    json_put(out, text.data, text.size);
    json_put(out, after, strlen(after));
}

void otlp_put_value(nl_buffer *out, const nl_field *field, bool typed, sink *s)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    switch (field->type) {
    case NL_TYPE_STRING:
        if (typed || !json_is_number(field->string))
            otlp_put_text(out, field->string);
        else if (memchr(field->string.data, '.', field->string.size) != NULL)
            put_word(out, "{\"doubleValue\":", field->string, "}");
        else
            put_word(out, "{\"intValue\":\"", field->string, "\"}");
        return;
    case NL_TYPE_DOUBLE:
        put_double(out, field);
        return;
    case NL_TYPE_BOOL:
        put_word(out, "{\"boolValue\":", nl_field_text(field, scratch), "}");
        return;
    case NL_TYPE_UINT:
        if (field->uint_value > INT64_MAX) {
            put_word(out, "{\"kvlistValue\":{\"values\":[{\"key\":\"uint\",\"value\":{\"stringValue\":\"",
                     nl_field_text(field, scratch), "\"}}]}}");
            return;
        }
        sink_lose(s, LOSS_UNSIGNED);
        break;
    case NL_TYPE_INT:
        break;
    }
    put_word(out, "{\"intValue\":\"", nl_field_text(field, scratch), "\"}");
}

/* Begins an attribute. Writes a comma before all attributes except the first. */
static void put_key(nl_buffer *out, bool *first, const char *key)
{
    put_word(out, *first ? "{\"key\":\"" : ",{\"key\":\"", (nl_string){key, strlen(key)}, "\",\"value\":");
    *first = false;
}

void otlp_put_resource(nl_buffer *out, nl_string host, nl_string prog)
{
    bool first = true;
    JSON_PUT(out, "{\"resource\":{\"attributes\":[");
    if (host.data != NULL) {
        put_key(out, &first, "host.name");
        otlp_put_text(out, host);
        JSON_PUT(out, "}");
    }
    if (prog.data != NULL) {
        put_key(out, &first, "service.name");
        otlp_put_text(out, prog);
        JSON_PUT(out, "}");
    }
    JSON_PUT(out, "]}");
}

static void end_line(otlp_writer *w, nl_buffer *out)
{
    if (w->count > 0)
        JSON_PUT(out, "]}]}]}\n");
    w->count = 0;
}

static void note_source(nl_buffer *source, const nl_record *record)
{
    const nl_string parts[] = {record->host, record->prog};
    source->size = 0;
    for (size_t i = 0; i < 2; i++) {
        size_t size = parts[i].data != NULL ? parts[i].size : SIZE_MAX;
        nl_buffer_append(source, &size, sizeof size);
        nl_buffer_append(source, parts[i].data, parts[i].size);
    }
}

/* Opens a line for the record's host and program unless it is open. */
static void begin_line(otlp_writer *w, const nl_record *record, nl_buffer *out)
{
    note_source(&w->next, record);
    bool same = w->next.size == w->source.size && memcmp(w->next.data, w->source.data, w->next.size) == 0;
    if (w->count > 0 && same && w->count < LINE_RECORDS) {
        JSON_PUT(out, ",");
        w->count++;
        return;
    }
    end_line(w, out);
    nl_buffer before = w->source;
    w->source = w->next;
    w->next = before;
    w->count = 1;
    JSON_PUT(out, "{\"resourceLogs\":[");
    otlp_put_resource(out, record->host, record->prog);
    JSON_PUT(out, ",\"scopeLogs\":[{\"scope\":{\"name\":\"" OTLP_SCOPE "\"},\"logRecords\":[");
}

/* The SeverityNumber of each level. Each range of four numbers has one name. */
static const unsigned char severities[] = {
    [NL_EMERGENCY] = 24, [NL_ALERT] = 21, [NL_ERROR] = 17,  [NL_WARNING] = 13,   [NL_AUTH] = 10,
    [NL_SECURITY] = 14,  [NL_USAGE] = 9,  [NL_SYSTEM] = 11, [NL_IMPORTANT] = 12, [NL_DEBUG] = 5};

/* Returns whether the level needs a NetLogger attribute. */
static bool put_level(nl_buffer *out, const nl_record *record)
{
    nl_string text = level_as_text(record);
    char number[32];
    if (record->level != NL_LEVEL_NONE) {
        int size = snprintf(number, sizeof number, ",\"severityNumber\":%d", severities[record->level]);
        json_put(out, number, (size_t)size);
    }
    if (text.data == NULL)
        return false;
    size_t before = out->size;
    JSON_PUT(out, ",\"severityText\":");
    if (text.size > 0 && json_put_quoted(out, text))
        return false;
    out->size = before;
    return true;
}

static void put_event(nl_buffer *out, nl_string event)
{
    size_t before = out->size;
    if (event.data == NULL)
        return;
    JSON_PUT(out, ",\"eventName\":");
    if (event.size == 0 || !json_put_quoted(out, event))
        out->size = before;
    JSON_PUT(out, ",\"body\":");
    otlp_put_text(out, event);
}

static void otlp_write_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    otlp_writer *w = (otlp_writer *)base;
    nl_buffer *out = &s->bytes;
    bool first = true;
    char number[64], time[NL_TIME_TEXT_SIZE];
    begin_line(w, record, out);
    int size =
        snprintf(number, sizeof number, "{\"timeUnixNano\":\"%" PRId64 "\"", record->time_ns < 0 ? 0 : record->time_ns);
    json_put(out, number, (size_t)size);
    bool own_level = put_level(out, record);
    put_event(out, record->event);
    JSON_PUT(out, ",\"attributes\":[");
    if (record->time_ns < 0) {
        put_key(out, &first, OTLP_TIME_KEY);
        otlp_put_text(out, (nl_string){time, nl_time_format_iso(record->time_ns, time)});
        JSON_PUT(out, "}");
    }
    if (own_level) {
        put_key(out, &first, OTLP_LEVEL_KEY);
        otlp_put_text(out, level_as_text(record));
        JSON_PUT(out, "}");
    }
    keys_begin(&w->keys, record->field_count + 2);
    keys_count(&w->keys, (nl_string){OTLP_TIME_KEY, strlen(OTLP_TIME_KEY)});
    keys_count(&w->keys, (nl_string){OTLP_LEVEL_KEY, strlen(OTLP_LEVEL_KEY)});
    for (size_t i = 0; i < record->field_count; i++) {
        put_word(out, first ? "" : ",", (nl_string){"{\"key\":\"", 8}, "");
        keys_put(&w->keys, record->fields[i].name, out);
        JSON_PUT(out, "\",\"value\":");
        otlp_put_value(out, &record->fields[i], typed, s);
        JSON_PUT(out, "}");
        first = false;
    }
    JSON_PUT(out, "]}");
}

static void otlp_write_flush(exporter *base, sink *s)
{
    end_line((otlp_writer *)base, &s->bytes);
}

const exporter_kind otlp_exporter = {
    .name = "otlp",
    .what = "OpenTelemetry logs (OTLP) as JSON lines",
    .size = sizeof(otlp_writer),
    .close = otlp_write_close_writer,
    .put = otlp_write_put,
    .flush = otlp_write_flush,
};
