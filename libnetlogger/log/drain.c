#include "config.h"

#include "log/drain_internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/record_internal.h"
#include "log/hex.h"
#include "log/payload.h"

#include <stdlib.h>
#include <string.h>

bool nl_drain_start(nl_drain *drain, nl_format format, nl_string host, nl_string prog)
{
    *drain = (nl_drain){.format = format, .host = host, .prog = prog, .record = nl_record_new()};
    nl_clock_start(&drain->clock);
    return drain->record != NULL;
}

static void forget_text_shapes(nl_drain *drain)
{
    for (size_t id = 0; id < drain->text_shape_capacity; id++)
        nl_text_shape_free(drain->text_shapes[id]);
    free(drain->text_shapes);
    drain->text_shapes = NULL;
    drain->text_shape_capacity = 0;
}

void nl_drain_set_format(nl_drain *drain, nl_format format)
{
    if (drain->format != format)
        forget_text_shapes(drain);
    drain->format = format;
}

void nl_drain_finish(nl_drain *drain)
{
    nl_record_free(drain->record);
    nl_site_table_free(&drain->sites);
    nl_block_writer_free(&drain->block);
    forget_text_shapes(drain);
    free(drain->heap);
    free(drain->shapes);
}

/* Writes the hexadecimal digits of size bytes at *digits, sets field to them, and advances *digits. */
static void set_id(nl_field *field, const void *id, size_t size, char **digits)
{
    nl_hex_put(*digits, id, size);
    field->type = NL_TYPE_STRING;
    field->string = (nl_string){*digits, 2 * size};
    *digits += 2 * size;
}

/*
 * Reads a value of a raw type at *at into field. Writes the digits of an ID at *digits. Advances *at and *digits.
 * Returns false if the type is invalid or the value extends beyond `end`.
 */
static inline bool get_value(const char **at, const char *end, unsigned raw_type, nl_field *field, char **digits)
{
    const char *value = *at;
    uint32_t string_size;
#define GET(raw, c_type, nl_type_, member)                                                                             \
    case raw: {                                                                                                        \
        c_type number;                                                                                                 \
        if ((size_t)(end - value) < sizeof number)                                                                     \
            return false;                                                                                              \
        memcpy(&number, value, sizeof number);                                                                         \
        *at = value + sizeof number;                                                                                   \
        field->type = nl_type_;                                                                                        \
        field->member = number;                                                                                        \
        return true;                                                                                                   \
    }
    switch (raw_type) {
        GET(NL_RAW_INT8, int8_t, NL_TYPE_INT, int_value)
        GET(NL_RAW_INT16, int16_t, NL_TYPE_INT, int_value)
        GET(NL_RAW_INT32, int32_t, NL_TYPE_INT, int_value)
        GET(NL_RAW_INT64, int64_t, NL_TYPE_INT, int_value)
        GET(NL_RAW_UINT8, uint8_t, NL_TYPE_UINT, uint_value)
        GET(NL_RAW_UINT16, uint16_t, NL_TYPE_UINT, uint_value)
        GET(NL_RAW_UINT32, uint32_t, NL_TYPE_UINT, uint_value)
        GET(NL_RAW_UINT64, uint64_t, NL_TYPE_UINT, uint_value)
        GET(NL_RAW_FLOAT, float, NL_TYPE_DOUBLE, double_value)
        GET(NL_RAW_DOUBLE, double, NL_TYPE_DOUBLE, double_value)
        GET(NL_RAW_BOOL, uint8_t, NL_TYPE_BOOL, bool_value)
    case NL_RAW_TRACE_ID:
    case NL_RAW_SPAN_ID:
        if ((size_t)(end - value) < nl_raw_size(raw_type))
            return false;
        *at = value + nl_raw_size(raw_type);
        set_id(field, value, nl_raw_size(raw_type), digits);
        return true;
    case NL_RAW_STRING:
        if ((size_t)(end - value) < sizeof string_size)
            return false;
        memcpy(&string_size, value, sizeof string_size);
        value += sizeof string_size;
        if ((size_t)(end - value) < string_size)
            return false;
        *at = value + string_size;
        field->type = NL_TYPE_STRING;
        field->string = (nl_string){value, string_size};
        return true;
    }
#undef GET
    return false;
}

