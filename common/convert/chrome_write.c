/*
 * Writes the Chrome trace format (JSON) for chrome://tracing and Perfetto's viewer.
 *
 * A record becomes an instant event, whose args are the record in JSON. A host is a process, and a program is a thread.
 * A span is a complete event (X) on a lane of its program, so that viewers draw it below the span that encloses it. The
 * args of a span name its request, the span and its parent. A flow event leads from a span to a child on another lane.
 * Loadlines are counters.
 */
#include "config.h"

#include "base/text.h"
#include "convert/json_text.h"
#include "convert/lanes.h"

#include <inttypes.h>
#include <string.h>

typedef struct chrome_writer {
    exporter base;
    request_stream *requests;
    places *places;
    const exporter_kind *args_kind;
    exporter *args;
    bool begun;           /* an event was written */
    uint64_t track_count; /* number of tids so far */
    uint64_t span_count;  /* number of spans so far */
    sink *s;              /* the sink; valid during put and end */
} chrome_writer;

static void put_text(nl_buffer *out, const char *text)
{
    json_put_name(out, nl_string_of(text));
}

static void put_time(nl_buffer *out, const char *key, int64_t time_ns)
{
    char text[80];
    uint64_t size = time_ns < 0 ? 0 - (uint64_t)time_ns : (uint64_t)time_ns;
    int length = snprintf(text, sizeof text, ",\"%s\":%s%" PRIu64 ".%03u", key, time_ns < 0 ? "-" : "", size / 1000,
                          (unsigned)(size % 1000));
    json_put(out, text, (size_t)length);
}

