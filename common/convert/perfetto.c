/*
 * Writes Perfetto's protobuf traces (perfetto/trace/trace.proto).
 *
 * A span is a slice on a lane of its program, so that the viewer draws it below the span that encloses it. A flow leads
 * from a span to a child on another lane. Loadlines are counters. Records that neither begin nor end a span are
 * instants. Fields are debug annotations.
 */
#include "config.h"

#include "base/text.h"
#include "convert/convert.h"
#include "convert/lanes.h"

#include <string.h>

/* The numbers of protobuf fields. */
enum {
    TRACE_PACKET = 1,
    PACKET_CLOCKS = 6,
    CLOCKS_CLOCK = 1,
    CLOCKS_PRIMARY = 2,
    CLOCK_ID = 1,
    CLOCK_TIMESTAMP = 2,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_CLOCK = 58,
    PACKET_TRACK_DESCRIPTOR = 60,
    DESCRIPTOR_UUID = 1,
    DESCRIPTOR_NAME = 2,
    DESCRIPTOR_PROCESS = 3,
    DESCRIPTOR_PARENT = 5,
    DESCRIPTOR_COUNTER = 8,
    COUNTER_UNIT_NAME = 6,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_DOUBLE_COUNTER = 44,
    EVENT_FLOW = 47,
    EVENT_LAST_FLOW = 48,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10,
    REALTIME = 1,
    BOOT_TIME = 6,
    TYPE_BEGIN = 1,
    TYPE_END = 2,
    TYPE_INSTANT = 3,
    TYPE_COUNTER = 4,
};

/* ---- protobuf ---- */

static void put_varint(nl_buffer *out, uint64_t value)
{
    char bytes[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (char)(value | 0x80);
    bytes[size++] = (char)value;
    nl_buffer_append(out, bytes, size);
}

static void put_number(nl_buffer *out, unsigned field, uint64_t value)
{
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_fixed64(nl_buffer *out, unsigned field, const void *value)
{
    put_varint(out, field << 3 | 1);
    nl_buffer_append(out, value, 8);
}

static void put_bytes(nl_buffer *out, unsigned field, const char *data, size_t size)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, size);
    nl_buffer_append(out, data, size);
}

/* Appends a text field. Replaces invalid UTF-8, because strings in protobuf are UTF-8. */
static void put_text(nl_buffer *out, unsigned field, nl_string text)
{
    if (text.data == NULL || g_utf8_validate(text.data, (gssize)text.size, NULL)) {
        put_bytes(out, field, text.data, text.size);
        return;
    }
    char *valid = g_utf8_make_valid(text.data, (gssize)text.size);
    put_bytes(out, field, valid, strlen(valid));
    g_free(valid);
}

static void put_string(nl_buffer *out, unsigned field, const char *text)
{
    put_text(out, field, nl_string_of(text));
}

static void put_message(nl_buffer *out, unsigned field, nl_buffer *message)
{
    put_bytes(out, field, message->data, message->size);
    message->size = 0;
}

/* ---- the writer ---- */

typedef struct perfetto_writer {
    exporter base;
    request_stream *requests;
    nl_buffer packet, event, part;
    places *places;
    GHashTable *counters;                /* uint64_t: tracks; the keys are "TRACK NAME" */
    uint64_t track_count, process_count; /* numbers assigned so far */
    uint64_t flow_count;
    sink *s; /* the sink; valid during put and end */
} perfetto_writer;

static void end_packet(perfetto_writer *w)
{
    put_number(&w->packet, PACKET_SEQUENCE, 1);
    put_message(&w->s->bytes, TRACE_PACKET, &w->packet);
    sink_drain(w->s);
}

/*
 * Writes the descriptor of a track. w->part contains the descriptor's process or counter, which becomes the field
 * `part`. Returns the track's uuid.
 */
static uint64_t put_track(perfetto_writer *w, const char *name, uint64_t parent, unsigned part)
{
    uint64_t uuid = ++w->track_count;
    put_number(&w->event, DESCRIPTOR_UUID, uuid);
    put_string(&w->event, DESCRIPTOR_NAME, name);
    if (parent != 0)
        put_number(&w->event, DESCRIPTOR_PARENT, parent);
    if (part != 0)
        put_message(&w->event, part, &w->part);
    put_message(&w->packet, PACKET_TRACK_DESCRIPTOR, &w->event);
    end_packet(w);
    return uuid;
}

static place *perfetto_place_of(perfetto_writer *w, const nl_record *record)
{
    place *p = places_find(w->places, record);
    if (p->track != 0)
        return p;
    char *name = g_strdup_printf("%s %s", *p->host != '\0' ? p->host : "-", *p->prog != '\0' ? p->prog : "-");
    put_number(&w->part, PROCESS_PID, ++w->process_count);
    put_string(&w->part, PROCESS_NAME, name);
    p->track = put_track(w, name, 0, DESCRIPTOR_PROCESS);
    g_free(name);
    return p;
}

