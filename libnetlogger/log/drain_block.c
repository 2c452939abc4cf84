/*
 * The fast path from a ring into a block, which copies values without making records.
 */
#include "config.h"

#include "log/drain_internal.h"

#include "base/memory.h"
#include "base/buffer.h"
#include "log/hex.h"

#include <stdlib.h>
#include <string.h>

enum {
    ID_SIZE_MAX = 2 * sizeof((nl_span_ids){0}.trace_id) + 1, /* maximum size of an ID in a block: the digits, and one
                                                              * byte for their number */
    SPAN_FIELDS = 2,                                         /* number of additional fields of an event in a span */
    FIELDS_MAX = NL_SITE_FIELDS_MAX + SPAN_FIELDS,
    NUMBERS_SIZE = FIELDS_MAX * ID_SIZE_MAX, /* maximum size of the numbers and IDs of an event, in bytes */
    BLOCK_SIZE = 60 << 10,                   /* size in bytes at which a run of typed events ends the block */
    BLOCK_EVENTS = 64 << 10,                 /* number of bytes of a ring that always fit into one block */
    RUN_EVENT_MAX = 4096,
    LARGE_SIZE = 64 << 10, /* bytes; larger than any shape definition */
    AHEAD = 2048,          /* prefetch distance in bytes of the ring */
};
_Static_assert(RUN_EVENT_MAX / 2 + NUMBERS_SIZE + NL_BLOCK_RECORD_HEAD < RUN_EVENT_MAX,
               "a run has space for one more event");

static nl_type type_of(unsigned raw_type)
{
    switch (raw_type) {
    case NL_RAW_STRING:
    case NL_RAW_TRACE_ID:
    case NL_RAW_SPAN_ID:
        return NL_TYPE_STRING;
    case NL_RAW_BOOL:
        return NL_TYPE_BOOL;
    case NL_RAW_FLOAT:
    case NL_RAW_DOUBLE:
        return NL_TYPE_DOUBLE;
    case NL_RAW_UINT8:
    case NL_RAW_UINT16:
    case NL_RAW_UINT32:
    case NL_RAW_UINT64:
        return NL_TYPE_UINT;
    default:
        return NL_TYPE_INT;
    }
}

static unsigned add_shape(nl_drain *drain, const nl_site *site, bool in_span)
{
    static const nl_string ids[SPAN_FIELDS] = {{"TRACE.ID", 8}, {"SPAN.ID", 7}};
    nl_type types[FIELDS_MAX];
    nl_string names[FIELDS_MAX];
    uint32_t digits = in_span ? 2 * sizeof(nl_span_ids) : 0; /* number of hexadecimal digits of all IDs in a record */
    unsigned count = site->field_count;
    memcpy(names, site->names, count * sizeof *names);
    for (unsigned i = 0; i < count; i++) {
        types[i] = type_of(site->types[i]);
        if (types[i] == NL_TYPE_STRING)
            digits += 2 * (uint32_t)nl_raw_size(site->types[i]);
    }
    for (unsigned i = 0; i < SPAN_FIELDS && in_span; i++, count++) {
        names[count] = ids[i];
        types[count] = NL_TYPE_STRING;
    }
    if (drain->block_source == 0)
        drain->block_source = 1 + nl_block_add_source(&drain->block, drain->host, drain->prog);
    if (drain->block_source == 0)
        return NL_BLOCK_NO_PLACE;
    unsigned shape = nl_block_add_shape(&drain->block, &(nl_block_shape){.source = drain->block_source - 1,
                                                                         .level = site->level,
                                                                         .event = site->event,
                                                                         .names = names,
                                                                         .types = types,
                                                                         .field_count = count});
    if (shape != NL_BLOCK_NO_PLACE)
        drain->block.known_shapes[shape].expanded += digits;
    return shape;
}

/*
 * Returns the index of a site's shape in this block. Adds the shape at the site's first event in the block. Returns
 * NL_BLOCK_NO_PLACE if memory runs out. Events in spans have a different shape.
 */