static bool typed_record(nl_drain *drain, const nl_site *site, const char *at, const char *end)
{
    nl_record *record = drain->record;
    char *digits = drain->digits;
    record->level = site->level;
    record->event = site->event;
    nl_field *fields = site->field_count > 0 ? nl_record_append_many(record, site->field_count) : NULL;
    for (unsigned i = 0; i < site->field_count; i++) {
        if (fields == NULL)
            return false;
        fields[i].name = site->names[i];
        if (!get_value(&at, end, site->types[i], &fields[i], &digits))
            return false;
    }
    return true;
}

static void add_time(nl_record *record, const char *name, int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    size_t size = nl_time_format_ulm(time_ns, text);
    nl_record_add_string(record, name, text, size);
}

/* Sets drain->record to a report of losses, and counts the losses. nl_lost_event describes full and refused. */
static void lost_record(nl_drain *drain, const nl_ring *ring, uint64_t full, uint64_t refused, int64_t from_ns,
                        int64_t to_ns)
{
    nl_record *record = drain->record;
    nl_record_clear(record);
    nl_record_set_level(record, NL_WARNING);
    nl_record_set_event(record, "NetLogger.Lost", strlen("NetLogger.Lost"));
    nl_record_add_uint(record, "COUNT", full + refused);
    if (refused > 0)
        nl_record_add_uint(record, "REFUSED", refused);
    add_time(record, "FROM", from_ns);
    add_time(record, "TO", to_ns);
    nl_record_add_uint(record, "THREAD", ring->shared->thread);
    drain->lost += full + refused;
}

void nl_drain_lose(nl_drain *drain, nl_ring *ring, uint64_t ticks, const char *reason)
{
    int64_t time_ns = nl_clock_time_ns(&drain->clock, ticks);
    lost_record(drain, ring, 1, 0, time_ns, time_ns);
    nl_record_add_text(drain->record, "REASON", reason);
}

/* Returns a time rounded down to microseconds, because times in text have six fractional digits. */
static int64_t round_time(int64_t time_ns)
{
    int64_t part = time_ns % 1000;
    part = part < 0 ? part + 1000 : part;
    return time_ns < INT64_MIN + part ? time_ns : time_ns - part;
}

/* Sets the record's time, host and program if they are missing. */
static void complete(nl_drain *drain, int64_t time_ns)
{
    nl_record *record = drain->record;
    if (record->time_ns == 0)
        record->time_ns = drain->format == NL_FORMAT_NLB ? time_ns : round_time(time_ns);
    if (record->host.data == NULL)
        record->host = drain->host;
    if (record->prog.data == NULL)
        record->prog = drain->prog;
}

static bool put_lost(nl_drain *drain, nl_ring *ring, const char *payload, size_t size)
{
    nl_lost_event lost;
    if (size != sizeof lost)
        return false;
    memcpy(&lost, payload, sizeof lost);
    lost_record(drain, ring, lost.full, lost.refused, nl_clock_time_ns(&drain->clock, lost.from_ticks),
                nl_clock_time_ns(&drain->clock, lost.to_ticks));
    ring->sequence += lost.full + lost.refused;
    return true;
}

/*
 * Adds the IDs of the span in whose scope the event was logged, unless the program has logged a span's ID itself.
 * Returns false if memory runs out.
 */
static bool add_span_ids(nl_drain *drain, const nl_span_ids *ids)
{
    nl_field named;
    if (nl_record_find(drain->record, "SPAN.ID", &named))
        return true;
    nl_field *fields = nl_record_append_many(drain->record, 2);
    if (fields == NULL)
        return false;
    char *digits = drain->digits;
    fields[0].name = (nl_string){"TRACE.ID", 8};
    set_id(&fields[0], ids->trace_id, sizeof ids->trace_id, &digits);
    fields[1].name = (nl_string){"SPAN.ID", 7};
    set_id(&fields[1], ids->span_id, sizeof ids->span_id, &digits);
    return true;
}

