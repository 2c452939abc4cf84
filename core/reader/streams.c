#include "config.h"

#include "reader/streams.h"

#include "reader/admission.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { FIRST_SLOTS = 8, YOUNG_MOST = NL_STREAMS_MOST / 2 };

typedef struct nl_stream_table table;

/* Streams are named by whoever sends them, so that the places are made hard to guess by what the kernel gave the
 * process at random. */
static size_t place_of(const unsigned char *id, size_t capacity)
{
    uint64_t seed[2], half[2];
    memcpy(seed, (const void *)getauxval(AT_RANDOM), sizeof seed); /* NOLINT: an address as a number */
    memcpy(half, id, sizeof half);
    uint64_t hash = (half[0] ^ seed[0]) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32 ^ half[1] ^ seed[1]) * 0xbf58476d1ce4e5b9u;
    return (size_t)(hash ^ hash >> 32) & (capacity - 1);
}

/* Where the stream is, or the empty slot where it would be. */
static nl_stream *slot_of(const table *t, const unsigned char *id)
{
    static const unsigned char none[NL_BLOCK_STREAM_SIZE];
    size_t at = place_of(id, t->capacity);
    while (memcmp(t->slots[at].id, id, sizeof none) != 0 && memcmp(t->slots[at].id, none, sizeof none) != 0)
        at = (at + 1) & (t->capacity - 1);
    return &t->slots[at];
}

/* False when there is no memory. */
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

static void free_table(table *t)
{
    for (size_t i = 0; i < t->capacity; i++)
        free(t->slots[i].gaps);
    free(t->slots);
    *t = (table){0};
}

nl_stream *nl_streams_find(nl_streams *streams, const unsigned char id[NL_BLOCK_STREAM_SIZE])
{
    table *young = &streams->young, *old = &streams->old;
    if (young->count == YOUNG_MOST) {
        free_table(old);
        *old = *young;
        *young = (table){0};
    }
    if (young->count >= young->capacity / 2 && !resize(young, young->capacity == 0 ? FIRST_SLOTS : young->capacity * 2))
        return NULL;
    nl_stream *stream = slot_of(young, id);
    if (stream->known)
        return stream;
    nl_stream *before = old->capacity > 0 ? slot_of(old, id) : NULL;
    if (before != NULL && before->known) {
        *stream = *before;
        before->gaps = NULL;
    }
    memcpy(stream->id, id, sizeof stream->id);
    young->count++;
    return stream;
}

/* ---- gaps ---- */

/* A list of gaps with one more than are kept. */
typedef struct gap_list {
    size_t count;
    nl_number_range at[NL_STREAM_GAPS_MOST + 1];
} gap_list;

static void add_range(gap_list *list, uint64_t from, uint64_t to)
{
    if (from < to)
        list->at[list->count++] = (nl_number_range){from, to};
}

/* Remembers the gaps, but the oldest when they are too many. */
static void keep(nl_stream *stream, const gap_list *list)
{
    size_t forgotten = list->count > NL_STREAM_GAPS_MOST ? 1 : 0;
    if (stream->gaps == NULL && list->count > 0) {
        stream->gaps = nl_memory_check(calloc(1, sizeof *stream->gaps));
    }
    if (stream->gaps == NULL)
        return;
    stream->gaps->count = list->count - forgotten;
    memcpy(stream->gaps->at, list->at + forgotten, stream->gaps->count * sizeof *list->at);
}

/* Takes [first, end) out of the gaps; what of it was in them is added to fresh. */
static void fill_gaps(nl_stream *stream, uint64_t first, uint64_t end, gap_list *fresh)
{
    gap_list left = {0};
    for (size_t i = 0; stream->gaps != NULL && i < stream->gaps->count; i++) {
        nl_number_range gap = stream->gaps->at[i];
        uint64_t from = gap.from > first ? gap.from : first, to = gap.to < end ? gap.to : end;
        if (from < to) {
            add_range(&left, gap.from, from);
            add_range(&left, to, gap.to);
            add_range(fresh, from - first, to - first);
        } else {
            add_range(&left, gap.from, gap.to);
        }
    }
    keep(stream, &left);
}

static void add_gap(nl_stream *stream, uint64_t from, uint64_t to)
{
    gap_list all = {0};
    for (size_t i = 0; stream->gaps != NULL && i < stream->gaps->count; i++)
        add_range(&all, stream->gaps->at[i].from, stream->gaps->at[i].to);
    add_range(&all, from, to);
    keep(stream, &all);
}

