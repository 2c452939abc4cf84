#include "config.h"

#include "reader/sequences.h"

#include "base/memory.h"
#include "reader/decoder.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

typedef struct sequence_stream {
    unsigned char id[NL_BLOCK_STREAM_SIZE]; /* first, for compare_streams */
    uint64_t low, next;                     /* no number outside of [low, next) was read */
    int64_t low_ns, next_ns;                /* times of the records with the numbers low and next - 1 */
} sequence_stream;

/* Missing numbers of a stream. Gaps of one stream never overlap. */
typedef struct sequence_gap {
    unsigned char id[NL_BLOCK_STREAM_SIZE];
    uint64_t from, to;
    int64_t from_ns, to_ns; /* times of the adjacent records */
    const char *source;     /* input that revealed the gap; in nl_sequences.sources */
} sequence_gap;

struct nl_sequences {
    void *streams, *gaps, *sources; /* trees of tsearch(3) */
    size_t stream_count, gap_count;
    bool incomplete;         /* some numbers did not fit */
    bool passed_over;        /* parts of an input were skipped */
    size_t awaited;          /* number of decoders that will add more numbers */
    sequence_stream *latest; /* stream of the latest block; consecutive blocks usually belong to one stream */
    const char *latest_source;
};

static int compare_streams(const void *a, const void *b)
{
    return memcmp(((const sequence_stream *)a)->id, ((const sequence_stream *)b)->id, NL_BLOCK_STREAM_SIZE);
}

/* Overlapping gaps compare as equal, so that tfind finds a gap that overlaps a range. */
static int compare_gaps(const void *a, const void *b)
{
    const sequence_gap *left = a, *right = b;
    int order = memcmp(left->id, right->id, NL_BLOCK_STREAM_SIZE);
    if (order != 0)
        return order;
    return left->to <= right->from ? -1 : left->from >= right->to;
}

static int compare_sources(const void *a, const void *b)
{
    return strcmp(a, b);
}

nl_sequences *nl_sequences_new(void)
{
    return nl_memory_check(calloc(1, sizeof(nl_sequences)));
}

void nl_sequences_settle(nl_sequences *s)
{
    tdestroy(s->gaps, free);
    s->gaps = NULL;
    s->gap_count = 0;
}

void nl_sequences_free(nl_sequences *s)
{
    if (s == NULL)
        return;
    nl_sequences_settle(s);
    tdestroy(s->streams, free);
    tdestroy(s->sources, free);
    free(s);
}

/* Marks the set as incomplete because memory ran out. */
static void note_memory_failed(nl_sequences *s)
{
    s->incomplete = true;
    nl_memory_failed();
}

/* Returns a copy of the name that is valid as long as the set exists; "" if memory runs out. */
static const char *intern_source(nl_sequences *s, const char *source)
{
    if (s->latest_source != NULL && strcmp(s->latest_source, source) == 0)
        return s->latest_source;
    char *const *found = tfind(source, &s->sources, compare_sources);
    if (found == NULL) {
        char *copy = strdup(source);
        found = copy != NULL ? tsearch(copy, &s->sources, compare_sources) : NULL;
        if (found == NULL) {
            free(copy);
            note_memory_failed(s);
            return "";
        }
    }
    return s->latest_source = *found;
}

/* Adds the gap [from, to), with the stream and source of another gap. Does nothing if from >= to. */
static void add_gap_between(nl_sequences *s, const sequence_gap *other, uint64_t from, uint64_t to, int64_t from_ns,
                            int64_t to_ns)
{
    if (from >= to)
        return;
    if (s->gap_count >= SEQUENCES_GAPS_MAX) {
        s->incomplete = true;
        return;
    }
    sequence_gap *copy = malloc(sizeof *copy);
    if (copy != NULL) {
        *copy = (sequence_gap){.from = from, .to = to, .from_ns = from_ns, .to_ns = to_ns, .source = other->source};
        memcpy(copy->id, other->id, sizeof copy->id);
    }
    if (copy == NULL || tsearch(copy, &s->gaps, compare_gaps) == NULL) {
        free(copy);
        note_memory_failed(s);
        return;
    }
    s->gap_count++;
}

