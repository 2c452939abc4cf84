#include "config.h"

#include "reader/streams.h"

#include "reader/admission.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { FIRST_SLOTS = 8, YOUNG_MAX = NL_STREAMS_MAX / 2 };

typedef struct nl_stream_table table;

/*
 * Returns the first slot to search for a stream. Senders choose the IDs of streams, so the hash uses random bytes that
 * the kernel gave the process.
 */
static size_t streams_place_of(const unsigned char *id, size_t capacity)
{
    uint64_t seed[2], half[2];
    memcpy(seed, (const void *)getauxval(AT_RANDOM), sizeof seed); /* NOLINT: an address as a number */
    memcpy(half, id, sizeof half);
    uint64_t hash = (half[0] ^ seed[0]) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32 ^ half[1] ^ seed[1]) * 0xbf58476d1ce4e5b9u;
    return (size_t)(hash ^ hash >> 32) & (capacity - 1);
}

/* Returns the slot of the stream; for an unknown stream, an empty slot. */
static nl_stream *slot_of(const table *t, const unsigned char *id)
{
    static const unsigned char none[NL_BLOCK_STREAM_SIZE];
    size_t at = streams_place_of(id, t->capacity);
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the table has slots */
    while (memcmp(t->slots[at].id, id, sizeof none) != 0 && memcmp(t->slots[at].id, none, sizeof none) != 0)
        at = (at + 1) & (t->capacity - 1);
    return &t->slots[at];
}

static bool resize(table *t, size_t capacity)
{
    table larger = {.slots = calloc(capacity, sizeof *larger.slots), .capacity = capacity, .count = t->count};
    if (larger.slots == NULL)
        return nl_memory_failed() == NL_OK;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slots[i].known)
            *slot_of(&larger, t->slots[i].id) = t->slots[i];
    free(t->slots);
    *t = larger;
    return true;
}

/* Returns how many of a stream's gaps are shared gaps (admission.h). */
static size_t count_shared(size_t gaps)
{
    return gaps > NL_STREAM_GAPS_OWN ? gaps - NL_STREAM_GAPS_OWN : 0;
}

static size_t count_gaps(const nl_stream *stream)
{
    return stream->gaps != NULL ? stream->gaps->count : 0;
}

/* Updates the counts of shared gaps when a stream's number of gaps changes. */
static void count_gaps_of(nl_streams *streams, const nl_stream *stream, size_t before, size_t after)
{
    size_t change = count_shared(after) - count_shared(before); /* modulo SIZE_MAX + 1 */
    streams->shared_gaps += change;
    if (stream->owner != 0)
        streams->gaps_of_owners[stream->owner - 1] += change;
}

static nl_stream *find_in(const table *t, const unsigned char *id)
{
    nl_stream *stream = t->capacity > 0 ? slot_of(t, id) : NULL;
    return stream != NULL && stream->known ? stream : NULL;
}

static void free_table(nl_streams *streams, table *t)
{
    for (size_t i = 0; i < t->capacity; i++) {
        count_gaps_of(streams, &t->slots[i], count_gaps(&t->slots[i]), 0);
        free(t->slots[i].gaps);
    }
    free(t->slots);
    *t = (table){0};
}

static bool is_full(const nl_streams *streams)
{
    return streams->young.count + streams->old.count >= NL_STREAMS_MAX;
}

/*
 * Makes the young table the old table, and forgets the streams of the previous old table. Pointers to young streams
 * stay valid.
 */
static void make_old(nl_streams *streams)
{
    free_table(streams, &streams->old);
    streams->old = streams->young;
    streams->young = (table){0};
    streams->aged_ns = nl_monotonic_ns();
}

nl_stream *nl_streams_find(nl_streams *streams, const unsigned char id[NL_BLOCK_STREAM_SIZE])
{
    table *young = &streams->young, *old = &streams->old;
    nl_stream *stream = find_in(young, id);
    if (stream != NULL)
        return stream;
    nl_stream *before = find_in(old, id);
    if (before == NULL && is_full(streams))
        make_old(streams);
    if (young->count >= young->capacity / 2 && !resize(young, young->capacity == 0 ? FIRST_SLOTS : young->capacity * 2))
        return NULL;
    stream = slot_of(young, id);
    if (before != NULL) {
        *stream = *before;
        before->gaps = NULL;
        before->known = false;
        old->count--;
    }
    memcpy(stream->id, id, sizeof stream->id);
    young->count++;
    if (young->count >= YOUNG_MAX && old->count == 0)
        make_old(streams);
    return stream;
}

/* ---- gaps ---- */

static bool gaps_reserve(nl_stream *stream, size_t count)
{
    enum { FIRST_GAPS = 4 };
    nl_stream_gaps *gaps = stream->gaps;
    if (count == 0 || (gaps != NULL && count <= gaps->capacity))
        return true;
    size_t capacity = gaps == NULL ? FIRST_GAPS : 2 * gaps->capacity;
    capacity = capacity < count ? count : capacity;
    nl_stream_gaps *larger = nl_memory_check(realloc(gaps, sizeof *gaps + capacity * sizeof *gaps->at));
    if (larger == NULL)
        return false;
    larger->count = gaps != NULL ? larger->count : 0;
    larger->capacity = capacity;
    stream->gaps = larger;
    return true;
}

