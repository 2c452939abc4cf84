/*
 * Decodes a log in the binary format in pieces, like the target `decoder`. First corrects the checksum of every block.
 * Otherwise, decoders would reject nearly all mutated blocks at once.
 */
#include "decoding.h"

#include "record/block_read.h"

/* Offsets in a block's header. All integers are little-endian. */
enum { HEADER_SIZE_AT = 4, CRC_AT = 8, STORED_SIZE_AT = 12, HEADER_MIN = 96 };

static size_t get(const uint8_t *at, size_t bytes)
{
    size_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* CRC-32C, bit by bit. Independent of the library's function, so that the target also checks that function. */
static uint32_t crc32c(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

/* Corrects the checksum of the block at the start of log. Returns the block's size, or 0 if the block is incomplete. */
static size_t mend_block(uint8_t *log, size_t size)
{
    if (size < HEADER_MIN || memcmp(log, "NLB1", 4) != 0)
        return 0;
    size_t block = get(log + HEADER_SIZE_AT, 2) + get(log + STORED_SIZE_AT, 4);
    if (block < HEADER_MIN || block > size)
        return 0;
    memset(log + CRC_AT, 0, 4);
    uint32_t crc = crc32c(log, block);
    for (size_t i = 0; i < 4; i++)
        log[CRC_AT + i] = (uint8_t)(crc >> 8 * i);
    return block;
}

/* Checks that a check of a block without decoding has the same result as a check with decoding. */
static void check_block(const uint8_t *block, size_t size)
{
    nl_block_header header;
    nl_block_reader checked = {0}, read = {0};
    const char *data = (const char *)block;
    if (nl_block_parse_header(data, size, &header) != NL_OK || nl_block_open(&read, &header, data) != NL_OK) {
        nl_block_reader_free(&read);
        return;
    }
    fuzz_expect(nl_block_open(&checked, &header, data) == NL_OK, "a block opens again");
    nl_record *record = nl_record_new();
    nl_status status;
    while ((status = nl_block_next(&read, record)) == NL_OK)
        ;
    uint64_t expanded;
    fuzz_expect(!nl_block_check(&checked, &expanded) || (status == NL_END && expanded >= read.expanded),
                "a block that was checked can be read");
    nl_record_free(record);
    nl_block_reader_free(&read);
    nl_block_reader_free(&checked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FUZZ_CHOICES)
        return 0;
    size -= FUZZ_CHOICES;
    uint8_t *log = (uint8_t *)fuzz_copy(data + FUZZ_CHOICES, size);
    for (size_t at = 0, block; at < size; at += block == 0 ? 1 : block) {
        block = mend_block(log + at, size - at);
        if (block > 0)
            check_block(log + at, block);
    }
    fuzz_check_decoding(data, log, size);
    free(log);
    return 0;
}