/* Removes a gap that overlaps range, and copies the gap to *gap. Returns false if no gap overlaps range. */
static bool sequences_remove_gap(nl_sequences *s, const sequence_gap *range, sequence_gap *gap)
{
    sequence_gap *const *found = range->from < range->to ? tfind(range, &s->gaps, compare_gaps) : NULL;
    if (found == NULL)
        return false;
    sequence_gap *taken = *found;
    tdelete(taken, &s->gaps, compare_gaps);
    *gap = *taken;
    free(taken);
    s->gap_count--;
    return true;
}

static void add_fresh(nl_buffer *fresh, uint64_t from, uint64_t to)
{
    if (fresh != NULL && from < to)
        nl_buffer_append(fresh, (const char *)&(nl_number_range){from, to}, sizeof(nl_number_range));
}

static int compare_ranges(const void *a, const void *b)
{
    const nl_number_range *left = a, *right = b;
    return left->from < right->from ? -1 : left->from > right->from;
}

static sequence_stream *lookup_stream(const nl_sequences *s, const unsigned char *id)
{
    sequence_stream key;
    void *const root = s->streams;
    memcpy(key.id, id, sizeof key.id);
    sequence_stream *const *found = tfind(&key, &root, compare_streams);
    return found != NULL ? *found : NULL;
}

/*
 * Returns the stream. Adds an unknown stream, which then begins at number. Returns NULL if the set is full or memory
 * runs out.
 */
static sequence_stream *find_stream(nl_sequences *s, const unsigned char *id, uint64_t number)
{
    if (s->latest != NULL && memcmp(s->latest->id, id, NL_BLOCK_STREAM_SIZE) == 0)
        return s->latest;
    sequence_stream *stream = lookup_stream(s, id);
    if (stream != NULL)
        return s->latest = stream;
    if (s->stream_count >= SEQUENCES_STREAMS_MAX) {
        s->incomplete = true;
        return NULL;
    }
    stream = malloc(sizeof *stream);
    if (stream != NULL) {
        *stream = (sequence_stream){.low = number, .next = number, .low_ns = INT64_MAX, .next_ns = INT64_MIN};
        memcpy(stream->id, id, sizeof stream->id);
    }
    if (stream == NULL || tsearch(stream, &s->streams, compare_streams) == NULL) {
        free(stream);
        note_memory_failed(s);
        return NULL;
    }
    s->stream_count++;
    return s->latest = stream;
}

/*
 * Adds the numbers of range; its from_ns and to_ns are the times of the first and last record. Appends the new numbers
 * to fresh, in any order, and returns their count.
 */
static uint64_t cover(nl_sequences *s, sequence_stream *stream, const sequence_gap *range, nl_buffer *fresh)
{
    sequence_gap gap;
    uint64_t from = range->from, to = range->to, count = 0;
    while (sequences_remove_gap(s, range, &gap)) {
        uint64_t begin = gap.from > from ? gap.from : from, end = gap.to < to ? gap.to : to;
        add_gap_between(s, &gap, gap.from, begin, gap.from_ns, range->from_ns);
        add_gap_between(s, &gap, end, gap.to, range->to_ns, gap.to_ns);
        add_fresh(fresh, begin, end);
        count += end - begin;
    }
    if (from < stream->low) {
        uint64_t end = to < stream->low ? to : stream->low;
        add_gap_between(s, range, to, stream->low, range->to_ns, stream->low_ns);
        add_fresh(fresh, from, end);
        count += end - from;
        stream->low = from;
        stream->low_ns = range->from_ns;
    }
    if (to > stream->next) {
        uint64_t begin = from > stream->next ? from : stream->next;
        add_gap_between(s, range, stream->next, from, stream->next_ns, range->from_ns);
        add_fresh(fresh, begin, to);
        count += to - begin;
        stream->next = to;
        stream->next_ns = range->to_ns;
    }
    return count;
}

