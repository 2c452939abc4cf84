/*
 * Bounds of work per byte of input: no input may cost more units of work for each of its bytes.
 *
 * The first byte gives the kind of the rest:
 *   'b'  the payload of a block: two bytes for the number of records, then the payload. The block is read both plain
 * and compressed. 't'  text or blocks for a decoder. 'f'  an expression, a newline, and lines of records to match.
 *
 * A counter for each power of two shows libFuzzer how high the ratio is, so that it searches for higher ratios. With
 * the environment variable NL_FUZZ_WORK, the process prints the highest ratios at its end.
 */
#include "fuzz.h"

#include "filter/filter.h"
#include "reader/decoder_work.h"
#include "record/block.h"
#include "record/bytes.h"
#include "record/varint.h"

#include <zstd.h>

enum {
    FREE_WORK = 1000000,       /* units that every input may cost */
    UNITS_PER_BYTE_MAX = 6000, /* further units for each byte */
    KINDS = 3,
    LEVELS = 24, /* by the binary logarithm of the ratio */
};

__attribute__((section("__libfuzzer_extra_counters"), used)) static uint8_t counters[KINDS * LEVELS];

static double worst[KINDS];

static void print_worst(void)
{
    fprintf(stderr, "units of work for each byte: block %.0f, text %.0f, expression %.0f\n", worst[0], worst[1],
            worst[2]);
}

/* Records the cost of an input of that kind and size. */
static void note_work(int kind, uint64_t work, size_t size)
{
    uint64_t ratio = work / (size + 1);
    int level = 63 - __builtin_clzll(ratio | 1);
    counters[kind * LEVELS + (level < LEVELS ? level : LEVELS - 1)] = 1;
    worst[kind] = (double)ratio > worst[kind] ? (double)ratio : worst[kind];
    fuzz_expect(work <= FREE_WORK + UNITS_PER_BYTE_MAX * (uint64_t)size, "work is in proportion to bytes");
}

static void work_decode(int kind, const char *data, size_t size)
{
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *record;
    nl_decoder_feed(decoder, data, size);
    nl_decoder_finish(decoder);
    while (nl_decoder_next(decoder, &record) == NL_OK)
        ;
    note_work(kind, nl_decoder_work(decoder), size);
    nl_decoder_free(decoder);
}

static void decode_block(const char *stored, size_t stored_size, size_t raw_size, uint32_t records, bool zstd)
{
    nl_buffer block = {0};
    char header[NL_BLOCK_HEADER_SIZE] = NL_BLOCK_MAGIC;
    nl_le16_put(header + NL_BLOCK_AT_HEADER_SIZE, NL_BLOCK_HEADER_SIZE);
    header[NL_BLOCK_AT_TYPE] = NL_BLOCK_TYPE_RECORDS;
    header[NL_BLOCK_AT_FLAGS] = zstd;
    nl_le32_put(header + NL_BLOCK_AT_STORED_SIZE, (uint32_t)stored_size);
    nl_le32_put(header + NL_BLOCK_AT_RAW_SIZE, (uint32_t)raw_size);
    nl_le32_put(header + NL_BLOCK_AT_RECORD_COUNT, records);
    nl_le32_put(header + NL_BLOCK_AT_CRC, nl_block_checksum(header, sizeof header, stored, stored_size));
    nl_buffer_append(&block, header, sizeof header);
    nl_buffer_append(&block, stored, stored_size);
    work_decode(0, block.data, block.size);
    nl_buffer_free(&block);
}

static void try_payload(const uint8_t *data, size_t size)
{
    if (size < 2)
        return;
    uint32_t records = (uint32_t)(data[0] | data[1] << 8);
    const char *payload = (const char *)data + 2;
    size -= 2;
    decode_block(payload, size, size, records, false);
    size_t bound = ZSTD_compressBound(size);
    char *stored = malloc(bound);
    fuzz_expect(stored != NULL, "there is memory");
    size_t stored_size = ZSTD_compress(stored, bound, payload, size, 1);
    fuzz_expect(!ZSTD_isError(stored_size), "a payload can be compressed");
    decode_block(stored, stored_size, size, records, true);
    free(stored);
}

static void try_expression(const uint8_t *data, size_t size)
{
    const uint8_t *newline = memchr(data, '\n', size);
    size_t line = newline != NULL ? (size_t)(newline - data) : size;
    char *text = realloc(fuzz_copy(data, line), line + 1);
    fuzz_expect(text != NULL, "there is memory");
    text[line] = '\0';
    nl_filter *filter = nl_filter_parse(text);
    free(text);
    if (filter == NULL || newline == NULL) {
        nl_filter_free(filter);
        return;
    }
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *record;
    uint64_t work = 0;
    nl_decoder_feed(decoder, (const char *)newline + 1, size - line - 1);
    nl_decoder_finish(decoder);
    while (nl_decoder_next(decoder, &record) == NL_OK) {
        uint64_t steps = NL_FILTER_STEPS_MAX;
        bool matches;
        if (nl_filter_match(filter, record, &steps, &matches) != NL_OK)
            steps = 0;
        work += NL_FILTER_STEPS_MAX - steps;
    }
    note_work(2, work, size);
    nl_decoder_free(decoder);
    nl_filter_free(filter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    if (!begun && getenv("NL_FUZZ_WORK") != NULL)
        atexit(print_worst);
    begun = true;
    if (size == 0)
        return 0;
    if (data[0] == 'b')
        try_payload(data + 1, size - 1);
    else if (data[0] == 't')
        work_decode(1, (const char *)data + 1, size - 1);
    else if (data[0] == 'f')
        try_expression(data + 1, size - 1);
    return 0;
}
