/*
 * Reads files of OpenTelemetry's requests. In the format otlp, a request is JSON on one or several lines. In the format
 * otlp-proto, a request is protobuf after its size in four bytes, as the Collector's file exporter writes it.
 */
#include "config.h"

#include "base/memory.h"
#include "convert/cutter.h"
#include "convert/json_scan.h"
#include "convert/otlp_records.h"
#include "convert/protobuf.h"

#include <string.h>

typedef struct otlp_reader {
    importer base;
    otlp_records *records;
} otlp_reader;

static void otlp_open_reader(importer *base)
{
    ((otlp_reader *)base)->records = otlp_records_new(NULL);
}

static void otlp_close_reader(importer *base)
{
    otlp_records_free(((otlp_reader *)base)->records);
}

static void otlp_take_request(otlp_reader *r, otlp_signal signal, bool json, nl_string text, uint64_t line,
                              uint64_t offset, sink *s)
{
    otlp_limits none = {0};
    otlp_outcome outcome = otlp_records_read(r->records, signal, json, text, &none, s);
    if (outcome.rejected > 0)
        sink_malformed(s, line, offset, outcome.error, text.data, text.size);
}

/* ---- JSON ---- */

static char *allocate(void *user, size_t size)
{
    (void)size;
    return user; /* NULL, because the keys of requests contain no escapes */
}

static bool otlp_read_detect(const char *data, size_t size)
{
    json_scan j = {.at = data, .end = data + size, .allocate = allocate};
    nl_string key;
    return json_take(&j, '{') && json_key(&j, &key) && key.size >= 12 && memcmp(key.data, "resource", 8) == 0 &&
           (memcmp(key.data + 8, "Logs", 4) == 0 || (key.size >= 13 && memcmp(key.data + 8, "Spans", 5) == 0) ||
            (key.size >= 15 && memcmp(key.data + 8, "Metrics", 7) == 0));
}

/*
 * Returns the end of the request that begins at `at`: the position after the closing brace or, if the request is
 * damaged, the next line on which a request begins. Returns NULL if the end is not in the data.
 */
static const char *otlp_request_end(const char *at, const char *end)
{
    size_t depth = 0;
    bool quoted = false;
    for (const char *start = at; at < end; at++) {
        if (*at == '\n' && end - at > 1 && at[1] == '{' && at > start &&
            otlp_read_detect(at + 1, (size_t)(end - at - 1)))
            return at + 1;
        if (*at == '"')
            quoted = !quoted;
        else if (quoted)
            at += *at == '\\' && end - at > 1 && at[1] != '\n';
        else if (*at == '{' || *at == '[')
            depth++;
        else if ((*at == '}' || *at == ']') && --depth == 0)
            return at + 1;
    }
    return NULL;
}

/* Returns the end of the text that begins at `at`: a request, or a line that is not a request. */
static const char *otlp_text_end(const char *at, const char *end)
{
    if (*at == '{')
        return otlp_request_end(at, end);
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline != NULL ? newline + 1 : NULL;
}

static const char *otlp_skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at;
}

static size_t otlp_cut(const char *data, size_t size)
{
    const char *end = data + size, *last = otlp_skip_blanks(data, end), *next;
    while (last < end && (next = otlp_text_end(last, end)) != NULL)
        last = otlp_skip_blanks(next, end);
    return (size_t)(last - data);
}

static void otlp_read(importer *base, const char *data, size_t size, sink *s)
{
    otlp_reader *r = (otlp_reader *)base;
    uint64_t line = 1;
    for (const char *at = data, *end = data + size, *from = data; at < end && !s->stopped;) {
        at = otlp_skip_blanks(at, end);
        line += cutter_count_lines(from, (size_t)(at - from));
        from = at;
        if (at == end)
            return;
        at = otlp_text_end(at, end);
        at = at != NULL ? at : end;
        otlp_take_request(r, OTLP_SIGNAL_COUNT, true, (nl_string){from, (size_t)(at - from)}, line,
                          (uint64_t)(from - data), s);
    }
}

const importer_kind otlp_importer = {
    .name = "otlp",
    .what = "OpenTelemetry logs, spans and metrics (OTLP) as JSON",
    .detect = otlp_read_detect,
    .cut = otlp_cut,
    .size = sizeof(otlp_reader),
    .open = otlp_open_reader,
    .close = otlp_close_reader,
    .read = otlp_read,
};

