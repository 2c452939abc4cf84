/*
 * Writes Perfetto's protobuf traces (perfetto/trace/trace.proto).
 *
 * The segments of lifelines are slices on the tracks of the host and program where they begin, with one track for each
 * concurrent segment. A flow leads from each slice of an object to the next. Loadlines are counters; other records are
 * instants. Fields are debug annotations.
 */
#include "config.h"

#include "convert/convert.h"
#include "convert/picture.h"

#include "requests/hash64.h"

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

/* Strings in protobuf are UTF-8. */
static void put_string(nl_buffer *out, unsigned field, const char *text)
{
    if (g_utf8_validate(text, -1, NULL)) {
        put_bytes(out, field, text, strlen(text));
        return;
    }
    char *valid = g_utf8_make_valid(text, -1);
    put_bytes(out, field, valid, strlen(valid));
    g_free(valid);
}

static void put_message(nl_buffer *out, unsigned field, nl_buffer *message)
{
    put_bytes(out, field, message->data, message->size);
    message->size = 0;
}

/* ---- the writer ---- */

typedef struct perfetto_writer {
    exporter base;
    picture *picture;
    nl_buffer packet, event, part;
    GHashTable *places;  /* place, by host and program */
    uint64_t next_track; /* uuid */
} perfetto_writer;

/* A host and program: a track for instants, and lanes below it for concurrent slices. */
typedef struct place {
    gint64 key;
    uint64_t track;
    GArray *free_lanes; /* uuids */
    unsigned lane_count;
} place;

static void free_place(gpointer p)
{
    g_array_free(((place *)p)->free_lanes, TRUE);
    g_free(p);
}

static void open_writer(exporter *base)
{
    perfetto_writer *w = (perfetto_writer *)base;
    w->picture = picture_new();
    w->places = g_hash_table_new_full(hash64, g_int64_equal, NULL, free_place);
    w->next_track = 1;
}

static void perfetto_close_writer(exporter *base)
{
    perfetto_writer *w = (perfetto_writer *)base;
    picture_free(w->picture);
    g_hash_table_destroy(w->places);
    nl_buffer_free(&w->packet);
    nl_buffer_free(&w->event);
    nl_buffer_free(&w->part);
}

static void perfetto_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed, (void)s;
    trace_add(((perfetto_writer *)base)->picture->trace, record);
}

static void end_packet(perfetto_writer *w, sink *s)
{
    put_number(&w->packet, PACKET_SEQUENCE, 1);
    put_message(&s->bytes, TRACE_PACKET, &w->packet);
    sink_drain(s);
}

/* Writes the descriptor of a track; its process or counter is in w->part. Returns its uuid. */
static uint64_t put_track(perfetto_writer *w, const char *name, uint64_t parent, unsigned part, sink *s)
{
    uint64_t uuid = w->next_track++;
    put_number(&w->event, DESCRIPTOR_UUID, uuid);
    put_string(&w->event, DESCRIPTOR_NAME, name);
    if (parent != 0)
        put_number(&w->event, DESCRIPTOR_PARENT, parent);
    if (part != 0)
        put_message(&w->event, part, &w->part);
    put_message(&w->packet, PACKET_TRACK_DESCRIPTOR, &w->event);
    end_packet(w, s);
    return uuid;
}

static const char *string_or(const trace *t, uint32_t string, const char *otherwise)
{
    return string != TRACE_NONE ? trace_string(t, string) : otherwise;
}

static place *perfetto_place_of(perfetto_writer *w, const trace_record *r, sink *s)
{
    const trace *t = w->picture->trace;
    gint64 key = (gint64)((uint64_t)r->host << 32 | r->prog);
    place *p = g_hash_table_lookup(w->places, &key);
    if (p != NULL)
        return p;
    p = g_new0(place, 1);
    p->key = key;
    p->free_lanes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_hash_table_insert(w->places, &p->key, p);
    char *name = g_strdup_printf("%s %s", string_or(t, r->host, "-"), string_or(t, r->prog, "-"));
    put_number(&w->part, PROCESS_PID, g_hash_table_size(w->places));
    put_string(&w->part, PROCESS_NAME, name);
    p->track = put_track(w, name, 0, DESCRIPTOR_PROCESS, s);
    g_free(name);
    return p;
}

static void begin_event(perfetto_writer *w, int type, uint64_t track)
{
    put_number(&w->event, EVENT_TYPE, (uint64_t)type);
    put_number(&w->event, EVENT_TRACK, track);
}