size_t nl_stream_take(nl_stream *stream, uint64_t first, uint64_t count, uint64_t lost,
                      nl_number_range fresh[NL_STREAM_GAPS_MOST + 1])
{
    uint64_t next = stream->next, end = first + count < first ? UINT64_MAX : first + count;
    gap_list taken = {0};
    if (first < next)
        fill_gaps(stream, first, end, &taken);
    else if (first - next > lost)
        add_gap(stream, next, first - lost);
    if (end > next) {
        add_range(&taken, first > next ? 0 : next - first, end - first);
        stream->next = end;
    }
    memcpy(fresh, taken.at, taken.count * sizeof *fresh);
    return taken.count;
}

void nl_stream_saw(nl_stream *stream, const nl_block_header *h)
{
    if (!stream->known || (h->record_count > 0 && h->max_time_ns > stream->latest_ns))
        stream->latest_ns = h->record_count > 0 ? h->max_time_ns : h->lost_to_ns;
    stream->known = true;
}

size_t nl_streams_take(nl_streams *streams, const nl_block_view *block, nl_number_range fresh[NL_STREAM_GAPS_MOST + 1])
{
    nl_block_header header;
    nl_status status = nl_block_parse_header(block->bytes.data, block->bytes.size, &header);
    NL_REQUIRE(status == NL_OK && nl_block_has_stream(&header), "the block is of no stream", 0);
    nl_stream *stream = nl_streams_find(streams, header.stream);
    if (stream == NULL)
        return 0;
    /* Of one that is met for the first time, what is before the block may yet come: as decoders see it. */
    size_t count = nl_stream_take(stream, header.first_sequence, header.record_count, header.lost, fresh);
    for (size_t i = 0; i < count; i++) {
        fresh[i].from += header.first_sequence;
        fresh[i].to += header.first_sequence;
    }
    nl_stream_saw(stream, &header);
    return count;
}

/* ---- all of it, to be kept ---- */

static const nl_stream *look_up(const table *t, const unsigned char *id)
{
    const nl_stream *stream = t->capacity > 0 ? slot_of(t, id) : NULL;
    return stream != NULL && stream->known ? stream : NULL;
}

static nl_stream_state state_of(const nl_stream *stream)
{
    nl_stream_state state = {.next = stream->next, .latest_ns = stream->latest_ns};
    memcpy(state.stream, stream->id, sizeof state.stream);
    if (stream->gaps != NULL) {
        state.gap_count = stream->gaps->count;
        memcpy(state.gaps, stream->gaps->at, state.gap_count * sizeof *state.gaps);
    }
    return state;
}

bool nl_streams_get(const nl_streams *streams, const unsigned char id[NL_BLOCK_STREAM_SIZE], nl_stream_state *state)
{
    const nl_stream *stream = look_up(&streams->young, id);
    if (stream == NULL)
        stream = look_up(&streams->old, id);
    if (stream != NULL)
        *state = state_of(stream);
    return stream != NULL;
}

void nl_streams_set(nl_streams *streams, const nl_stream_state *state)
{
    static const unsigned char none[NL_BLOCK_STREAM_SIZE];
    NL_REQUIRE(memcmp(state->stream, none, sizeof none) != 0, "the stream has no name", );
    NL_REQUIRE(state->gap_count <= NL_STREAM_GAPS_MOST, "there are too many gaps", );
    nl_stream *stream = nl_streams_find(streams, state->stream);
    if (stream == NULL)
        return;
    stream->known = true;
    stream->next = state->next;
    stream->latest_ns = state->latest_ns;
    gap_list gaps = {.count = state->gap_count};
    memcpy(gaps.at, state->gaps, gaps.count * sizeof *gaps.at);
    keep(stream, &gaps);
}

void nl_streams_touch(nl_streams *streams, const unsigned char stream[NL_BLOCK_STREAM_SIZE])
{
    if (look_up(&streams->young, stream) == NULL && look_up(&streams->old, stream) != NULL)
        nl_streams_find(streams, stream);
}

void nl_streams_list(const nl_streams *streams, void (*function)(void *user, const nl_stream_state *state), void *user)
{
    const table *tables[] = {&streams->old, &streams->young};
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < tables[t]->capacity; i++) {
            const nl_stream *stream = &tables[t]->slots[i];
            if (!stream->known || (t == 0 && look_up(&streams->young, stream->id) != NULL))
                continue;
            nl_stream_state state = state_of(stream);
            function(user, &state);
        }
}

void nl_streams_clear(nl_streams *streams)
{
    free_table(&streams->young);
    free_table(&streams->old);
}

nl_streams *nl_streams_new(void)
{
    return nl_memory_check(calloc(1, sizeof(nl_streams)));
}

void nl_streams_free(nl_streams *streams)
{
    if (streams != NULL)
        nl_streams_clear(streams);
    free(streams);
}