/* ---- protobuf ---- */

enum {
    SIZE_SIZE = 4, /* number of bytes of the size before a request */
    REQUEST_MAX = 64 << 20,
    FIELD_1 = 0x0a, /* the keys of fields 1 and 2 with bytes */
    FIELD_2 = 0x12,
};

/*
 * Returns the size of the request at the start of the data, including the SIZE_SIZE bytes before it. Returns 0 if the
 * request is incomplete.
 */
static size_t otlp_proto_size(const char *data, size_t size)
{
    uint32_t content;
    if (size < SIZE_SIZE)
        return 0;
    memcpy(&content, data, sizeof content);
    content = be32toh(content);
    return content <= size - SIZE_SIZE ? SIZE_SIZE + (size_t)content : 0;
}

/*
 * Returns the content of the first field with this number in a message. `data` is NULL if the message has no such
 * field.
 */
static nl_string otlp_proto_first(nl_string message, uint32_t number)
{
    protobuf_field f;
    if (message.data == NULL)
        return message;
    for (const char *at = message.data, *end = at + message.size; at < end;) {
        if (!protobuf_next(&at, end, &f))
            break;
        if (f.number == number && f.wire == PROTOBUF_BYTES)
            return (nl_string){f.data, f.size};
    }
    return (nl_string){NULL, 0};
}

/*
 * Returns the signal of a request (spans, logs or metrics). Only the first item of the request shows the signal. A span
 * has its start time in field 7. A log record has a time in field 1 or 11.
 */
static otlp_signal otlp_proto_signal(nl_string request)
{
    nl_string item = otlp_proto_first(otlp_proto_first(otlp_proto_first(request, 1), 2), 2);
    protobuf_field f;
    if (item.data == NULL)
        return OTLP_METRICS;
    for (const char *at = item.data, *end = at + item.size; at < end;) {
        if (!protobuf_next(&at, end, &f))
            break;
        if (f.wire == PROTOBUF_I64)
            return f.number == 7 ? OTLP_TRACES : OTLP_LOGS;
    }
    return OTLP_METRICS;
}

/*
 * Returns whether the data is in this format. Examines only the first resource and its first field, because the rest of
 * the request may not have arrived.
 */
static bool otlp_proto_detect(const char *data, size_t size)
{
    uint32_t content;
    uint64_t resource;
    if (size < SIZE_SIZE + 4)
        return false;
    memcpy(&content, data, sizeof content);
    content = be32toh(content);
    const char *at = data + SIZE_SIZE + 1, *end = data + size;
    return content >= 4 && content <= REQUEST_MAX && at[-1] == FIELD_1 && protobuf_varint(&at, end, &resource) &&
           resource <= content - (size_t)(at - data - SIZE_SIZE) && at < end && (*at == FIELD_1 || *at == FIELD_2);
}

static size_t otlp_proto_cut(const char *data, size_t size)
{
    size_t at = 0;
    for (size_t whole; (whole = otlp_proto_size(data + at, size - at)) > 0;)
        at += whole;
    return at;
}

static void otlp_proto_read(importer *base, const char *data, size_t size, sink *s)
{
    otlp_reader *r = (otlp_reader *)base;
    size_t whole;
    for (size_t at = 0; at < size && !s->stopped; at += whole) {
        whole = otlp_proto_size(data + at, size - at);
        if (whole == 0) {
            sink_malformed(s, 0, at, "incomplete request", data + at, size - at);
            return;
        }
        nl_string request = {data + at + SIZE_SIZE, whole - SIZE_SIZE};
        otlp_take_request(r, otlp_proto_signal(request), false, request, 0, at, s);
    }
}

const importer_kind otlp_proto_importer = {
    .name = "otlp-proto",
    .what = "OpenTelemetry logs, spans and metrics (OTLP) as protobuf; each request begins with its size (4 bytes)",
    .detect = otlp_proto_detect,
    .cut = otlp_proto_cut,
    .size = sizeof(otlp_reader),
    .open = otlp_open_reader,
    .close = otlp_close_reader,
    .read = otlp_proto_read,
};
