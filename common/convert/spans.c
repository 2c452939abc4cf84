/*
 * Writes OpenTelemetry spans as JSON lines. A request becomes a trace, with one line for each span.
 *
 * A span's attributes are the fields of the records that begin and end the span. The other records of the span are its
 * events. IDs in the log that are valid in OTLP stay unchanged. Counted numbers replace other IDs, so that each run
 * writes the same IDs. If a request does not have exactly one outermost span, the exporter adds a span with the
 * request's name. If a request has no spans, the exporter creates a span from each segment. The exporter omits records
 * outside requests, because they belong to no span.
 */
#include "config.h"

#include "base/text.h"
#include "convert/otlp_encode.h"
#include "convert/span_ids.h"

#include <glib.h>
#include <string.h>

typedef struct spans_writer {
    exporter base;
    request_stream *requests;
    otlp_encoder encoder;
    uint64_t next_id;
    sink *s; /* the sink; valid during put and end */
} spans_writer;

static const nl_record *record_or_none(const spans_writer *w, size_t number, int slot)
{
    return number != STREAM_NONE ? request_stream_record(w->requests, number, slot) : NULL;
}

/* ---- spans ---- */

/* Encodes the span's events, and then its links. */
static void put_points(spans_writer *w, const stream_request *r, const stream_span *span, nl_string name)
{
    size_t links = 0;
    for (int linking = 0; linking < 2; linking++)
        for (size_t i = 0; i < span->point_count && (!linking || links > 0); i++) {
            const nl_record *record = record_or_none(w, r->points[span->first_point + i], 0);
            bool link = otlp_is_link(record, name);
            links += link && !linking;
            if (link && linking)
                otlp_encode_link(&w->encoder, record);
            else if (!link && !linking)
                otlp_encode_point(&w->encoder, record);
        }
}

static void otlp_put_span(spans_writer *w, const stream_request *r, size_t index, const char *trace, const span_id *ids)
{
    const stream_span *span = &r->spans[index];
    char scratch[NL_FIELD_TEXT_SIZE];
    otlp_encoder *e = &w->encoder;
    otlp_span to = {.trace = nl_string_of(trace),
                    .span = nl_string_of(ids[index].text),
                    .name = nl_string_of(span->name),
                    .begin_ns = span->begin_ns,
                    .end_ns = span->end_ns,
                    .failed = span->failed};
    const nl_record *at = request_stream_span_record(w->requests, span);
    to.parent = span_ids_parent(w->requests, r, index, ids, scratch);
    e->out = &w->s->bytes;
    e->s = w->s;
    e->typed = request_stream_is_typed(w->requests);
    otlp_begin_source(e, true, at);
    span_id parent; /* a copy, because the next read may reuse the slot of the record that contains the ID */
    snprintf(parent.text, sizeof parent.text, "%.*s", (int)to.parent.size, to.parent.size > 0 ? to.parent.data : "");
    to.parent.data = to.parent.data != NULL ? parent.text : NULL;
    const nl_record *begin = record_or_none(w, span->begin, 0);
    const nl_record *end = span->end != span->begin ? record_or_none(w, span->end, 1) : NULL;
    if (end != NULL || begin != NULL)
        otlp_span_set_status(&to, end != NULL ? end : begin);
    otlp_begin_span(e, &to, begin, end);
    put_points(w, r, span, to.name);
    otlp_end_span(e);
    otlp_end_source(e);
    JSON_PUT(e->out, "\n");
    sink_drain(w->s);
}

static void otlp_put_request(void *user, const stream_request *r)
{
    spans_writer *w = user;
    char trace[OTLP_TRACE_DIGITS + 1];
    span_id *ids = g_new(span_id, r->span_count + 1);
    span_ids_choose(w->requests, r, &w->next_id, trace, ids);
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

static void spans_lose_fields(void *user, size_t count)
{
    const spans_writer *w = user;
    w->s->losses[LOSS_FIELDS] += count;
}

/* ---- the exporter ---- */

static void spans_open(exporter *base)
{
    spans_writer *w = (spans_writer *)base;
    w->requests = request_stream_new(
        base->shared, &(request_stream_user){
                          .request = otlp_put_request, .single = lose_single, .lose = spans_lose_fields, .user = w});
    w->encoder.json = true;
    w->next_id = UINT64_C(0x1000000000000001);
}

static void spans_close(exporter *base)
{
    spans_writer *w = (spans_writer *)base;
    request_stream_free(w->requests);
    otlp_encoder_free(&w->encoder);
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
