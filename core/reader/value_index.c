#include "config.h"

#include "reader/value_index.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "record/crc32c.h"
#include "record/varint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER = 52, /* size of a header without the field names */
    HEADER_MAX = HEADER + NL_VALUE_FIELDS_MAX * (NL_VALUE_NAME_MAX + 1),
    AT_SUM = 48,
    DIRECTORY_ENTRY = 8,
    BUCKET = 128, /* minimum average number of entries of a bucket if there are several buckets */
    REMAINDER_MAX = 16,
    REMAINDER_MIN = 1,
    BUCKET_BITS_MAX = 16,
    RICE_MAX = 31,
    WINDOW = 56,         /* number of bits that can be read at once from any position */
    WHOLE_OPERANDS = 32, /* with more operands, a whole segment is read at once */
};

static const char magic[4] = {'N', 'L', 'V', '1'};

char *nl_value_index_name(const char *path)
{
    char *name;
    return asprintf(&name, "%s" NL_VALUE_INDEX_SUFFIX, path) >= 0 ? name : NULL;
}

/* Returns a checksum of the pieces, which changes when the file or its time index changes. */
static uint32_t sum_pieces(const nl_time_index *index, size_t first, size_t count)
{
    uint32_t sum = index->sum;
    for (size_t i = first; i < first + count; i++) {
        char bytes[12];
        nl_le64_put(bytes, index->pieces[i].end);
        nl_le32_put(bytes + 8, index->pieces[i].tail);
        sum = nl_crc32c(sum, bytes, sizeof bytes);
    }
    return sum;
}

static uint32_t sum_bucket(uint32_t segment_sum, uint32_t bucket, const char *data, uint32_t size)
{
    char bytes[8];
    nl_le32_put(bytes, bucket);
    nl_le32_put(bytes + 4, size);
    return nl_crc32c(nl_crc32c(segment_sum, bytes, sizeof bytes), data, size);
}

/* Returns the number of bits that can represent the numbers below count. */
static unsigned bits_for(size_t count)
{
    return count > 1 ? 64 - (unsigned)__builtin_clzll(count - 1) : 0;
}

/* ---- writing ---- */

typedef struct encoding {
    unsigned bucket_bits, remainder_bits, piece_bits, rice_bits;
    const uint64_t *sorted; /* entries, ordered by bucket */
    uint32_t *ends;         /* index after the last entry of each bucket */
} encoding;

static unsigned packed_bits(const encoding *e)
{
    return e->remainder_bits + e->piece_bits;
}

/* Returns the entry as it is stored in its bucket. */
static uint32_t packed_entry(const encoding *e, uint64_t entry)
{
    uint64_t remainder = entry << e->bucket_bits >> (64 - e->remainder_bits);
    return (uint32_t)(remainder << e->piece_bits | (entry & 0xffff));
}

/* Chooses the parameter of the Rice code: about the logarithm of the mean difference between successive entries of a
 * bucket. */
static void choose_rice_bits(encoding *e, size_t entry_count)
{
    const size_t mean = entry_count >> e->bucket_bits;
    const uint64_t gap = (UINT64_C(1) << packed_bits(e)) / (mean > 0 ? mean : 1) * 11 / 16;
    e->rice_bits = gap > 1 ? 63 - (unsigned)__builtin_clzll(gap) : 0;
    e->rice_bits = e->rice_bits < RICE_MAX ? e->rice_bits : RICE_MAX;
}