static unsigned shape_of(nl_drain *drain, uint32_t id, const nl_site *site, bool in_span)
{
    size_t place = 2 * (size_t)id + in_span;
    if (place >= drain->shape_capacity) {
        size_t capacity = 2 * place;
        unsigned *shapes = nl_memory_check(reallocarray(drain->shapes, capacity, sizeof *shapes));
        if (shapes == NULL)
            return NL_BLOCK_NO_PLACE;
        drain->shapes = shapes;
        memset(drain->shapes + drain->shape_capacity, 0, (capacity - drain->shape_capacity) * sizeof *drain->shapes);
        drain->shape_capacity = capacity;
    }
    if (drain->shapes[place] == 0)
        drain->shapes[place] = 1 + add_shape(drain, site, in_span);
    return drain->shapes[place] - 1;
}

/*
 * Copies a value from the ring at *from into the block, and advances *from. *left is the number of bytes that remain
 * for the contents of strings; the caller has checked that all other values are within the event. Returns the end of
 * the written bytes, or NULL if a string is longer than *left. block_write.h describes `records` and `before`, and
 * nl_varint_put_by describes bmi2.
 */
static inline __attribute__((always_inline)) char *put_value(char *at, const char *records, const char **from,
                                                             size_t *left, unsigned raw_type, uint64_t *before,
                                                             bool bmi2)
{
    const char *value = *from;
#define PUT(raw, c_type, put)                                                                                          \
    case raw: {                                                                                                        \
        c_type number;                                                                                                 \
        memcpy(&number, value, sizeof number);                                                                         \
        *from = value + sizeof number;                                                                                 \
        return put;                                                                                                    \
    }
#define PUT_NUMBER(raw, c_type) PUT(raw, c_type, nl_block_put_number(at, (uint64_t)number, before, bmi2))
    switch (raw_type) {
    case NL_RAW_TRACE_ID:
    case NL_RAW_SPAN_ID: {
        char digits[ID_SIZE_MAX];
        size_t size = nl_raw_size(raw_type);
        nl_hex_put(digits, value, size);
        *from = value + size;
        return nl_block_put_text(at, records, digits, 2 * size, before, bmi2);
    }
    case NL_RAW_STRING: {
        uint32_t size;
        memcpy(&size, value, sizeof size);
        if (*left < size)
            return NULL;
        *left -= size;
        *from = value + sizeof size + size;
        return nl_block_put_text(at, records, value + sizeof size, size, before, bmi2);
    }
        PUT_NUMBER(NL_RAW_INT8, int8_t)
        PUT_NUMBER(NL_RAW_INT16, int16_t)
        PUT_NUMBER(NL_RAW_INT32, int32_t)
        PUT_NUMBER(NL_RAW_INT64, int64_t)
        PUT_NUMBER(NL_RAW_UINT8, uint8_t)
        PUT_NUMBER(NL_RAW_UINT16, uint16_t)
        PUT_NUMBER(NL_RAW_UINT32, uint32_t)
        PUT_NUMBER(NL_RAW_UINT64, uint64_t)
        PUT(NL_RAW_FLOAT, float, nl_double_put(at, number))
        PUT(NL_RAW_DOUBLE, double, nl_double_put(at, number))
        PUT(NL_RAW_BOOL, uint8_t, nl_varint_put(at, number != 0))
    }
#undef PUT_NUMBER
#undef PUT
    return NULL;
}

/*
 * Returns whether the event's strings end within the event. Requires that the event has at least the minimum size of
 * the site.
 */
static bool is_whole(const nl_site *site, const nl_event_header *header, const char *event)
{
    size_t left = header->size - site->minimum_size;
    const char *value = event + sizeof *header;
    for (unsigned i = 0; i < site->field_count; i++) {
        uint32_t size = 0;
        if (site->types[i] == NL_RAW_STRING)
            memcpy(&size, value, sizeof size);
        if (size > left)
            return false;
        left -= size;
        value += site->types[i] == NL_RAW_STRING ? sizeof size + size : nl_raw_size(site->types[i]);
    }
    return true;
}

/* Writes the IDs of the span in which an event was logged. Returns the end of the written bytes. */
static char *put_span_ids(char *at, const char *records, const nl_span_ids *ids, uint64_t *before)
{
    char digits[ID_SIZE_MAX];
    nl_hex_put(digits, ids->trace_id, sizeof ids->trace_id);
    at = nl_block_put_text(at, records, digits, 2 * sizeof ids->trace_id, before, false);
    nl_hex_put(digits, ids->span_id, sizeof ids->span_id);
    return nl_block_put_text(at, records, digits, 2 * sizeof ids->span_id, before + 1, false);
}

