/*
 * Reads events in rings in shared memory. A killed or faulty process may leave any bytes there. An input begins with
 * struct choices (integers are little-endian); the sites and then the bytes of the rings follow.
 */
#include "fuzz.h"

#include "log/drain.h"
#include "reader/decoder.h"

#include <endian.h>

typedef struct choices {
    uint8_t how;          /* HOW_... */
    uint8_t ring_size;    /* the size is 64 bytes, shifted left by the lower three bits */
    uint16_t sites_size;  /* size of the sites after their header, in bytes */
    uint64_t published;   /* size in bytes of the complete sites, according to the header */
    uint64_t tail, end;   /* of the rings: position of the first event, and position after the last event */
    uint64_t sequence;    /* of the rings: sequence number of the first event */
    uint64_t until_ticks; /* the time up to which events are taken */
    uint64_t ticks[2];    /* two points of the clock: readings of the counter, and times */
    int64_t time_ns[2];
} choices;

enum {
    CHOICES_SIZE = 4 + 9 * 8,
    HOW_FORMAT = 3,
    HOW_ONE_LEVEL = 4,
    HOW_ZSTD = 8,
    HOW_SLOW_CLOCK = 16,
    HOW_TWO_RINGS = 32,
    HOW_SMALL_BATCH = 64,
};

static const uint8_t *take_choices(const uint8_t *data, choices *c)
{
    uint16_t small;
    uint64_t large[9];
    memcpy(&small, data + 2, sizeof small);
    memcpy(large, data + 4, sizeof large);
    for (size_t i = 0; i < 9; i++)
        large[i] = le64toh(large[i]);
    *c = (choices){.how = data[0],
                   .ring_size = data[1],
                   .sites_size = le16toh(small),
                   .published = large[0],
                   .tail = large[1],
                   .end = large[2],
                   .sequence = large[3],
                   .until_ticks = large[4],
                   .ticks = {large[5], large[6]},
                   .time_ns = {(int64_t)large[7], (int64_t)large[8]}};
    return data + CHOICES_SIZE;
}

/* Returns memory of exactly the size, so that a sanitizer detects a read beyond it. */
static nl_shared_sites *make_sites(const choices *c, const uint8_t *data, size_t size)
{
    void *memory;
    fuzz_expect(posix_memalign(&memory, NL_CACHE_LINE, NL_SHARED_HEADER + size) == 0, "there is memory");
    memset(memory, 0, NL_SHARED_HEADER);
    memcpy((char *)memory + NL_SHARED_HEADER, data, size);
    nl_shared_sites *sites = memory;
    sites->published = c->published;
    return sites;
}

/* Makes a ring that repeats the data. Maps the ring twice in succession, like real rings. */
static void make_ring(nl_ring *ring, const choices *c, const uint8_t *data, size_t size)
{
    size_t ring_size = (size_t)64 << (c->ring_size & 7);
    char *memory = malloc(2 * ring_size);
    nl_shared_ring *shared = aligned_alloc(NL_CACHE_LINE, NL_SHARED_HEADER);
    fuzz_expect(memory != NULL && shared != NULL, "there is memory");
    memset(memory, 0, ring_size);
    for (size_t at = 0; at < ring_size && size > 0; at += size)
        memcpy(memory + at, data, size < ring_size - at ? size : ring_size - at);
    memcpy(memory + ring_size, memory, ring_size);
    memset(shared, 0, NL_SHARED_HEADER);
    memset(shared->stream, 7, sizeof shared->stream);
    shared->tail = c->tail;
    shared->published = c->end;
    shared->sequence = c->sequence;
    *ring = (nl_ring){.data = memory, .mask = ring_size - 1, .shared = shared};
    nl_ring_pin(ring);
}

static void free_ring(nl_ring *ring)
{
    nl_ring_unpin(ring);
    free((char *)ring->data);
    free(ring->shared);
}

static void drain_refuse(void *user, const nl_malformed *what)
{
    (void)user;
    fprintf(stderr, "%s: %.*s\n", what->reason, (int)what->text.size, what->text.data);
    fuzz_expect(false, "what comes out of damaged memory is a log");
}

/* Checks that the batch is a complete log with that number of records. */
static void check_batch(const nl_buffer *batch, uint64_t records)
{
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.on_malformed = drain_refuse});
    const nl_record *record;
    uint64_t count = 0;
    char *copy = fuzz_copy(batch->data, batch->size);
    nl_decoder_feed(decoder, copy, batch->size);
    while (nl_decoder_next(decoder, &record) == NL_OK) {
        fuzz_expect(!(record->flags & NL_RECORD_UNTERMINATED), "a batch ends with a whole record");
        count++;
    }
    nl_decoder_finish(decoder);
    fuzz_expect(nl_decoder_next(decoder, &record) == NL_END, "a batch ends with its last record");
    fuzz_expect(count == records, "a batch holds as many records as were counted");
    nl_decoder_free(decoder);
    free(copy);
}

static void drain_all(nl_drain *drain, nl_ring *rings, const choices *c)
{
    nl_buffer batch = {0};
    size_t most = 0;
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next)
        most += (ring->mask + 1) / sizeof(nl_event_header) + 1; /* plus one record that reports the skipped bytes */
    for (uint64_t records = 1; records > 0; most -= records) {
        batch.size = 0;
        size_t limit = c->how & HOW_SMALL_BATCH ? 100 : 100000;
        fuzz_expect(nl_drain_take(drain, rings, c->until_ticks, &batch, limit, &records) == NL_OK, "there is memory");
        fuzz_expect(records <= most, "there are no more events than a ring can hold");
        check_batch(&batch, records);
    }
    nl_buffer_free(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const nl_format formats[] = {NL_FORMAT_NLB, NL_FORMAT_ULM, NL_FORMAT_BP, NL_FORMAT_NLB};
    choices c;
    if (size < CHOICES_SIZE)
        return 0;
    const uint8_t *end = data + size;
    data = take_choices(data, &c);
    size_t sites_size = c.sites_size < (size_t)(end - data) ? c.sites_size : (size_t)(end - data);
    nl_drain drain;
    nl_drain_start(&drain, formats[c.how & HOW_FORMAT], (nl_string){"h", 1}, (nl_string){"p", 1});
    drain.one_level = c.how & HOW_ONE_LEVEL;
    drain.zstd_level = c.how & HOW_ZSTD ? 1 : 0;
    drain.sites = (nl_site_table){.shared = make_sites(&c, data, sites_size), .size = NL_SHARED_HEADER + sites_size};
    nl_clock_point points[2] = {{c.ticks[0], c.time_ns[0]}, {c.ticks[1], c.time_ns[1]}};
    nl_clock_restore(&drain.clock, points, c.how & HOW_SLOW_CLOCK);
    nl_shared_sites *sites = (nl_shared_sites *)drain.sites.shared;
    data += sites_size;
    size_t first = c.how & HOW_TWO_RINGS ? (size_t)(end - data) / 2 : (size_t)(end - data);
    nl_ring rings[2];
    make_ring(&rings[0], &c, data, first);
    make_ring(&rings[1], &c, data + first, (size_t)(end - data) - first);
    if (c.how & HOW_TWO_RINGS)
        rings[0].next = &rings[1];
    drain_all(&drain, rings, &c);
    free_ring(&rings[0]);
    free_ring(&rings[1]);
    nl_drain_finish(&drain);
    free(sites);
    return 0;
}