/* Sorts the entries by bucket, with a counting sort. Returns the sorted entries, or NULL. */
static uint64_t *sort_by_bucket(encoding *e, const uint64_t *entries, size_t count)
{
    const size_t buckets = (size_t)1 << e->bucket_bits;
    const unsigned shift = 63 - e->bucket_bits; /* in two steps, because a shift by 64 is undefined */
    uint64_t *sorted = nl_memory_check(malloc((count + 1) * sizeof *sorted));
    e->ends = nl_memory_check(calloc(buckets + 1, sizeof *e->ends));
    if (sorted == NULL || e->ends == NULL) {
        free(sorted);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        e->ends[(entries[i] >> 1 >> shift) + 1]++;
    for (size_t b = 1; b <= buckets; b++)
        e->ends[b] += e->ends[b - 1];
    for (size_t i = 0; i < count; i++)
        sorted[e->ends[entries[i] >> 1 >> shift]++] = entries[i];
    return sorted;
}

static int compare_packed(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the entries of a bucket. A bucket is much larger than the average only if a client has chosen values whose keys
 * collide. */
static void sort_packed(uint32_t *entries, size_t count)
{
    if (count > 8 * BUCKET) {
        qsort(entries, count, sizeof *entries, compare_packed);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const uint32_t entry = entries[i];
        size_t place = i;
        for (; place > 0 && entries[place - 1] > entry; place--)
            entries[place] = entries[place - 1];
        entries[place] = entry;
    }
}

typedef struct bit_writer {
    nl_buffer *out;
    uint64_t bits;
    unsigned held;
} bit_writer;

/* Appends at most WINDOW bits, lowest first. The buffer has enough space. */
static void put_bits(bit_writer *w, uint64_t bits, unsigned count)
{
    w->bits |= bits << w->held;
    for (w->held += count; w->held >= 8; w->held -= 8, w->bits >>= 8)
        w->out->data[w->out->size++] = (char)w->bits;
}

static void put_ones(bit_writer *w, uint64_t count)
{
    for (; count > 32; count -= 32)
        put_bits(w, UINT32_MAX, 32);
    put_bits(w, (UINT64_C(1) << count) - 1, (unsigned)count);
}

/* Appends the entries of a bucket, without duplicates. The buffer has enough space. */
static void put_bucket(const encoding *e, const uint64_t *entries, size_t count, uint32_t *scratch, nl_buffer *out)
{
    bit_writer w = {.out = out};
    uint64_t next = 0; /* smallest possible value of the next entry */
    for (size_t i = 0; i < count; i++)
        scratch[i] = packed_entry(e, entries[i]);
    sort_packed(scratch, count);
    for (size_t i = 0; i < count; i++) {
        if (scratch[i] < next)
            continue;
        const uint64_t gap = scratch[i] - next;
        put_ones(&w, gap >> e->rice_bits);
        put_bits(&w, 0, 1);
        put_bits(&w, gap & ((UINT64_C(1) << e->rice_bits) - 1), e->rice_bits);
        next = (uint64_t)scratch[i] + 1;
    }
    if (w.held > 0)
        put_ones(&w, 8 - w.held);
}

static size_t put_header(const nl_time_index *index, size_t first, size_t count, const nl_value_fields *fields,
                         const encoding *e, char *header)
{
    char *at = header + HEADER;
    for (size_t i = 0; i < fields->count; i++) {
        size_t size = strlen(fields->names[i]);
        *at++ = (char)size;
        memcpy(at, fields->names[i], size);
        at += size;
    }
    memcpy(header, magic, sizeof magic);
    nl_le64_put(header + 8, nl_time_index_start(index, first));
    nl_le64_put(header + 16, index->pieces[first + count - 1].end);
    nl_le32_put(header + 24, (uint32_t)first);
    nl_le32_put(header + 28, (uint32_t)count);
    nl_le32_put(header + 32, (uint32_t)(at - header - HEADER) | (uint32_t)e->rice_bits << 24);
    header[40] = (char)e->bucket_bits;
    header[41] = (char)e->remainder_bits;
    header[42] = (char)e->piece_bits;
    header[43] = (char)fields->count;
    nl_le32_put(header + 44, sum_pieces(index, first, count));
    return (size_t)(at - header);
}

static uint32_t sum_header(const char *header, size_t names_size)
{
    return nl_crc32c(nl_crc32c(0, header, AT_SUM), header + HEADER, names_size);
}

static bool put_segment(const nl_time_index *index, size_t first, size_t count, const nl_value_fields *fields,
                        const encoding *e, size_t entry_count, nl_buffer *out)
{
    const size_t buckets = (size_t)1 << e->bucket_bits, begin = out->size;
    const size_t most = HEADER + NL_VALUE_FIELDS_MAX * (NL_VALUE_NAME_MAX + 1) + (buckets + 1) * DIRECTORY_ENTRY +
                        entry_count * 5 + buckets * ((UINT64_C(1) << packed_bits(e) >> e->rice_bits) / 8 + 2);
    uint32_t *scratch = nl_memory_check(malloc((entry_count + 1) * sizeof *scratch));
    if (scratch == NULL || !nl_buffer_reserve(out, most)) {
        free(scratch);
        return false;
    }
    const size_t names_end = put_header(index, first, count, fields, e, out->data + begin);
    const size_t directory = begin + names_end, data = directory + (buckets + 1) * DIRECTORY_ENTRY;
    out->size = data;
    for (size_t b = 0; b <= buckets; b++) {
        nl_le32_put(out->data + directory + b * DIRECTORY_ENTRY, (uint32_t)(out->size - data));
        const uint32_t from = b > 0 ? e->ends[b - 1] : 0;
        if (b < buckets)
            put_bucket(e, e->sorted + from, e->ends[b] - from, scratch, out);
    }
    free(scratch);
    nl_le32_put(out->data + begin + 4, (uint32_t)(out->size - begin));
    nl_le32_put(out->data + begin + 36, (uint32_t)(out->size - data));
    const uint32_t sum = sum_header(out->data + begin, names_end - HEADER);
    nl_le32_put(out->data + begin + AT_SUM, sum);
    for (uint32_t b = 0; b <= buckets; b++) {
        char *entry = out->data + directory + b * DIRECTORY_ENTRY;
        const uint32_t from = nl_le32_get(entry), to = b < buckets ? nl_le32_get(entry + DIRECTORY_ENTRY) : from;
        nl_le32_put(entry + 4, sum_bucket(sum, b, out->data + data + from, to - from));
    }
    return true;
}

/* Returns the approximate size of a segment whose entries have no duplicates. */
static uint64_t estimate_size(const encoding *e, size_t entry_count)
{
    return ((uint64_t)entry_count * (e->rice_bits * 8 + 13) >> 6) + (DIRECTORY_ENTRY << e->bucket_bits);
}

/* Encodes a segment with the largest remainder for which its size is at most `share`. */
static bool put_within(const nl_time_index *index, size_t first, size_t count, const nl_value_fields *fields,
                       encoding *e, size_t entry_count, uint64_t share, nl_buffer *out)
{
    const size_t begin = out->size;
    for (e->remainder_bits = REMAINDER_MAX; e->remainder_bits >= REMAINDER_MIN; e->remainder_bits--) {
        choose_rice_bits(e, entry_count);
        /* Duplicate entries make the estimate too large, but rarely by more than a factor of 2. */
        if (estimate_size(e, entry_count) > 2 * share)
            continue;
        out->size = begin;
        if (!put_segment(index, first, count, fields, e, entry_count, out))
            break;
        if (out->size - begin <= share && out->size - begin <= NL_VALUE_SEGMENT_MAX)
            return true;
    }
    out->size = begin;
    return false;
}

bool nl_value_index_encode(const nl_time_index *index, size_t first, size_t count, const nl_value_fields *fields,
                           const uint64_t *entries, size_t entry_count, nl_buffer *out)
{
    if (count == 0 || count > NL_VALUE_PIECES_MAX || entry_count > NL_VALUE_ENTRIES_MAX)
        return false;
    const uint64_t size = index->pieces[first + count - 1].end - nl_time_index_start(index, first);
    encoding e = {.bucket_bits = bits_for(entry_count / BUCKET)};
    e.bucket_bits = e.bucket_bits > 0 ? e.bucket_bits - 1 : 0;
    e.bucket_bits = e.bucket_bits < BUCKET_BITS_MAX ? e.bucket_bits : BUCKET_BITS_MAX;
    e.piece_bits = bits_for(count);
    uint64_t *sorted = sort_by_bucket(&e, entries, entry_count);
    e.sorted = sorted;
    bool done = sorted != NULL && put_within(index, first, count, fields, &e, entry_count, size / NL_VALUE_SHARE, out);
    free(sorted);
    free(e.ends);
    return done;
}

/* ---- reading ---- */

static bool parse_names(const char *at, size_t size, size_t count, nl_value_fields *fields)
{
    *fields = (nl_value_fields){0};
    for (const char *end = at + size; at < end;) {
        size_t name = (unsigned char)*at++;
        if (name > (size_t)(end - at) || !nl_value_fields_add(fields, at, name))
            return false;
        at += name;
    }
    return fields->count == count;
}

/* Opens the index of the file at `path`. Returns a descriptor that the caller closes, or -1 on failure. */
static int open_value_index(const char *path)
{
    struct stat status;
    char *name = nl_value_index_name(path);
    int fd = name != NULL ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    free(name);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return fd;
}

/* Reads the header of the segment at an offset, with the names of its fields. Returns false if the header is damaged.
 */
static bool read_segment_header(int fd, uint64_t at, char header[HEADER_MAX], nl_value_segment *s)
{
    if (!nl_read_all_at(fd, header, HEADER, at) || memcmp(header, magic, sizeof magic) != 0)
        return false;
    const size_t names = nl_le32_get(header + 32) & 0xffffff;
    if (names > HEADER_MAX - HEADER || !nl_read_all_at(fd, header + HEADER, names, at + HEADER))
        return false;
    *s = (nl_value_segment){.at = at,
                            .size = nl_le32_get(header + 4),
                            .begin = nl_le64_get(header + 8),
                            .first = nl_le32_get(header + 24),
                            .count = nl_le32_get(header + 28),
                            .buckets_size = nl_le32_get(header + 36),
                            .rice_bits = (unsigned char)header[35],
                            .bucket_bits = (unsigned char)header[40],
                            .remainder_bits = (unsigned char)header[41],
                            .piece_bits = (unsigned char)header[42],
                            .sum = nl_le32_get(header + AT_SUM),
                            .directory = HEADER + names};
    /* The checksum protects against damage, and the other checks protect against files that an attacker has created. */
    return s->sum == sum_header(header, names) && s->size <= NL_VALUE_SEGMENT_MAX && s->rice_bits <= RICE_MAX &&
           s->bucket_bits <= BUCKET_BITS_MAX && s->remainder_bits >= 1 && s->remainder_bits <= REMAINDER_MAX &&
           s->count > 0 && s->count <= NL_VALUE_PIECES_MAX && s->piece_bits == bits_for(s->count) &&
           s->size == s->directory + (((size_t)1 << s->bucket_bits) + 1) * DIRECTORY_ENTRY + s->buckets_size &&
           parse_names(header + HEADER, names, (unsigned char)header[43], &s->fields);
}

bool nl_value_index_read_segment(int fd, uint64_t at, const nl_time_index *index, nl_value_segment *s)
{
    char header[HEADER_MAX];
    return read_segment_header(fd, at, header, s) && s->first <= index->count && s->count <= index->count - s->first &&
           s->begin == nl_time_index_start(index, s->first) &&
           nl_le64_get(header + 16) == index->pieces[s->first + s->count - 1].end &&
           nl_le32_get(header + 44) == sum_pieces(index, s->first, s->count);
}

void nl_value_index_read_fields(const char *path, nl_value_fields *fields)
{
    char header[HEADER_MAX];
    nl_value_segment s;
    int fd = open_value_index(path);
    *fields = (nl_value_fields){0};
    for (uint64_t at = 0; fd >= 0 && read_segment_header(fd, at, header, &s); at += s.size)
        for (size_t i = 0; i < s.fields.count; i++)
            nl_value_fields_add(fields, s.fields.names[i], strlen(s.fields.names[i]));
    if (fd >= 0)
        close(fd);
}

/* The bytes of a segment: in memory, or in the file. */
typedef struct segment_data {
    int fd;
    const nl_value_segment *segment;
    nl_buffer whole;  /* the whole segment; if empty, the parts are read from the file */
    nl_buffer bucket; /* the latest bucket */
} segment_data;

static bool segment_data_get(const segment_data *d, uint64_t offset, char *to, size_t size)
{
    if (d->whole.size == 0)
        return nl_read_all_at(d->fd, to, size, d->segment->at + offset);
    memcpy(to, d->whole.data + offset, size);
    return true;
}

static bool segment_data_load(segment_data *d)
{
    if (!nl_buffer_reserve(&d->whole, d->segment->size) ||
        !nl_read_all_at(d->fd, d->whole.data, d->segment->size, d->segment->at))
        return false;
    d->whole.size = d->segment->size;
    return true;
}

static void segment_data_free(segment_data *d)
{
    nl_buffer_free(&d->whole);
    nl_buffer_free(&d->bucket);
}

/* Reads and verifies a bucket. Returns false if it is damaged. */
static bool get_bucket(segment_data *d, uint32_t bucket)
{
    const nl_value_segment *s = d->segment;
    char entries[2 * DIRECTORY_ENTRY];
    if (!segment_data_get(d, s->directory + (size_t)bucket * DIRECTORY_ENTRY, entries, sizeof entries))
        return false;
    const uint32_t from = nl_le32_get(entries), to = nl_le32_get(entries + DIRECTORY_ENTRY);
    if (from > to || to > s->buckets_size || !nl_buffer_reserve(&d->bucket, (size_t)(to - from) + 8))
        return false;
    memset(d->bucket.data + (to - from), 0, 8);
    d->bucket.size = to - from;
    return segment_data_get(d, s->size - s->buckets_size + from, d->bucket.data, to - from) &&
           nl_le32_get(entries + 4) == sum_bucket(s->sum, bucket, d->bucket.data, to - from);
}

/*
 * Reads the difference between the previous entry and the next entry. The difference is encoded at the bit offset *bit
 * in the bucket. Advances *bit. Returns false at the end of the bucket.
 */
static bool get_gap(const nl_buffer *bucket, unsigned rice_bits, size_t *bit, uint64_t *gap)
{
    const size_t end = bucket->size * 8;
    uint64_t ones = 0;
    unsigned run;
    do {
        if (*bit >= end)
            return false;
        const uint64_t next = nl_le64_get(bucket->data + *bit / 8) >> *bit % 8;
        run = (unsigned)__builtin_ctzll(~next | UINT64_C(1) << WINDOW);
        ones += run;
        *bit += run;
    } while (run == WINDOW);
    *bit += 1;
    if (*bit + rice_bits > end)
        return false;
    *gap = ones << rice_bits | (nl_le64_get(bucket->data + *bit / 8) >> *bit % 8 & ((UINT64_C(1) << rice_bits) - 1));
    *bit += rice_bits;
    return true;
}

/* Sets found[piece] for the pieces in which a key may occur. Returns false if the bucket is damaged. */
static bool find_key(segment_data *d, uint64_t key, bool *found)
{
    const nl_value_segment *s = d->segment;
    if (!get_bucket(d, (uint32_t)(key >> 1 >> (63 - s->bucket_bits))))
        return false;
    const uint64_t remainder = key << s->bucket_bits >> (64 - s->remainder_bits);
    uint64_t gap, next = 0;
    for (size_t bit = 0; get_gap(&d->bucket, s->rice_bits, &bit, &gap);) {
        const uint64_t entry = next + gap;
        const size_t piece = entry & ((UINT64_C(1) << s->piece_bits) - 1);
        if (entry >> s->piece_bits > remainder)
            break;
        if (entry >> s->piece_bits == remainder && piece < s->count)
            found[piece] = true;
        next = entry + 1;
    }
    return true;
}

bool nl_value_index_verify_segment(int fd, const nl_value_segment *segment)
{
    segment_data d = {.fd = fd, .segment = segment};
    bool good = segment_data_load(&d);
    for (uint32_t b = 0; good && b < (UINT32_C(1) << segment->bucket_bits); b++)
        good = get_bucket(&d, b);
    segment_data_free(&d);
    return good;
}

struct nl_value_search {
    int fd;
    uint64_t at; /* offset of the next segment */
    bool any;    /* pieces were found in which no record can match */
    const nl_filter *filter;
    nl_filter_equality tests[NL_FILTER_TESTS_MAX];
    size_t test_count;
    size_t operands; /* number of operands of all tests */
    bool *found;     /* for each test and piece of a segment, whether the test may be true */
};

static bool has_field(const nl_value_fields *fields, nl_string name)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strlen(fields->names[i]) == name.size && memcmp(fields->names[i], name.data, name.size) == 0)
            return true;
    return false;
}