static void begin_event(perfetto_writer *w, int type, uint64_t track)
{
    put_number(&w->event, EVENT_TYPE, (uint64_t)type);
    put_number(&w->event, EVENT_TRACK, track);
}

static void end_event(perfetto_writer *w, int64_t time_ns)
{
    if (time_ns < 0)
        sink_lose(w->s, LOSS_TIMES);
    put_number(&w->packet, PACKET_TIMESTAMP, time_ns < 0 ? 0 : (uint64_t)time_ns);
    put_number(&w->packet, PACKET_CLOCK, REALTIME);
    put_message(&w->packet, PACKET_TRACK_EVENT, &w->event);
    end_packet(w);
}

static void put_fields(perfetto_writer *w, const nl_record *record)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    for (size_t i = 0; i < record->field_count; i++) {
        put_text(&w->part, ANNOTATION_NAME, record->fields[i].name);
        put_text(&w->part, ANNOTATION_STRING, nl_field_text(&record->fields[i], scratch));
        put_message(&w->event, EVENT_ANNOTATION, &w->part);
    }
}

/* Writes the fields of one record of a request. */
static void put_fields_of(perfetto_writer *w, size_t number)
{
    if (number != STREAM_NONE)
        put_fields(w, request_stream_record(w->requests, number, 0));
}

static void put_instant(void *user, const nl_record *record)
{
    perfetto_writer *w = user;
    begin_event(w, TYPE_INSTANT, perfetto_place_of(w, record)->track);
    put_string(&w->event, EVENT_CATEGORY, "event");
    put_text(&w->event, EVENT_NAME, record->event);
    put_fields(w, record);
    end_event(w, record->time_ns);
}

/* ---- spans ---- */

static uint64_t perfetto_lane_of(perfetto_writer *w, const stream_span *span)
{
    place *p = perfetto_place_of(w, request_stream_span_record(w->requests, span));
    lane *l = place_find_lane(p, span->begin_ns, span->end_ns);
    if (l->track == 0) {
        char *name = g_strdup_printf("requests %u", p->lanes->len);
        l->track = put_track(w, name, p->track, 0);
        g_free(name);
    }
    return l->track;
}

/* The start or end of a slice. The slices of a track nest, so inner slices end first and begin last. */
typedef struct edge {
    int64_t time_ns;
    int kind;    /* 0 is an end, 1 a start, and 2 the end of a span whose duration is 0 */
    size_t rank; /* position of the span in stream_request_order */
    size_t span;
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind - y->kind;
    int order = (x->rank > y->rank) - (x->rank < y->rank);
    return x->kind == 1 ? order : -order;
}

/* For each span, a list of the children to which a flow leads, by span index. */
typedef struct flow_tree {
    size_t *first_child, *next_child;
} flow_tree;

static bool has_flow(const stream_request *r, size_t span, const uint64_t *lanes)
{
    size_t parent = r->spans[span].parent;
    return parent != STREAM_NONE && lanes[parent] != lanes[span];
}

static flow_tree flow_tree_new(const stream_request *r, const uint64_t *lanes)
{
    flow_tree t = {g_new(size_t, r->span_count + 1), g_new(size_t, r->span_count + 1)};
    memset(t.first_child, 0xff, r->span_count * sizeof *t.first_child);
    for (size_t i = r->span_count; i-- > 0;) {
        if (!has_flow(r, i, lanes))
            continue;
        t.next_child[i] = t.first_child[r->spans[i].parent];
        t.first_child[r->spans[i].parent] = i;
    }
    return t;
}

static void put_edge(perfetto_writer *w, const stream_request *r, const edge *e, const uint64_t *lanes,
                     const flow_tree *t)
{
    const stream_span *span = &r->spans[e->span];
    uint64_t flow = w->flow_count + e->span + 1;
    begin_event(w, e->kind == 1 ? TYPE_BEGIN : TYPE_END, lanes[e->span]);
    if (e->kind == 1) {
        put_string(&w->event, EVENT_CATEGORY, "request");
        put_string(&w->event, EVENT_NAME, span->name);
        put_fields_of(w, span->begin);
        put_fields_of(w, span->end != span->begin ? span->end : STREAM_NONE);
        for (size_t i = t->first_child[e->span]; i != STREAM_NONE; i = t->next_child[i]) {
            uint64_t out = w->flow_count + i + 1;
            put_fixed64(&w->event, EVENT_FLOW, &out);
        }
        if (has_flow(r, e->span, lanes))
            put_fixed64(&w->event, EVENT_LAST_FLOW, &flow);
    }
    end_event(w, e->time_ns);
}