/*
 * Adds a typed event to the block. `ids` is NULL outside spans. Returns false, without adding a record, if the event is
 * damaged or memory runs out.
 */
static bool put_typed(nl_drain *drain, nl_ring *ring, const nl_event_header *header, const char *event,
                      const nl_span_ids *ids)
{
    const nl_site *site = nl_site_table_get(&drain->sites, header->site);
    if (site == NULL || header->size < site->minimum_size || !is_whole(site, header, event))
        return false;
    unsigned shape = shape_of(drain, header->site, site, ids != NULL);
    if (shape == NL_BLOCK_NO_PLACE)
        return false;
    nl_block_writer *block = &drain->block;
    uint64_t *before = nl_block_before(block, shape);
    size_t maximum = NL_BLOCK_RECORD_HEAD + NUMBERS_SIZE + header->size, left = header->size - site->minimum_size;
    if (__builtin_expect(block->records.capacity - block->records.size < maximum, 0) &&
        !nl_buffer_reserve(&block->records, maximum))
        return false;
    char *records = block->records.data, *at = records + block->records.size;
    const char *from = event + sizeof *header;
    at = nl_block_begin_record(block, at, shape, nl_drain_time_ns(drain, ring, header->ticks));
    for (unsigned i = 0; i < site->field_count; i++)
        at = put_value(at, records, &from, &left, site->types[i], &before[i], false);
    if (ids != NULL)
        at = put_span_ids(at, records, ids, &before[site->field_count]);
    block->records.size = (size_t)(at - records);
    block->expanded += header->size;
    return true;
}

/*
 * Finds the typed event within an NL_SITE_IN_SPAN event. Returns false if the event does not get the span's IDs,
 * because it is a whole record, has its own SPAN.ID, or is damaged.
 */
static bool find_in_span(nl_drain *drain, const nl_event_header *header, const char **event, nl_event_header *inner,
                         nl_span_ids *ids)
{
    const char *payload = *event + sizeof *header;
    if (header->site != NL_SITE_IN_SPAN || header->size < sizeof *header + sizeof *ids + sizeof *inner)
        return false;
    memcpy(ids, payload, sizeof *ids);
    memcpy(inner, payload + sizeof *ids, sizeof *inner);
    const nl_site *site = inner->site >= NL_SITE_FIRST ? nl_site_table_get(&drain->sites, inner->site) : NULL;
    if (site == NULL || site->has_span_id || inner->size != header->size - sizeof *header - sizeof *ids)
        return false;
    inner->ticks = header->ticks;
    *event = payload + sizeof *ids;
    return true;
}

/* ---- consecutive typed events ---- */

/* The properties of the latest event. The next event usually has the same properties. */
typedef struct run_site {
    const nl_site *site; /* NULL: no event yet */
    uint32_t id;
    unsigned shape;
    int64_t expanded; /* expanded size of a record without strings, in bytes (nl_block_known_shape) */
    uint64_t *before;
} run_site;

static inline __attribute__((always_inline)) bool turn_to_site(nl_drain *drain, uint32_t id, run_site *latest)
{
    if (latest->site != NULL && latest->id == id)
        return true;
    const nl_site *site = nl_site_table_get(&drain->sites, id);
    if (site == NULL || nl_block_tables_are_full(&drain->block))
        return false;
    unsigned shape = shape_of(drain, id, site, false);
    if (shape == NL_BLOCK_NO_PLACE)
        return false;
    *latest =
        (run_site){site, id, shape, drain->block.known_shapes[shape].expanded, nl_block_before(&drain->block, shape)};
    return true;
}

/*
 * Copies an event into the block. The event occurred since_ns after the previous event. See put_value for *left and the
 * result.
 */
static inline __attribute__((always_inline)) char *put_event(char *at, const char *records, const run_site *of,
                                                             const char *event, size_t left, int64_t since_ns,
                                                             bool bmi2)
{
    const char *from = event + sizeof(nl_event_header);
    const unsigned char *types = of->site->types, *end = types + of->site->field_count;
    uint64_t *before = of->before;
    at = nl_varint_put_by(at, of->shape, bmi2);
    at = nl_varint_put_by(at, nl_zigzag(since_ns), bmi2);
    for (; types < end && at != NULL; types++)
        at = put_value(at, records, &from, &left, *types, before++, bmi2);
    return at;
}