/* Sets found[piece] for the pieces in which a test may be true. Returns false if this is unknown. */
static bool search_test(segment_data *d, const nl_value_search *v, const nl_filter_equality *test, bool *found)
{
    if (!has_field(&d->segment->fields, test->name))
        return false;
    const uint64_t seed = nl_value_seed(test->name);
    for (size_t i = 0; i < test->operand_count; i++)
        if (!find_key(d, nl_value_key_of_operand(seed, v->filter, test->first_operand + i), found))
            return false;
    return true;
}

/* Sets skip[i] to true if piece i is in the segment and cannot match. Returns whether there is such a piece. */
static bool search_segment(const nl_value_search *v, const nl_value_segment *s, bool *skip)
{
    segment_data d = {.fd = v->fd, .segment = s};
    bool impossible[NL_FILTER_TESTS_MAX] = {false}, known = false, any = false;
    if (v->operands > WHOLE_OPERANDS)
        segment_data_load(&d); /* after a failure, the parts are read one by one */
    for (size_t t = 0; t < v->test_count; t++) {
        bool *row = v->found + t * NL_VALUE_PIECES_MAX;
        memset(row, 0, s->count * sizeof *row);
        if (search_test(&d, v, &v->tests[t], row))
            known = true;
        else
            memset(row, true, s->count * sizeof *row);
    }
    for (uint32_t i = 0; known && i < s->count; i++) {
        for (size_t t = 0; t < v->test_count; t++)
            impossible[v->tests[t].test] = !v->found[t * NL_VALUE_PIECES_MAX + i];
        if (!nl_filter_may_match(v->filter, impossible))
            any = skip[s->first + i] = true;
    }
    segment_data_free(&d);
    return any;
}