/* Returns the index of the first gap that ends after a number. */
static size_t find_gap(const nl_stream_gaps *gaps, uint64_t number)
{
    size_t low = 0, high = gaps != NULL ? gaps->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gaps->at[middle].to <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces the gaps [at, end) with parts. The caller has reserved memory. */
static void replace_gaps(nl_streams *streams, nl_stream *stream, size_t at, size_t end, const nl_number_range *parts,
                         size_t part_count)
{
    nl_stream_gaps *gaps = stream->gaps;
    if (gaps == NULL)
        return;
    size_t before = gaps->count;
    memmove(gaps->at + at + part_count, gaps->at + end, (gaps->count - end) * sizeof *gaps->at);
    memcpy(gaps->at + at, parts, part_count * sizeof *parts);
    gaps->count += part_count - (end - at);
    count_gaps_of(streams, stream, before, gaps->count);
}

static void add_range(nl_buffer *ranges, uint64_t from, uint64_t to)
{
    if (from < to)
        nl_buffer_append(ranges, (const char *)&(nl_number_range){from, to}, sizeof(nl_number_range));
}

/*
 * Removes [first, end) from the gaps. Adds the ranges of the removed numbers, relative to first, to fresh unless it is
 * NULL. Returns the count of removed numbers.
 */
static uint64_t fill_gaps(nl_streams *streams, nl_stream *stream, uint64_t first, uint64_t end, nl_buffer *fresh)
{
    uint64_t filled = 0;
    nl_number_range parts[2];
    size_t part_count = 0, at = find_gap(stream->gaps, first), i = at;
    for (; i < count_gaps(stream) && stream->gaps->at[i].from < end; i++) {
        nl_number_range gap = stream->gaps->at[i];
        uint64_t from = gap.from > first ? gap.from : first, to = gap.to < end ? gap.to : end;
        filled += to - from;
        if (fresh != NULL)
            add_range(fresh, from - first, to - first);
        if (gap.from < first)
            parts[part_count++] = (nl_number_range){gap.from, first};
        if (gap.to > end)
            parts[part_count++] = (nl_number_range){end, gap.to};
    }
    if (i > at)
        replace_gaps(streams, stream, at, i, parts, part_count);
    return filled;
}

static uint64_t end_of(uint64_t first, uint64_t count)
{
    return first + count < first ? UINT64_MAX : first + count;
}

static uint64_t lost_from(uint64_t first, uint64_t lost)
{
    return first > lost ? first - lost : 0;
}

uint64_t nl_stream_take(nl_streams *streams, nl_stream *stream, uint64_t first, uint64_t count, uint64_t lost,
                        nl_buffer *fresh)
{
    uint64_t next = stream->next, end = end_of(first, count), closed = 0;
    fresh->size = 0;
    if (!gaps_reserve(stream, count_gaps(stream) + 1)) {
        add_range(fresh, 0, end - first);
        return 0;
    }
    if (lost > 0 && lost_from(first, lost) < next)
        closed = fill_gaps(streams, stream, lost_from(first, lost), first < next ? first : next, NULL);
    if (first < next) {
        fill_gaps(streams, stream, first, end, fresh);
    } else if (first - next > lost) {
        size_t at = count_gaps(stream);
        replace_gaps(streams, stream, at, at, &(nl_number_range){next, first - lost}, 1);
    }
    if (end > next) {
        add_range(fresh, first > next ? 0 : next - first, end - first);
        stream->next = end;
    }
    return closed;
}

/* Returns whether a block opens or splits a gap. */
static bool opens_gap(const nl_stream *stream, uint64_t first, uint64_t count, uint64_t lost)
{
    uint64_t next = stream->next, end = end_of(first, count);
    if (first >= next)
        return first - next > lost;
    uint64_t from = lost_from(first, lost);
    size_t at = find_gap(stream->gaps, from);
    return end > from && at < count_gaps(stream) && stream->gaps->at[at].from < from && stream->gaps->at[at].to > end;
}

void nl_stream_saw(nl_stream *stream, const nl_block_header *h)
{
    if (!stream->known || (h->record_count > 0 && h->max_time_ns > stream->latest_ns))
        stream->latest_ns = h->record_count > 0 ? h->max_time_ns : h->lost_to_ns;
    stream->known = true;
}

void nl_streams_take(nl_streams *streams, const nl_block_view *block, nl_buffer *fresh)
{
    nl_block_header header;
    nl_status status = nl_block_parse_header(block->bytes.data, block->bytes.size, &header);
    fresh->size = 0;
    NL_REQUIRE(status == NL_OK && nl_block_has_stream(&header), "the block has no stream", );
    nl_stream *stream = nl_streams_find(streams, header.stream);
    if (stream == NULL)
        return;
    /*
     * As in the decoder, the numbers before the first block of a stream count as a gap, because they may still arrive.
     */
    nl_stream_take(streams, stream, header.first_sequence, header.record_count, header.lost, fresh);
    nl_number_range *ranges = (nl_number_range *)fresh->data;
    for (size_t i = 0; i < fresh->size / sizeof *ranges; i++) {
        ranges[i].from += header.first_sequence;
        ranges[i].to += header.first_sequence;
    }
    nl_stream_saw(stream, &header);
}

/* ---- state ---- */

static nl_stream_state state_of(const nl_stream *stream)
{
    nl_stream_state state = {.next = stream->next, .latest_ns = stream->latest_ns};
    memcpy(state.stream, stream->id, sizeof state.stream);
    if (stream->gaps != NULL) {
        state.gap_count = stream->gaps->count;
        state.gaps = stream->gaps->at;
    }
    return state;
}

static nl_stream *find_known(const nl_streams *streams, const unsigned char *id)
{
    nl_stream *stream = find_in(&streams->young, id);
    return stream != NULL ? stream : find_in(&streams->old, id);
}

bool nl_streams_get(const nl_streams *streams, const unsigned char id[NL_BLOCK_STREAM_SIZE], nl_stream_state *state)
{
    const nl_stream *stream = find_known(streams, id);
    if (stream != NULL)
        *state = state_of(stream);
    return stream != NULL;
}

bool nl_streams_know(const nl_streams *streams, const unsigned char id[NL_BLOCK_STREAM_SIZE])
{
    return find_known(streams, id) != NULL;
}

/* Returns whether a new stream can begin without displacing a recently used stream. */
static bool may_begin(const nl_streams *streams)
{
    return !is_full(streams) || nl_monotonic_ns() - streams->aged_ns >= NL_STREAMS_KEPT_S * NL_NS_PER_SECOND;
}

/* Assigns the stream's shared gaps to an owner, unless owner is 0. Returns false if memory runs out. */
static bool set_owner(nl_streams *streams, nl_stream *stream, unsigned owner)
{
    if (owner == 0 || stream->owner == owner)
        return true;
    if (streams->gaps_of_owners == NULL)
        streams->gaps_of_owners = nl_memory_check(calloc(NL_STREAM_OWNERS_MAX, sizeof *streams->gaps_of_owners));
    if (streams->gaps_of_owners == NULL)
        return false;
    size_t count = count_gaps(stream);
    count_gaps_of(streams, stream, count, 0);
    stream->owner = (uint16_t)owner;
    count_gaps_of(streams, stream, 0, count);
    return true;
}

bool nl_streams_admit(nl_streams *streams, const nl_block_header *block, unsigned owner)
{
    NL_REQUIRE(owner <= NL_STREAM_OWNERS_MAX, "unknown owner", false);
    nl_stream *stream = find_known(streams, block->stream);
    if (stream == NULL)
        return may_begin(streams);
    if (!opens_gap(stream, block->first_sequence, block->record_count, block->lost) ||
        count_gaps(stream) < NL_STREAM_GAPS_OWN)
        return true;
    return count_gaps(stream) < NL_STREAM_GAPS_MAX && streams->shared_gaps < NL_SHARED_GAPS_MAX &&
           set_owner(streams, stream, owner) && (owner == 0 || streams->gaps_of_owners[owner - 1] < NL_OWNER_GAPS_MAX);
}

void nl_streams_set(nl_streams *streams, const nl_stream_state *state)
{
    static const unsigned char none[NL_BLOCK_STREAM_SIZE];
    NL_REQUIRE(memcmp(state->stream, none, sizeof none) != 0, "the stream's ID is zero", );
    nl_stream *stream = nl_streams_find(streams, state->stream);
    if (stream == NULL || !gaps_reserve(stream, state->gap_count))
        return;
    stream->known = true;
    stream->next = state->next;
    stream->latest_ns = state->latest_ns;
    replace_gaps(streams, stream, 0, count_gaps(stream), state->gaps, state->gap_count);
}

void nl_streams_touch(nl_streams *streams, const unsigned char stream[NL_BLOCK_STREAM_SIZE])
{
    if (find_in(&streams->old, stream) != NULL)
        nl_streams_find(streams, stream);
}

void nl_streams_list(const nl_streams *streams, void (*function)(void *user, const nl_stream_state *state), void *user)
{
    const table *tables[] = {&streams->old, &streams->young};
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < tables[t]->capacity; i++) {
            const nl_stream *stream = &tables[t]->slots[i];
            if (!stream->known)
                continue;
            nl_stream_state state = state_of(stream);
            function(user, &state);
        }
}

void nl_streams_clear(nl_streams *streams)
{
    free_table(streams, &streams->young);
    free_table(streams, &streams->old);
}

nl_streams *nl_streams_new(void)
{
    return nl_memory_check(calloc(1, sizeof(nl_streams)));
}

void nl_streams_free(nl_streams *streams)
{
    if (streams != NULL) {
        nl_streams_clear(streams);
        free(streams->gaps_of_owners);
    }
    free(streams);
}