/*
 * Adds consecutive typed events up to the position `until` and the time until_ticks to a block that already has a
 * record. Stops when the block is full, and at an event that put_event_or_loss must handle. Such an event has no site,
 * is damaged, has more than RUN_EVENT_MAX / 2 bytes of strings, is earlier than the previous event, or is outside the
 * clock's segment in use. Keeps all state in local variables, because the compiler would reload members of structs
 * after each store into the block. Returns the number of added events.
 */
static inline __attribute__((always_inline)) uint64_t put_run_with(nl_drain *drain, nl_ring *ring, uint64_t until,
                                                                   uint64_t until_ticks, bool bmi2)
{
    nl_block_writer *block = &drain->block;
    if (!nl_buffer_reserve(&block->records, BLOCK_SIZE + RUN_EVENT_MAX))
        return 0;
    char *records = block->records.data, *at = records + block->records.size, *full = records + BLOCK_SIZE;
    const nl_clock_segment clock = nl_clock_segment_in_use(&drain->clock);
    const char *data = ring->data;
    const uint64_t mask = ring->mask, published = ring->end;
    uint64_t position = ring->at;
    /* expanded_left does not count strings, which together are at most as large as the ring's bytes up to `until`. */
    const int64_t expanded = (int64_t)NL_BLOCK_FULL_EXPANDED - (int64_t)block->expanded;
    int64_t expanded_left = expanded;
    int64_t last_ns = ring->last_time_ns, block_last_ns = block->last_time_ns, first_ns = INT64_MAX;
    uint32_t count = 0;
    run_site latest = {0};
    nl_event_header header;
    while (at < full && position < until && expanded_left > 0 && published - position >= sizeof header) {
        const char *event = data + (position & mask);
        __builtin_prefetch(event + AHEAD);
        memcpy(&header, event, sizeof header);
        if (!turn_to_site(drain, header.site, &latest))
            break;
        size_t left = (size_t)header.size - latest.site->minimum_size; /* the result wraps around to a huge number if
                                                                        * the event is too small */
        if (left > RUN_EVENT_MAX / 2 || header.size > published - position || header.ticks > until_ticks ||
            !nl_clock_segment_has(&clock, header.ticks))
            break;
        int64_t time_ns = nl_clock_segment_time_ns(&clock, header.ticks);
        int64_t since_ns = (int64_t)((uint64_t)time_ns - (uint64_t)block_last_ns);
        char *put = time_ns >= last_ns ? put_event(at, records, &latest, event, left, since_ns, bmi2) : NULL;
        if (put == NULL)
            break;
        at = put;
        expanded_left -= latest.expanded;
        first_ns = count == 0 ? time_ns : first_ns;
        last_ns = block_last_ns = time_ns;
        position += header.size;
        count++;
    }
    if (count > 0)
        nl_block_note_run(block, at, count, first_ns, last_ns,
                          (size_t)(expanded - expanded_left) + (size_t)(position - ring->at));
    ring->last_time_ns = last_ns;
    ring->at = position;
    ring->sequence += count;
    return count;
}

#ifdef __x86_64__
__attribute__((target("bmi,bmi2,lzcnt"))) static uint64_t put_run_bmi2(nl_drain *drain, nl_ring *ring, uint64_t until,
                                                                       uint64_t until_ticks)
{
    return put_run_with(drain, ring, until, until_ticks, true);
}
#endif

static uint64_t put_run(nl_drain *drain, nl_ring *ring, uint64_t until, uint64_t until_ticks)
{
#ifdef __x86_64__
    /* Older AMD processors have BMI2, but run the portable code faster. */
    if (__builtin_cpu_supports("bmi2") && (__builtin_cpu_is("intel") || __builtin_cpu_is("znver3")))
        return put_run_bmi2(drain, ring, until, until_ticks);
#endif
    return put_run_with(drain, ring, until, until_ticks, false);
}

/* ---- a block ---- */

/*
 * Handles an event that does not fit into a block of `count` records. If count is greater than 0, returns false, and
 * the event begins the next block. Otherwise, the event is too large for any block: adds a report of its loss, and
 * returns false if memory runs out.
 */
