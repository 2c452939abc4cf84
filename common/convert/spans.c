/*
 * Writes OpenTelemetry's spans as JSON lines. An object of a lifeline becomes a trace. Its root span lasts from the
 * first step to the last, with each step as an event with its fields. Below it is a span for each segment, in the
 * resource where the segment begins.
 */
#include "config.h"

#include "convert/otlp.h"
#include "convert/picture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

typedef struct spans_writer {
    exporter base;
    picture *picture;
} spans_writer;

static void open_writer(exporter *base)
{
    spans_writer *w = (spans_writer *)base;
    w->picture = picture_new();
}

static void spans_close_writer(exporter *base)
{
    spans_writer *w = (spans_writer *)base;
    picture_free(w->picture);
}

static void spans_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed, (void)s;
    trace_add(((spans_writer *)base)->picture->trace, record);
}

static nl_string view(const trace *t, uint32_t string)
{
    const char *text = string != TRACE_NONE ? trace_string(t, string) : NULL;
    return (nl_string){text, text != NULL ? strlen(text) : 0};
}

static void put_quoted(nl_buffer *out, nl_string text)
{
    if (text.data != NULL && json_put_quoted(out, text))
        return;
    char *valid = g_utf8_make_valid(text.data != NULL ? text.data : "", (gssize)text.size);
    json_put_quoted(out, (nl_string){valid, strlen(valid)});
    g_free(valid);
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
static uint64_t unix_time(int64_t time_ns, sink *s)
{
    if (time_ns < 0)
        sink_lose(s, LOSS_TIMES);
    return time_ns < 0 ? 0 : (uint64_t)time_ns;
}

static void put_step(const trace *t, const trace_record *r, sink *s)
{
    nl_buffer *out = &s->bytes;
    put_formatted(out, "{\"timeUnixNano\":\"%" PRIu64 "\",\"name\":", unix_time(r->time_ns, s));
    put_quoted(out, view(t, r->event));
    JSON_PUT(out, ",\"attributes\":[");
    const trace_field *fields = trace_fields(t, r);
    for (uint32_t i = 0; i < r->field_count; i++) {
        nl_field value = {.type = NL_TYPE_STRING, .string = view(t, fields[i].value)};
        json_put(out, &",{\"key\":"[i == 0], strlen(",{\"key\":") - (i == 0));
        put_quoted(out, view(t, fields[i].name));
        JSON_PUT(out, ",\"value\":");
        otlp_put_value(out, &value, false, s);
        JSON_PUT(out, "}");
    }
    JSON_PUT(out, "]}");
}

/* Writes a span without its times; span 0 is the root. */
static void begin_span(const trace *t, const trace_record *from, const trace_record *to, nl_string name,
                       uint64_t trace_id, size_t span, sink *s)
{
    nl_buffer *out = &s->bytes;
    JSON_PUT(out, "{\"resourceSpans\":[");
    otlp_put_resource(out, view(t, from->host), view(t, from->prog));
    put_formatted(out,
                  ",\"scopeSpans\":[{\"scope\":{\"name\":\"netlogger\"},\"spans\":[{\"traceId\":\"%016" PRIx64
                  "%016" PRIx64 "\",\"spanId\":\"%016" PRIx64 "\"",
                  trace_id ^ UINT64_C(0x6e65746c6f676765), trace_id, trace_id + span);
    if (span > 0)
        put_formatted(out, ",\"parentSpanId\":\"%016" PRIx64 "\"", trace_id);
    JSON_PUT(out, ",\"name\":");
    put_quoted(out, name);
    put_formatted(out, ",\"kind\":1,\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64 "\"",
                  unix_time(from->time_ns, s), unix_time(to->time_ns, s));
}

static void put_object(spans_writer *w, const lifelines *l, size_t object, uint64_t trace_id, sink *s)
{
    const trace *t = w->picture->trace;
    const lifeline_object *o = &l->objects[object];
    const lifeline_step *steps = l->steps + o->first_step;
    char *name = picture_object_name(w->picture, l, o);
    begin_span(t, trace_get(t, steps[0].record), trace_get(t, steps[o->step_count - 1].record),
               (nl_string){name, strlen(name)}, trace_id, 0, s);
    g_free(name);
    JSON_PUT(&s->bytes, ",\"events\":[");
    for (uint32_t i = 0; i < o->step_count; i++) {
        if (i > 0)
            JSON_PUT(&s->bytes, ",");
        put_step(t, trace_get(t, steps[i].record), s);
    }
    JSON_PUT(&s->bytes, "]}]}]}]}\n");
    for (uint32_t i = 0; i + 1 < o->step_count; i++) {
        const trace_record *from = trace_get(t, steps[i].record);
        begin_span(t, from, trace_get(t, steps[i + 1].record), view(t, from->event), trace_id, i + 1, s);
        JSON_PUT(&s->bytes, "}]}]}]}\n");
    }
    sink_drain(s);
}

/* The IDs are hashes of the log, so each run makes the same IDs. */
static void spans_end(exporter *base, sink *s)
{
    spans_writer *w = (spans_writer *)base;
    uint64_t next = UINT64_C(0x1000000000000001), in_lifelines = 0;
    picture_finish(w->picture, picture_take(w->base.shared));
    for (guint i = 0; i < w->picture->lifelines->len; i++) {
        const lifelines *l = g_ptr_array_index(w->picture->lifelines, i);
        for (size_t object = 0; object < l->object_count; object++) {
            put_object(w, l, object, next, s);
            next += l->objects[object].step_count;
        }
        in_lifelines += l->step_count;
    }
    size_t all = trace_count(w->picture->trace);
    s->losses[LOSS_RECORDS] += in_lifelines < all ? all - in_lifelines : 0;
}

const exporter_kind spans_exporter = {
    .name = "otlp-spans",
    .what = "OpenTelemetry's spans as JSON lines: lifelines only",
    .in_order = true,
    .share = picture_share,
    .unshare = picture_unshare,
    .size = sizeof(spans_writer),
    .open = open_writer,
    .close = spans_close_writer,
    .put = spans_put,
    .end = spans_end,
};
