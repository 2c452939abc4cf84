/*
 * Writes OpenTelemetry spans as JSON lines. A request becomes a trace, with one line for each span.
 *
 * A span's attributes are the fields of the records that begin and end it; its events are the other records in it. IDs
 * in the log that are valid in OTLP are kept. Other IDs are replaced by numbers, so that each run writes the same IDs.
 * A request that does not have exactly one outermost span gets a span with the request's name. A request without spans
 * gets a span for each segment. Records outside requests are omitted, because OTLP cannot represent them.
 */
#include "config.h"

#include "convert/otlp.h"
#include "convert/request_stream.h"

#include <ctype.h>
#include <glib.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { TRACE_ID_SIZE = 32, SPAN_ID_SIZE = 16 };

typedef struct spans_writer {
    exporter base;
    request_stream *requests;
    keys keys;
    uint64_t next_id;
    sink *s; /* the sink; valid during put and end */
} spans_writer;

typedef struct span_id {
    char text[SPAN_ID_SIZE + 1];
} span_id;

/* Identifiers in the fields of a record. */
typedef enum id_kind { ID_NONE, ID_TRACE, ID_SPAN, ID_PARENT } id_kind;

/* Returns which identifier a field is, according to the letters of its name. */
static id_kind id_kind_of(nl_string name)
{
    static const struct {
        const char *letters;
        id_kind kind;
    } names[] = {{"traceid", ID_TRACE}, {"spanid", ID_SPAN}, {"parentid", ID_PARENT}, {"parentspanid", ID_PARENT}};
    char letters[16];
    size_t count = 0;
    for (size_t i = 0; i < name.size; i++)
        if (isalnum((unsigned char)name.data[i])) {
            if (count == sizeof letters - 1)
                return ID_NONE;
            letters[count++] = (char)tolower((unsigned char)name.data[i]);
        }
    letters[count] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(letters, names[i].letters) == 0)
            return names[i].kind;
    return ID_NONE;
}

/* Returns the text of a record's identifier, which is empty if the record does not have it. */
static nl_string id_of(const nl_record *record, id_kind kind, char scratch[NL_FIELD_TEXT_SIZE])
{
    for (size_t i = 0; i < record->field_count; i++)
        if (id_kind_of(record->fields[i].name) == kind)
            return nl_field_text(&record->fields[i], scratch);
    return (nl_string){"", 0};
}

static bool is_otlp_id(nl_string text, size_t size)
{
    bool zero = true;
    for (size_t i = 0; i < text.size; i++) {
        if (!isxdigit((unsigned char)text.data[i]))
            return false;
        zero = zero && text.data[i] == '0';
    }
    return text.size == size && !zero;
}