static bool put_only(nl_drain *drain, nl_ring *ring, const nl_event_header *header, uint64_t count)
{
    if (count > 0)
        return false;
    nl_drain_lose(drain, ring, header->ticks, "the event does not fit into a block");
    return nl_block_put(&drain->block, drain->record);
}

/*
 * Adds an event to a block of `count` records. If the event is damaged, adds a report of the loss instead. Puts the
 * report of a damaged typed event only into an empty block, because put_run may have written a part of the event to the
 * block. Returns false if the event must wait for the next block.
 */
static bool put_event_or_loss(nl_drain *drain, nl_ring *ring, const nl_event_header *header, const char *event,
                              uint64_t count)
{
    nl_event_header inner;
    nl_span_ids ids;
    const char *typed = event;
    const bool in_span = find_in_span(drain, header, &typed, &inner, &ids);
    if (header->site >= NL_SITE_FIRST || in_span) {
        if (count > 0 && !nl_block_has_space(&drain->block, header->size + LARGE_SIZE))
            return false;
        if (put_typed(drain, ring, in_span ? &inner : header, typed, in_span ? &ids : NULL))
            return true;
        if (count > 0)
            return false;
    }
    nl_drain_record(drain, ring, header, event);
    return nl_block_put(&drain->block, drain->record) || put_only(drain, ring, header, count);
}

/* Copies the number of events that were lost before the block's first event into the block's header. */
static void note_lost(nl_drain *drain, const char *event, nl_block_identity *identity)
{
    nl_lost_event lost;
    memcpy(&lost, event + sizeof(nl_event_header), sizeof lost);
    identity->lost = lost.full + lost.refused;
    identity->lost_from_ns = nl_clock_time_ns(&drain->clock, lost.from_ticks);
    identity->lost_to_ns = nl_clock_time_ns(&drain->clock, lost.to_ticks);
    identity->first_sequence += identity->lost;
}

/*
 * Returns the number of bytes that a block may take from a ring. A block takes only an eighth of the ring, so that the
 * thread has free space again while the module encodes the rest. The result is at least BLOCK_EVENTS, and at most a
 * quarter of the maximum expanded size of a block.
 */
static uint64_t block_size_max(const nl_ring *ring)
{
    uint64_t part = (ring->mask + 1) / 8;
    part = part < NL_BLOCK_EXPANDED_MAX / 4 ? part : NL_BLOCK_EXPANDED_MAX / 4;
    return part > BLOCK_EVENTS ? part : BLOCK_EVENTS;
}

static nl_block_identity identity_of(const nl_ring *ring)
{
    nl_block_identity identity = {.first_sequence = ring->sequence};
    memcpy(identity.stream, ring->shared->stream, sizeof identity.stream);
    return identity;
}

void nl_drain_block_record(nl_drain *drain, const nl_ring *ring, nl_buffer *out)
{
    const nl_block_identity identity = identity_of(ring);
    nl_block_put(&drain->block, drain->record);
    nl_block_finish(&drain->block, &identity, drain->zstd_level, out);
}

static void forget_shapes(nl_drain *drain)
{
    drain->block_source = 0;
    if (drain->shape_capacity > 0)
        memset(drain->shapes, 0, drain->shape_capacity * sizeof *drain->shapes);
}

uint64_t nl_drain_block(nl_drain *drain, nl_ring *ring, uint64_t until_ticks, nl_buffer *out)
{
    nl_block_identity identity = identity_of(ring);
    uint64_t count = 0, until = ring->at + block_size_max(ring);
    nl_event_header header;
    const char *event;
    while (!nl_block_is_full(&drain->block) && ring->at < until && (event = nl_ring_event(ring, &header)) != NULL &&
           header.ticks <= until_ticks) {
        if (header.site == NL_SITE_LOST) {
            if (count > 0)
                break; /* the next block begins with this event */
            if (header.size == sizeof header + sizeof(nl_lost_event))
                note_lost(drain, event, &identity);
        }
        if (!put_event_or_loss(drain, ring, &header, event, count))
            break;
        ring->at += header.size;
        ring->sequence++;
        count += 1 + put_run(drain, ring, until, until_ticks);
    }
    nl_block_finish(&drain->block, &identity, drain->zstd_level, out);
    forget_shapes(drain);
    return count;
}

void nl_drain_block_forget(nl_drain *drain)
{
    nl_block_clear(&drain->block);
    forget_shapes(drain);
}