/* Writes the beginning of an event: {"ph":...,"ts":...,"pid":...,"tid":... */
static void begin_event(chrome_writer *w, char phase, int64_t time_ns, uint64_t process, uint64_t track)
{
    nl_buffer *out = &w->s->bytes;
    char text[80];
    int length = snprintf(text, sizeof text, "%s{\"ph\":\"%c\"", w->begun ? ",\n" : "", phase);
    json_put(out, text, (size_t)length);
    put_time(out, "ts", time_ns);
    length = snprintf(text, sizeof text, ",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64, process, track);
    json_put(out, text, (size_t)length);
    w->begun = true;
}

/* Writes the metadata event that names a process or thread. */
static void put_track_name(chrome_writer *w, const char *kind, uint64_t process, uint64_t track, const char *name)
{
    nl_buffer *out = &w->s->bytes;
    begin_event(w, 'M', 0, process, track);
    JSON_PUT(out, ",\"name\":");
    put_text(out, kind);
    JSON_PUT(out, ",\"args\":{\"name\":");
    put_text(out, name);
    JSON_PUT(out, "}}");
}

static place *chrome_place_of(chrome_writer *w, const nl_record *record)
{
    place *p = places_find(w->places, record);
    if (p->track != 0)
        return p;
    p->track = ++w->track_count;
    if (p->new_host && *p->host != '\0')
        put_track_name(w, "process_name", p->process, p->track, p->host);
    if (*p->prog != '\0')
        put_track_name(w, "thread_name", p->process, p->track, p->prog);
    return p;
}

/* ---- spans ---- */

static uint64_t chrome_lane_of(chrome_writer *w, place *p, const stream_span *span)
{
    lane *l = place_find_lane(p, span->begin_ns, span->end_ns);
    if (l->track == 0 && p->lanes->len == 1)
        l->track = p->track;
    if (l->track == 0) {
        l->track = ++w->track_count;
        char *name = g_strdup_printf("%s (%u)", p->prog, p->lanes->len);
        put_track_name(w, "thread_name", p->process, l->track, name);
        g_free(name);
    }
    return l->track;
}

typedef struct chrome_span {
    uint64_t process, track;
} chrome_span;

static void chrome_put_span(chrome_writer *w, const stream_request *r, size_t index, chrome_span at)
{
    const stream_span *span = &r->spans[index];
    nl_buffer *out = &w->s->bytes;
    char text[120];
    begin_event(w, 'X', span->begin_ns, at.process, at.track);
    put_time(out, "dur", (int64_t)((uint64_t)span->end_ns - (uint64_t)span->begin_ns));
    JSON_PUT(out, ",\"cat\":\"netlogger.span\",\"name\":");
    put_text(out, span->name);
    JSON_PUT(out, ",\"args\":{\"request\":");
    put_text(out, r->name);
    int size = snprintf(text, sizeof text, ",\"span\":%" PRIu64, w->span_count + index + 1);
    json_put(out, text, (size_t)size);
    if (span->parent != STREAM_NONE) {
        size = snprintf(text, sizeof text, ",\"parent\":%" PRIu64, w->span_count + span->parent + 1);
        json_put(out, text, (size_t)size);
    }
    JSON_PUT(out, "}}");
}

/* Writes the two events of a flow from a point in a span to the beginning of the span's child. */
static void put_flow(chrome_writer *w, const stream_span *child, uint64_t number, chrome_span from, chrome_span to)
{
    const chrome_span ends[] = {from, to};
    for (int i = 0; i < 2; i++) {
        char text[120];
        begin_event(w, i == 0 ? 's' : 'f', child->begin_ns, ends[i].process, ends[i].track);
        int size = snprintf(text, sizeof text, ",\"cat\":\"netlogger.span\",\"name\":\"call\",\"id\":%" PRIu64 "%s}",
                            number, i == 0 ? "" : ",\"bp\":\"e\"");
        json_put(&w->s->bytes, text, (size_t)size);
    }
}

static void chrome_put_request(void *user, const stream_request *r)
{
    chrome_writer *w = user;
    size_t *order = stream_request_order(r);
    chrome_span *at = g_new(chrome_span, r->span_count + 1);
    for (size_t i = 0; i < r->span_count; i++) {
        const stream_span *span = &r->spans[order[i]];
        place *p = chrome_place_of(w, request_stream_span_record(w->requests, span));
        at[order[i]] = (chrome_span){p->process, chrome_lane_of(w, p, span)};
    }
    for (size_t i = 0; i < r->span_count; i++) {
        size_t parent = r->spans[i].parent;
        chrome_put_span(w, r, i, at[i]);
        if (parent != STREAM_NONE && at[parent].track != at[i].track &&
            r->spans[parent].begin_ns <= r->spans[i].begin_ns && r->spans[parent].end_ns >= r->spans[i].begin_ns)
            put_flow(w, &r->spans[i], w->span_count + i + 1, at[parent], at[i]);
        sink_drain(w->s);
    }
    w->span_count += r->span_count;
    g_free(order);
    g_free(at);
}

static void chrome_put_counter(void *user, const nl_record *record, const drawing_loadline *line, double value)
{
    chrome_writer *w = user;
    nl_buffer *out = &w->s->bytes;
    const place *p = chrome_place_of(w, record);
    const nl_field number = {.type = NL_TYPE_DOUBLE, .double_value = value};
    begin_event(w, 'C', record->time_ns, p->process, p->track);
    JSON_PUT(out, ",\"cat\":\"netlogger.loadline\",\"name\":");
    put_text(out, line->name);
    JSON_PUT(out, ",\"args\":{");
    put_text(out, *line->unit != '\0' ? line->unit : "value");
    JSON_PUT(out, ":");
    json_put_value(out, &number, true, w->s);
    JSON_PUT(out, "}}");
}

/* Does nothing, because all records have already been written. */
static void ignore_single(void *user, const nl_record *record)
{
    (void)user, (void)record;
}

/* ---- the exporter ---- */

static void chrome_write_open(exporter *base)
{
    chrome_writer *w = (chrome_writer *)base;
    w->requests = request_stream_new(base->shared, &(request_stream_user){.request = chrome_put_request,
                                                                          .single = ignore_single,
                                                                          .counter = chrome_put_counter,
                                                                          .user = w});
    w->places = places_new();
    w->args_kind = &json_exporter;
    w->args = exporter_open(w->args_kind, NULL);
}

static void chrome_write_close(exporter *base)
{
    chrome_writer *w = (chrome_writer *)base;
    exporter_close(w->args);
    request_stream_free(w->requests);
    places_free(w->places);
}

static void chrome_write_begin(exporter *base, sink *s)
{
    (void)base;
    JSON_PUT(&s->bytes, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"netlogger\"},\"traceEvents\":[\n");
}

static void chrome_write_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    chrome_writer *w = (chrome_writer *)base;
    nl_buffer *out = &s->bytes;
    w->s = s;
    const place *p = chrome_place_of(w, record);
    begin_event(w, 'i', record->time_ns, p->process, p->track);
    JSON_PUT(out, ",\"s\":\"t\",\"cat\":\"netlogger\",\"name\":");
    json_put_name(out, record->event);
    JSON_PUT(out, ",\"args\":");
    w->args_kind->put(w->args, record, typed, s);
    out->size--; /* removes the newline */
    JSON_PUT(out, "}");
    request_stream_add(w->requests, record, typed);
}

static void chrome_write_end(exporter *base, sink *s)
{
    chrome_writer *w = (chrome_writer *)base;
    w->s = s;
    request_stream_finish(w->requests);
    JSON_PUT(&s->bytes, "\n]}\n");
}

const exporter_kind chrome_exporter = {
    .name = "chrome",
    .what = "Chrome trace format, with records, spans of requests, and loadlines",
    .in_order = true,
    .share = request_stream_share,
    .unshare = request_stream_unshare,
    .size = sizeof(chrome_writer),
    .open = chrome_write_open,
    .close = chrome_write_close,
    .begin = chrome_write_begin,
    .put = chrome_write_put,
    .end = chrome_write_end,
};