static NL_PRINTF(2, 3) void put_formatted(nl_buffer *out, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_put(out, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

/* OTLP cannot represent times before 1970. */
static uint64_t unix_time(const spans_writer *w, int64_t time_ns)
{
    if (time_ns < 0)
        sink_lose(w->s, LOSS_TIMES);
    return time_ns < 0 ? 0 : (uint64_t)time_ns;
}

/* ---- attributes ---- */

static void put_attribute(spans_writer *w, const nl_field *field, bool *first)
{
    nl_buffer *out = &w->s->bytes;
    json_put(out, *first ? "{\"key\":\"" : ",{\"key\":\"", strlen("{\"key\":\"") + !*first);
    *first = false;
    keys_put(&w->keys, field->name, out);
    JSON_PUT(out, "\",\"value\":");
    otlp_put_value(out, field, request_stream_is_typed(w->requests), w->s);
    JSON_PUT(out, "}");
}

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

/* Returns whether a field is the phase or the duration of a span in Chrome's traces. OTLP has the span's times instead.
 */
static bool is_chrome_time(const nl_record *record, const nl_field *field)
{
    nl_field phase;
    bool is_phase = field->name.size == 2 && memcmp(field->name.data, "ph", 2) == 0,
         is_duration = field->name.size == 3 && memcmp(field->name.data, "dur", 3) == 0;
    return (is_phase || is_duration) && nl_record_find(record, "ph", &phase) && phase.type == NL_TYPE_STRING &&
           phase.string.size == 1 && strchr("BEX", *phase.string.data) != NULL;
}

/*
 * Writes the fields of one or two records, each of which may be NULL. Omits identifiers and Chrome's times, and writes
 * equal fields once.
 */
static void put_attributes(spans_writer *w, const nl_record *begin, const nl_record *end)
{
    bool first = true;
    const nl_record *records[] = {begin, end};
    keys_begin(&w->keys, (begin != NULL ? begin->field_count : 0) + (end != NULL ? end->field_count : 0));
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; records[k] != NULL && i < records[k]->field_count; i++) {
            const nl_field *field = &records[k]->fields[i];
            if (id_kind_of(field->name) == ID_NONE && !is_chrome_time(records[k], field) &&
                (k == 0 || !has_field(begin, field)))
                put_attribute(w, field, &first);
        }
}

static const nl_record *record_or_none(spans_writer *w, size_t number, int slot)
{
    bool whole;
    if (number == STREAM_NONE)
        return NULL;
    const nl_record *record = request_stream_record(w->requests, number, slot, &whole);
    if (!whole)
        sink_lose(w->s, LOSS_FIELDS);
    return record;
}

/* ---- spans ---- */

static void put_point(spans_writer *w, size_t number)
{
    nl_buffer *out = &w->s->bytes;
    const nl_record *record = record_or_none(w, number, 0);
    put_formatted(out, "{\"timeUnixNano\":\"%" PRIu64 "\",\"name\":", unix_time(w, record->time_ns));
    json_put_name(out, record->event);
    JSON_PUT(out, ",\"attributes\":[");
    put_attributes(w, record, NULL);
    JSON_PUT(out, "]}");
}

static void otlp_put_span(spans_writer *w, const stream_request *r, size_t index, const char *trace, const span_id *ids)
{
    const stream_span *span = &r->spans[index];
    nl_buffer *out = &w->s->bytes;
    bool whole;
    char scratch[NL_FIELD_TEXT_SIZE];
    const nl_record *at = request_stream_span_record(w->requests, span, 0, &whole);
    JSON_PUT(out, "{\"resourceSpans\":[");
    otlp_put_resource(out, at->host, at->prog);
    put_formatted(out, ",\"scopeSpans\":[{\"scope\":{\"name\":\"" OTLP_SCOPE "\"},\"spans\":[{\"traceId\":\"%s\"",
                  trace);
    put_formatted(out, ",\"spanId\":\"%s\"", ids[index].text);
    nl_string named = span->made ? (nl_string){"", 0} : id_of(at, ID_PARENT, scratch);
    if (is_otlp_id(named, SPAN_ID_SIZE))
        put_formatted(out, ",\"parentSpanId\":\"%.*s\"", SPAN_ID_SIZE, named.data);
    else if (span->parent != STREAM_NONE)
        put_formatted(out, ",\"parentSpanId\":\"%s\"", ids[span->parent].text);
    JSON_PUT(out, ",\"name\":");
    json_put_name(out, (nl_string){span->name, strlen(span->name)});
    put_formatted(out, ",\"kind\":1,\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64 "\"",
                  unix_time(w, span->begin_ns), unix_time(w, span->end_ns));
    JSON_PUT(out, ",\"attributes\":[");
    put_attributes(w, record_or_none(w, span->begin, 0),
                   span->end != span->begin ? record_or_none(w, span->end, 1) : NULL);
    JSON_PUT(out, "],\"events\":[");
    for (size_t i = 0; i < span->point_count; i++) {
        if (i > 0)
            JSON_PUT(out, ",");
        put_point(w, r->points[span->first_point + i]);
    }
    JSON_PUT(out, "]");
    if (span->failed)
        JSON_PUT(out, ",\"status\":{\"code\":2}");
    JSON_PUT(out, "}]}]}]}\n");
    sink_drain(w->s);
}

/* Uses the log's trace ID if it is valid in OTLP. */
static void choose_ids(spans_writer *w, const stream_request *r, char trace[TRACE_ID_SIZE + 1], span_id *ids)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    bool whole, named = false;
    snprintf(trace, TRACE_ID_SIZE + 1, "%016" PRIx64 "%016" PRIx64, w->next_id ^ UINT64_C(0x6e65746c6f676765),
             w->next_id);
    for (size_t i = 0; i < r->span_count; i++) {
        const stream_span *span = &r->spans[i];
        snprintf(ids[i].text, sizeof ids[i].text, "%016" PRIx64, w->next_id++);
        if (span->made && span->begin == STREAM_NONE)
            continue;
        const nl_record *record = request_stream_span_record(w->requests, span, 0, &whole);
        nl_string id = id_of(record, ID_SPAN, scratch);
        if (!span->made && is_otlp_id(id, SPAN_ID_SIZE))
            memcpy(ids[i].text, id.data, SPAN_ID_SIZE);
        id = id_of(record, ID_TRACE, scratch);
        if (!named && is_otlp_id(id, TRACE_ID_SIZE)) {
            memcpy(trace, id.data, TRACE_ID_SIZE);
            named = true;
        }
    }
}

static void otlp_put_request(void *user, const stream_request *r)
{
    spans_writer *w = user;
    char trace[TRACE_ID_SIZE + 1];
    span_id *ids = g_new(span_id, r->span_count + 1);
    choose_ids(w, r, trace, ids);
    for (size_t i = 0; i < r->span_count; i++)
        otlp_put_span(w, r, i, trace, ids);
    g_free(ids);
}

static void lose_single(void *user, const nl_record *record)
{
    const spans_writer *w = user;
    (void)record;
    sink_lose(w->s, LOSS_RECORDS);
}

/* ---- the exporter ---- */

static void spans_open(exporter *base)
{
    spans_writer *w = (spans_writer *)base;
    w->requests = request_stream_new(base->shared, &(request_stream_user){otlp_put_request, lose_single, NULL, w});
    w->next_id = UINT64_C(0x1000000000000001);
}

static void spans_close(exporter *base)
{
    spans_writer *w = (spans_writer *)base;
    request_stream_free(w->requests);
    keys_free(&w->keys);
}

static void spans_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    spans_writer *w = (spans_writer *)base;
    w->s = s;
    request_stream_add(w->requests, record, typed);
}

static void spans_end(exporter *base, sink *s)
{
    spans_writer *w = (spans_writer *)base;
    w->s = s;
    request_stream_finish(w->requests);
}

const exporter_kind spans_exporter = {
    .name = "otlp-spans",
    .what = "OpenTelemetry spans (OTLP) as JSON lines; only requests are written",
    .in_order = true,
    .share = request_stream_share,
    .unshare = request_stream_unshare,
    .size = sizeof(spans_writer),
    .open = spans_open,
    .close = spans_close,
    .put = spans_put,
    .end = spans_end,
};