nl_value_search *nl_value_search_open(const char *path, const nl_filter *filter)
{
    nl_value_search *v = nl_memory_check(calloc(1, sizeof *v));
    if (v == NULL)
        return NULL;
    v->filter = filter;
    v->test_count = nl_filter_list_equalities(filter, v->tests, NL_FILTER_TESTS_MAX);
    for (size_t t = 0; t < v->test_count; t++)
        v->operands += v->tests[t].operand_count;
    v->fd = v->test_count > 0 ? open_value_index(path) : -1;
    if (v->fd >= 0)
        v->found = nl_memory_check(malloc(v->test_count * NL_VALUE_PIECES_MAX * sizeof *v->found));
    if (v->found != NULL)
        return v;
    nl_value_search_close(v);
    return NULL;
}

bool nl_value_search_next(nl_value_search *v, const nl_time_index *index, bool *skip)
{
    nl_value_segment segment;
    if (!nl_value_index_read_segment(v->fd, v->at, index, &segment))
        return false;
    v->any = search_segment(v, &segment, skip) || v->any;
    v->at += segment.size;
    return true;
}

bool nl_value_search_has_found(const nl_value_search *v)
{
    return v->any;
}

void nl_value_search_close(nl_value_search *v)
{
    if (v == NULL)
        return;
    if (v->fd >= 0)
        close(v->fd);
    free(v->found);
    free(v);
}