static void end_event(perfetto_writer *w, int64_t time_ns, sink *s)
{
    if (time_ns < 0)
        sink_lose(s, LOSS_TIMES);
    put_number(&w->packet, PACKET_TIMESTAMP, time_ns < 0 ? 0 : (uint64_t)time_ns);
    put_number(&w->packet, PACKET_CLOCK, REALTIME);
    put_message(&w->packet, PACKET_TRACK_EVENT, &w->event);
    end_packet(w, s);
}

/* Writes the name and the fields of an event. */
static void put_record(perfetto_writer *w, const char *category, const trace_record *r)
{
    const trace *t = w->picture->trace;
    const trace_field *fields = trace_fields(t, r);
    put_string(&w->event, EVENT_CATEGORY, category);
    put_string(&w->event, EVENT_NAME, string_or(t, r->event, ""));
    for (uint32_t i = 0; i < r->field_count; i++) {
        put_string(&w->part, ANNOTATION_NAME, trace_string(t, fields[i].name));
        put_string(&w->part, ANNOTATION_STRING, trace_string(t, fields[i].value));
        put_message(&w->event, EVENT_ANNOTATION, &w->part);
    }
}

/* ---- slices ---- */

/* The begin or end of a segment. The slices of a track must nest, so ends precede begins at the same time. */
typedef struct edge {
    int64_t time_ns;
    int kind;         /* 0: end, 1: begin, 2: end of a segment of no duration */
    size_t step;      /* where the segment begins */
    uint64_t flow;    /* into the segment; the next number is the flow out of it */
    bool first, last; /* of the object's segments */
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->kind != y->kind ? x->kind - y->kind : x->step < y->step ? -1 : x->step > y->step;
}

static GArray *edges_of(const perfetto_writer *w, const lifelines *l, uint64_t *flow)
{
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(edge));
    for (size_t i = 0; i < l->object_count; i++) {
        const lifeline_object *o = &l->objects[i];
        for (size_t step = o->first_step, last = o->first_step + o->step_count - 1; step < last; step++) {
            int64_t from_ns = lifelines_time_ns(l, w->picture->trace, &l->steps[step]);
            int64_t to_ns = lifelines_time_ns(l, w->picture->trace, &l->steps[step + 1]);
            edge e = {from_ns, 1, step, (*flow)++, step == o->first_step, step + 1 == last};
            g_array_append_val(edges, e);
            e.time_ns = to_ns;
            e.kind = from_ns == to_ns ? 2 : 0;
            g_array_append_val(edges, e);
        }
    }
    qsort(edges->data, edges->len, sizeof(edge), compare_edges);
    return edges;
}

static uint64_t perfetto_claim_lane(perfetto_writer *w, place *p, const lifelines *l, sink *s)
{
    if (p->free_lanes->len > 0) {
        uint64_t lane = g_array_index(p->free_lanes, uint64_t, p->free_lanes->len - 1);
        g_array_set_size(p->free_lanes, p->free_lanes->len - 1);
        return lane;
    }
    char *name = g_strdup_printf("%s %u", l->definition->name, ++p->lane_count);
    uint64_t lane = put_track(w, name, p->track, 0, s);
    g_free(name);
    return lane;
}

/* Another lifeline begins at an earlier time, so its slices need new lanes. */
static void forget_lanes(gpointer key, gpointer value, gpointer user)
{
    (void)key, (void)user;
    g_array_set_size(((place *)value)->free_lanes, 0);
}

static void put_slices(perfetto_writer *w, const lifelines *l, uint64_t *flow, sink *s)
{
    const trace *t = w->picture->trace;
    GArray *edges = edges_of(w, l, flow);
    uint64_t *lanes = g_new0(uint64_t, l->step_count + 1);
    for (guint i = 0; i < edges->len; i++) {
        const edge *e = &g_array_index(edges, edge, i);
        const trace_record *r = trace_get(t, l->steps[e->step].record);
        place *p = perfetto_place_of(w, r, s);
        uint64_t into = e->flow, out_of = e->flow + 1;
        if (e->kind != 1) {
            begin_event(w, TYPE_END, lanes[e->step]);
            g_array_append_val(p->free_lanes, lanes[e->step]);
        } else {
            lanes[e->step] = perfetto_claim_lane(w, p, l, s);
            begin_event(w, TYPE_BEGIN, lanes[e->step]);
            put_record(w, "lifeline", r);
            if (!e->last)
                put_fixed64(&w->event, EVENT_FLOW, &out_of);
            if (!e->first)
                put_fixed64(&w->event, EVENT_LAST_FLOW, &into);
        }
        end_event(w, e->time_ns, s);
    }
    g_free(lanes);
    g_array_free(edges, TRUE);
    g_hash_table_foreach(w->places, forget_lanes, NULL);
}