static void perfetto_put_request(void *user, const stream_request *r)
{
    perfetto_writer *w = user;
    size_t *order = stream_request_order(r);
    uint64_t *lanes = g_new(uint64_t, r->span_count + 1);
    edge *edges = g_new(edge, 2 * r->span_count + 1);
    for (size_t i = 0; i < r->span_count; i++) {
        const stream_span *span = &r->spans[order[i]];
        lanes[order[i]] = perfetto_lane_of(w, span);
        edges[2 * i] = (edge){span->begin_ns, 1, i, order[i]};
        edges[2 * i + 1] = (edge){span->end_ns, span->begin_ns == span->end_ns ? 2 : 0, i, order[i]};
    }
    qsort(edges, 2 * r->span_count, sizeof *edges, compare_edges);
    flow_tree flows = flow_tree_new(r, lanes);
    for (size_t i = 0; i < 2 * r->span_count; i++)
        put_edge(w, r, &edges[i], lanes, &flows);
    g_free(flows.first_child);
    g_free(flows.next_child);
    for (size_t i = 0; i < r->span_count; i++)
        for (size_t k = 0; k < r->spans[i].point_count; k++)
            put_instant(w, request_stream_record(w->requests, r->points[r->spans[i].first_point + k], 0));
    w->flow_count += r->span_count;
    g_free(order);
    g_free(lanes);
    g_free(edges);
}

/* ---- counters, clocks ---- */

static void perfetto_put_counter(void *user, const nl_record *record, const drawing_loadline *line, double value)
{
    perfetto_writer *w = user;
    const place *p = perfetto_place_of(w, record);
    char *key = g_strdup_printf("%" G_GUINT64_FORMAT " %s", p->track, line->name);
    uint64_t *track = g_hash_table_lookup(w->counters, key);
    if (track == NULL) {
        track = g_new(uint64_t, 1);
        put_string(&w->part, COUNTER_UNIT_NAME, line->unit);
        *track = put_track(w, line->name, p->track, DESCRIPTOR_COUNTER);
        g_hash_table_insert(w->counters, g_strdup(key), track);
    }
    g_free(key);
    begin_event(w, TYPE_COUNTER, *track);
    put_fixed64(&w->event, EVENT_DOUBLE_COUNTER, &value);
    end_event(w, record->time_ns);
}

/* Writes the clocks of the trace. Declares that the boot-time clock equals the real-time clock, which records use. */
static void perfetto_begin(exporter *base, sink *s)
{
    static const uint64_t clocks[] = {REALTIME, BOOT_TIME};
    perfetto_writer *w = (perfetto_writer *)base;
    w->s = s;
    for (size_t i = 0; i < 2; i++) {
        put_number(&w->part, CLOCK_ID, clocks[i]);
        put_number(&w->part, CLOCK_TIMESTAMP, 1);
        put_message(&w->event, CLOCKS_CLOCK, &w->part);
    }
    put_number(&w->event, CLOCKS_PRIMARY, REALTIME);
    put_message(&w->packet, PACKET_CLOCKS, &w->event);
    end_packet(w);
}

/* ---- the exporter ---- */

static void perfetto_lose_fields(void *user, size_t count)
{
    const perfetto_writer *w = user;
    w->s->losses[LOSS_FIELDS] += count;
}

static void perfetto_open(exporter *base)
{
    perfetto_writer *w = (perfetto_writer *)base;
    w->requests = request_stream_new(base->shared, &(request_stream_user){.request = perfetto_put_request,
                                                                          .single = put_instant,
                                                                          .counter = perfetto_put_counter,
                                                                          .lose = perfetto_lose_fields,
                                                                          .user = w});
    w->places = places_new();
    w->counters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

static void perfetto_close(exporter *base)
{
    perfetto_writer *w = (perfetto_writer *)base;
    request_stream_free(w->requests);
    places_free(w->places);
    g_hash_table_destroy(w->counters);
    nl_buffer_free(&w->packet);
    nl_buffer_free(&w->event);
    nl_buffer_free(&w->part);
}

static void perfetto_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    perfetto_writer *w = (perfetto_writer *)base;
    w->s = s;
    request_stream_add(w->requests, record, typed);
}

static void perfetto_end(exporter *base, sink *s)
{
    perfetto_writer *w = (perfetto_writer *)base;
    w->s = s;
    request_stream_finish(w->requests);
}

const exporter_kind perfetto_exporter = {
    .name = "perfetto",
    .what = "Perfetto protobuf trace, with spans of requests, loadlines, and all other records",
    .in_order = true,
    .share = request_stream_share,
    .unshare = request_stream_unshare,
    .size = sizeof(perfetto_writer),
    .open = perfetto_open,
    .close = perfetto_close,
    .begin = perfetto_begin,
    .put = perfetto_put,
    .end = perfetto_end,
};