/* Sets drain->record to the event of a site. Returns false if the event is damaged or memory runs out. */
static bool event_record(nl_drain *drain, nl_ring *ring, uint32_t id, const char *payload, size_t size)
{
    if (id == NL_SITE_RECORD)
        return nl_payload_get(payload, size, drain->record);
    if (id == NL_SITE_LOST)
        return put_lost(drain, ring, payload, size);
    if (id == NL_SITE_IN_SPAN) {
        nl_span_ids ids;
        nl_event_header inner;
        if (size < sizeof ids + sizeof inner)
            return false;
        memcpy(&ids, payload, sizeof ids);
        memcpy(&inner, payload + sizeof ids, sizeof inner);
        return inner.size == size - sizeof ids && inner.site != NL_SITE_IN_SPAN && inner.site != NL_SITE_LOST &&
               event_record(drain, ring, inner.site, payload + sizeof ids + sizeof inner, inner.size - sizeof inner) &&
               add_span_ids(drain, &ids);
    }
    const nl_site *site = nl_site_table_get(&drain->sites, id);
    return site != NULL && typed_record(drain, site, payload, payload + size);
}

bool nl_drain_record(nl_drain *drain, nl_ring *ring, const nl_event_header *header, const char *event)
{
    nl_record_clear(drain->record);
    bool good = event_record(drain, ring, header->site, event + sizeof *header, header->size - sizeof *header);
    if (!good)
        nl_drain_lose(drain, ring, header->ticks,
                      header->site == NL_SITE_RECORD ? "the ring entry is not a valid record"
                                                     : "the event's memory is damaged");
    complete(drain, nl_drain_time_ns(drain, ring, header->ticks));
    return good;
}

/* ---- a binary heap of rings, ordered by the time of their next event ---- */

static uint64_t next_ticks(const nl_ring *ring)
{
    nl_event_header header;
    return nl_ring_event(ring, &header) != NULL ? header.ticks : UINT64_MAX;
}

static void sift_down(nl_drain *drain, size_t i)
{
    nl_ring **heap = drain->heap;
    for (;;) {
        size_t minimum = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < drain->heap_size; child++)
            if (next_ticks(heap[child]) < next_ticks(heap[minimum]))
                minimum = child;
        if (minimum == i)
            return;
        nl_ring *moved = heap[i];
        heap[i] = heap[minimum];
        heap[minimum] = moved;
        i = minimum;
    }
}

static void fill_heap(nl_drain *drain, nl_ring *rings)
{
    drain->heap_size = 0;
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next) {
        if (next_ticks(ring) == UINT64_MAX)
            continue;
        if (drain->heap_size == drain->heap_capacity) {
            size_t capacity = drain->heap_capacity == 0 ? 16 : 2 * drain->heap_capacity;
            nl_ring **heap = nl_memory_check(reallocarray(drain->heap, capacity, sizeof(nl_ring *)));
            if (heap == NULL)
                return;
            drain->heap = heap;
            drain->heap_capacity = capacity;
        }
        drain->heap[drain->heap_size++] = ring;
    }
    for (size_t i = drain->heap_size / 2; i-- > 0;)
        sift_down(drain, i);
}

/*
 * Returns the shape of the site's lines, which drain->record determines if it is the site's first record. Returns NULL
 * for an event without a registered site, or if memory runs out.
 */
static const nl_text_shape *text_shape(nl_drain *drain, const nl_text_format *format, uint32_t id)
{
    if (id < NL_SITE_FIRST)
        return NULL;
    if (id >= drain->text_shape_capacity) {
        size_t before = drain->text_shape_capacity, capacity = (size_t)id * 2;
        nl_text_shape **shapes = nl_memory_check(reallocarray(drain->text_shapes, capacity, sizeof *shapes));
        if (shapes == NULL)
            return NULL;
        drain->text_shapes = shapes;
        memset(drain->text_shapes + before, 0, (capacity - before) * sizeof *drain->text_shapes);
        drain->text_shape_capacity = capacity;
    }
    if (drain->text_shapes[id] == NULL)
        drain->text_shapes[id] = nl_text_shape_make(format, drain->record);
    return drain->text_shapes[id];
}

/*
 * Encodes one event and counts its record. Returns false if the event must wait for the next batch, because the event
 * has another level or memory ran out.
 */