/* ---- counters, instants, clocks ---- */

static void put_counters(perfetto_writer *w, const drawing_loadline *line, sink *s)
{
    const trace *t = w->picture->trace;
    uint32_t event = trace_find(t, line->event), field = trace_find(t, line->field);
    GHashTable *tracks = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    for (size_t i = 0; i < trace_count(t) && event != TRACE_NONE && field != TRACE_NONE; i++) {
        const trace_record *r = trace_get(t, i);
        uint32_t text = r->event == event ? trace_value(t, r, field) : TRACE_NONE;
        double value;
        if (text == TRACE_NONE || !trace_number(t, text, &value))
            continue;
        place *p = perfetto_place_of(w, r, s);
        uint64_t *track = g_hash_table_lookup(tracks, p);
        if (track == NULL) {
            track = g_new(uint64_t, 1);
            put_string(&w->part, COUNTER_UNIT_NAME, line->unit);
            *track = put_track(w, line->name, p->track, DESCRIPTOR_COUNTER, s);
            g_hash_table_insert(tracks, p, track);
        }
        begin_event(w, TYPE_COUNTER, *track);
        put_fixed64(&w->event, EVENT_DOUBLE_COUNTER, &value);
        end_event(w, r->time_ns, s);
    }
    g_hash_table_destroy(tracks);
}

/* Returns an array that tells for each record whether no slice begins with it. */
static bool *find_instants(const perfetto_writer *w)
{
    const trace *t = w->picture->trace;
    bool *instants = g_new(bool, trace_count(t) + 1);
    memset(instants, 1, trace_count(t) + 1);
    for (guint i = 0; i < w->picture->lifelines->len; i++) {
        const lifelines *l = g_ptr_array_index(w->picture->lifelines, i);
        for (size_t o = 0; o < l->object_count; o++)
            for (uint32_t step = 0; step + 1 < l->objects[o].step_count; step++)
                instants[l->steps[l->objects[o].first_step + step].record] = false;
    }
    return instants;
}

static void put_instants(perfetto_writer *w, sink *s)
{
    bool *instants = find_instants(w);
    for (size_t i = 0; i < trace_count(w->picture->trace); i++) {
        const trace_record *r = trace_get(w->picture->trace, i);
        if (!instants[i])
            continue;
        begin_event(w, TYPE_INSTANT, perfetto_place_of(w, r, s)->track);
        put_record(w, "event", r);
        end_event(w, r->time_ns, s);
    }
    g_free(instants);
}

/* Declares that the boot-time clock equals the real-time clock of the records. */
static void put_clocks(perfetto_writer *w, sink *s)
{
    static const uint64_t clocks[] = {REALTIME, BOOT_TIME};
    for (size_t i = 0; i < 2; i++) {
        put_number(&w->part, CLOCK_ID, clocks[i]);
        put_number(&w->part, CLOCK_TIMESTAMP, 1);
        put_message(&w->event, CLOCKS_CLOCK, &w->part);
    }
    put_number(&w->event, CLOCKS_PRIMARY, REALTIME);
    put_message(&w->packet, PACKET_CLOCKS, &w->event);
    end_packet(w, s);
}

static void perfetto_end(exporter *base, sink *s)
{
    perfetto_writer *w = (perfetto_writer *)base;
    picture *p = w->picture;
    uint64_t flow = 1;
    picture_finish(p, picture_take(w->base.shared));
    put_clocks(w, s);
    for (guint i = 0; i < p->lifelines->len; i++)
        put_slices(w, g_ptr_array_index(p->lifelines, i), &flow, s);
    for (guint i = 0; i < p->drawing->loadlines->len; i++)
        put_counters(w, g_ptr_array_index(p->drawing->loadlines, i), s);
    put_instants(w, s);
}

const exporter_kind perfetto_exporter = {
    .name = "perfetto",
    .what = "Perfetto's protobuf trace: lifelines, loadlines, all other records",
    .in_order = true,
    .share = picture_share,
    .unshare = picture_unshare,
    .size = sizeof(perfetto_writer),
    .open = open_writer,
    .close = perfetto_close_writer,
    .put = perfetto_put,
    .end = perfetto_end,
};