void nl_sequences_add(nl_sequences *s, const nl_block_header *h, const char *source, nl_sequences_news *news)
{
    uint64_t first = h->first_sequence, end = first + h->record_count;
    uint64_t lost = h->lost < first ? h->lost : first;
    if (end < first)
        end = UINT64_MAX;
    sequence_stream *stream = find_stream(s, h->stream, first - lost);
    news->followed = stream != NULL && !s->incomplete;
    news->dropped = lost;
    if (stream == NULL)
        return;
    bool is_first = stream->low_ns == INT64_MAX;
    int64_t record_from_ns = h->record_count > 0 ? h->min_time_ns : h->lost_to_ns;
    int64_t record_to_ns = h->record_count > 0 ? h->max_time_ns : h->lost_to_ns;
    if (h->record_count == 0 && lost == 0) /* the block has no times */
        record_from_ns = record_to_ns = first < stream->low ? stream->low_ns : stream->next_ns;
    if (is_first) {
        stream->low_ns = lost > 0 ? h->lost_from_ns : record_from_ns;
        stream->next_ns = record_to_ns;
    }
    sequence_gap range = {.source = intern_source(s, source)};
    memcpy(range.id, h->stream, sizeof range.id);
    /* The range begins with the dropped numbers, so that it adjoins the previous records. */
    range.from = first - lost;
    range.to = first;
    range.from_ns = h->lost_from_ns;
    range.to_ns = h->lost_to_ns;
    news->dropped = lost > 0 ? cover(s, stream, &range, NULL) : 0;
    range.from = first;
    range.to = end;
    range.from_ns = record_from_ns;
    range.to_ns = record_to_ns;
    cover(s, stream, &range, news->fresh);
    if (news->fresh == NULL)
        return;
    nl_number_range *fresh = (nl_number_range *)news->fresh->data;
    size_t count = news->fresh->size / sizeof *fresh;
    if (count > 1)
        qsort(fresh, count, sizeof *fresh, compare_ranges);
    for (size_t i = 0; i < count; i++) {
        fresh[i].from -= first;
        fresh[i].to -= first;
    }
    news->followed = !s->incomplete;
}

void nl_sequences_expect(nl_sequences *s, const unsigned char *id, uint64_t from, int64_t from_ns, const char *source)
{
    sequence_stream *stream = lookup_stream(s, id);
    if (stream == NULL || from >= stream->low)
        return;
    sequence_gap range = {.from = from, .to = from, .from_ns = from_ns, .to_ns = from_ns};
    memcpy(range.id, id, sizeof range.id);
    range.source = intern_source(s, source);
    cover(s, stream, &range, NULL);
}

void nl_sequences_pass_over(nl_sequences *s)
{
    s->passed_over = true;
}

void nl_sequences_await(nl_sequences *s, bool begins)
{
    if (begins)
        s->awaited++;
    else
        s->awaited--;
}

/* ---- missing numbers ---- */

typedef struct gap_listing {
    void (*function)(void *user, const nl_lost *what);
    void *user;
} gap_listing;

static void list_gap(const void *node, VISIT visit, void *user)
{
    if (visit != postorder && visit != leaf)
        return;
    const gap_listing *listing = user;
    const sequence_gap *gap = *(sequence_gap *const *)node;
    nl_lost lost = {.source = gap->source,
                    .count = gap->to - gap->from,
                    .numbers = {gap->from, gap->to},
                    .from_ns = gap->from_ns,
                    .to_ns = gap->to_ns};
    memcpy(lost.stream, gap->id, sizeof lost.stream);
    listing->function(listing->user, &lost);
}

void nl_sequences_list_missing(const nl_sequences *s, void (*function)(void *user, const nl_lost *what), void *user)
{
    if (!s->passed_over && s->awaited == 0)
        twalk_r(s->gaps, list_gap, &(gap_listing){function, user});
}

bool nl_sequences_is_complete(const nl_sequences *s)
{
    return !s->incomplete;
}

bool nl_sequences_get(const nl_sequences *s, const unsigned char stream[16], uint64_t *next, int64_t *latest_ns)
{
    const sequence_stream *found = lookup_stream(s, stream);
    if (found == NULL)
        return false;
    *next = found->next;
    *latest_ns = found->next_ns;
    return true;
}