static bool drain_put_text(nl_drain *drain, nl_ring *ring, const nl_event_header *header, const char *event,
                           nl_buffer *out, uint64_t *count)
{
    uint64_t sequence = ring->sequence, lost = drain->lost;
    bool good = nl_drain_record(drain, ring, header, event);
    if (drain->one_level && out->size > 0 && drain->record->level != drain->level) {
        ring->sequence = sequence;
        drain->lost = lost;
        return false;
    }
    drain->level = drain->record->level;
    const nl_text_format *format = nl_text_format_of(drain->format);
    const nl_text_shape *shape = good ? text_shape(drain, format, header->site) : NULL;
    if (!nl_text_encode(format, drain->record, shape, &drain->second, out))
        return false;
    ring->at += header->size;
    ring->sequence++;
    ++*count;
    return true;
}

static uint64_t drain_read_text(nl_drain *drain, nl_ring *rings, uint64_t until_ticks, nl_buffer *out, size_t limit)
{
    uint64_t count = 0;
    fill_heap(drain, rings);
    while (drain->heap_size > 0 && out->size < limit) {
        nl_ring *ring = drain->heap[0];
        nl_event_header header;
        const char *event = nl_ring_event(ring, &header);
        if (event == NULL) {
            drain->heap[0] = drain->heap[--drain->heap_size];
        } else {
            if (header.ticks > until_ticks || !drain_put_text(drain, ring, &header, event, out, &count))
                break;
        }
        sift_down(drain, 0);
    }
    return count;
}

/*
 * Skips the rest of a ring after an event whose memory the program has overwritten, because the start of the next event
 * is then unknown. A record reports the number of skipped bytes, which contained at least one event. Returns the number
 * of records: 0 or 1.
 */
static uint64_t skip_overwritten(nl_drain *drain, nl_ring *ring, nl_buffer *out)
{
    nl_event_header header;
    if (ring->at >= ring->end || nl_ring_event(ring, &header) != NULL ||
        (drain->one_level && out->size > 0 && drain->level != NL_WARNING))
        return 0;
    int64_t now_ns = nl_clock_latest_ns(&drain->clock);
    int64_t from_ns = ring->last_time_ns != 0 ? ring->last_time_ns : now_ns;
    lost_record(drain, ring, 1, 0, from_ns, now_ns);
    nl_record_add_uint(drain->record, "BYTES", ring->end - ring->at);
    nl_record_add_text(drain->record, "REASON", "memory is damaged");
    complete(drain, from_ns);
    drain->level = NL_WARNING;
    if (drain->format == NL_FORMAT_NLB)
        nl_drain_block_record(drain, ring, out);
    else
        nl_text_encode(nl_text_format_of(drain->format), drain->record, NULL, &drain->second, out);
    ring->at = ring->end;
    ring->sequence++;
    return 1;
}

static uint64_t drain_read_blocks(nl_drain *drain, nl_ring *rings, uint64_t until_ticks, nl_buffer *out, size_t limit)
{
    uint64_t count = 0;
    for (nl_ring *ring = rings; ring != NULL && out->size < limit; ring = ring->next)
        while (out->size < limit && ring->at < ring->end) {
            uint64_t records = nl_drain_block(drain, ring, until_ticks, out);
            if (records == 0)
                break;
            count += records;
        }
    return count;
}

static uint64_t drain_read_events(nl_drain *drain, nl_ring *rings, uint64_t until_ticks, nl_buffer *out, size_t limit)
{
    uint64_t count = 0;
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next)
        count += skip_overwritten(drain, ring, out);
    if (drain->format == NL_FORMAT_NLB)
        return count + drain_read_blocks(drain, rings, until_ticks, out, limit);
    return count + drain_read_text(drain, rings, until_ticks, out, limit);
}

nl_status nl_drain_take(nl_drain *drain, nl_ring *rings, uint64_t until_ticks, nl_buffer *out, size_t limit,
                        uint64_t *count)
{
    const unsigned failures = nl_memory_failures;
    const size_t size = out->size;
    const uint64_t lost = drain->lost;
    *count = drain_read_events(drain, rings, until_ticks, out, limit);
    if (nl_memory_failures == failures)
        return NL_OK;
    *count = 0;
    out->size = size;
    drain->lost = lost;
    nl_drain_block_forget(drain);
    return nl_error_set(NL_ERROR_MEMORY, "out of memory");
}
