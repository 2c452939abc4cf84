/* The limits of doc/binary-format.md: readers reject blocks beyond them, and no writer makes such a block. */
#include "text_support.h"

#include "record/block_read.h"
#include "record/block_write.h"
#include "record/encoder.h"
#include "base/buffer.h"

#include <unistd.h>
#include <zstd.h>

static const nl_block_identity no_stream;

/* ---- blocks made without the encoder ---- */

static void append_byte(nl_buffer *out, unsigned byte)
{
    nl_buffer_append(out, &(char){(char)byte}, 1);
}

static void append_varint(nl_buffer *out, uint64_t value)
{
    char bytes[NL_VARINT_SIZE];
    nl_buffer_append(out, bytes, (size_t)(nl_varint_put(bytes, value) - bytes));
}

static void append_sources(nl_buffer *out, size_t count)
{
    append_varint(out, count);
    for (size_t i = 0; i < count; i++)
        nl_buffer_append(out, "\1h\1p", 4);
}

static void append_shape(nl_buffer *out, size_t field_count)
{
    nl_buffer_append(out, "\0\7\1E", 4);
    append_varint(out, field_count);
    for (size_t i = 0; i < field_count; i++)
        nl_buffer_append(out, "\3\1N", 3);
}

/* Returns the payload of one record of the first of `shapes` shapes, each with `fields` fields. */
static nl_buffer payload_of(size_t sources, size_t shapes, size_t fields)
{
    nl_buffer payload = {0};
    append_sources(&payload, sources);
    append_varint(&payload, shapes);
    for (size_t i = 0; i < shapes; i++)
        append_shape(&payload, fields);
    append_varint(&payload, 0);
    append_varint(&payload, 0);
    for (size_t i = 0; i < fields; i++)
        append_byte(&payload, 2);
    return payload;
}

/* Returns a payload of records that repeat one string of that size. */
static nl_buffer repeating_payload(size_t records, size_t size)
{
    nl_buffer payload = {0};
    char *string = malloc(size);
    assert_non_null(string);
    uint64_t seed = 5;
    random_bytes(&seed, string, size);
    append_sources(&payload, 1);
    append_varint(&payload, 1);
    nl_buffer_append(&payload, "\0\7\1E\1\1\1S", 8);
    append_varint(&payload, 0);
    append_varint(&payload, 0);
    append_varint(&payload, size + 1);
    nl_buffer_append(&payload, string, size);
    for (size_t i = 1; i < records; i++)
        nl_buffer_append(&payload, "\0\0\0", 3);
    free(string);
    return payload;
}

/* Makes a block of the payload. Frees the payload. */
static nl_buffer block_of(nl_buffer payload, uint32_t records, bool zstd)
{
    nl_buffer block = {0}, stored = {0};
    size_t raw_size = payload.size;
    if (zstd) {
        nl_buffer_reserve(&stored, ZSTD_compressBound(raw_size));
        stored.size = ZSTD_compress(stored.data, ZSTD_compressBound(raw_size), payload.data, raw_size, 3);
        assert_false(ZSTD_isError(stored.size));
        nl_buffer_free(&payload);
    } else {
        stored = payload;
    }
    char header[NL_BLOCK_HEADER_SIZE] = NL_BLOCK_MAGIC;
    nl_le16_put(header + NL_BLOCK_AT_HEADER_SIZE, NL_BLOCK_HEADER_SIZE);
    header[NL_BLOCK_AT_TYPE] = NL_BLOCK_TYPE_RECORDS;
    header[NL_BLOCK_AT_FLAGS] = zstd;
    nl_le32_put(header + NL_BLOCK_AT_STORED_SIZE, (uint32_t)stored.size);
    nl_le32_put(header + NL_BLOCK_AT_RAW_SIZE, (uint32_t)raw_size);
    nl_le32_put(header + NL_BLOCK_AT_RECORD_COUNT, records);
    nl_le32_put(header + NL_BLOCK_AT_CRC, nl_block_checksum(header, sizeof header, stored.data, stored.size));
    nl_buffer_append(&block, header, sizeof header);
    nl_buffer_append(&block, stored.data, stored.size);
    nl_buffer_free(&stored);
    return block;
}

/* Reads the blocks in bytes. Returns the number of their records. *problem is the first error; NULL without an error.
 */
static size_t read_blocks(nl_string bytes, char problem[256])
{
    nl_block_reader reader = {0};
    nl_record *record = nl_record_new();
    nl_block_header header;
    size_t count = 0;
    problem[0] = '\0';
    while (bytes.size > 0 && problem[0] == '\0') {
        assert_int_equal(nl_block_parse_header(bytes.data, bytes.size, &header), NL_OK);
        assert_int_equal(nl_block_verify(&header, bytes.data), NL_OK);
        nl_status status = nl_block_open(&reader, &header, bytes.data);
        while (status == NL_OK && (status = nl_block_next(&reader, record)) == NL_OK)
            count++;
        if (status == NL_MALFORMED)
            snprintf(problem, 256, "%s", nl_error_message());
        bytes.data += nl_block_total_size(&header);
        bytes.size -= nl_block_total_size(&header);
    }
    nl_record_free(record);
    nl_block_reader_free(&reader);
    return count;
}

/*
 * Checks that the block is rejected with a message that begins with `expected`, or that it is valid if `expected` is
 * "". Frees the block.
 */
static void assert_problem(nl_buffer block, const char *expected)
{
    char problem[256];
    read_blocks((nl_string){block.data, block.size}, problem);
    if (strncmp(problem, expected, strlen(expected)) != 0 || (expected[0] == '\0' && problem[0] != '\0'))
        fail_msg("\"%s\", not \"%s\"", problem, expected);
    nl_buffer_free(&block);
}

static void tables_are_limited(void **state)
{
    (void)state;
    assert_problem(block_of(payload_of(NL_BLOCK_SOURCES_MAX, 1, 1), 1, false), "");
    assert_problem(block_of(payload_of(NL_BLOCK_SOURCES_MAX + 1, 1, 1), 1, false),
                   "block's list of sources is damaged");
    assert_problem(block_of(payload_of(1, NL_BLOCK_SHAPES_MAX, 1), 1, false), "");
    assert_problem(block_of(payload_of(1, NL_BLOCK_SHAPES_MAX + 1, 1), 1, false), "block's list of shapes is damaged");
    assert_problem(block_of(payload_of(1, 1, NL_BLOCK_SHAPE_FIELDS_MAX), 1, false), "");
    assert_problem(block_of(payload_of(1, 1, NL_BLOCK_SHAPE_FIELDS_MAX + 1), 1, false),
                   "block's list of shapes is damaged");
    assert_problem(block_of(payload_of(1, 4, NL_BLOCK_FIELDS_MAX / 4), 1, false), "");
    assert_problem(block_of(payload_of(1, 5, NL_BLOCK_FIELDS_MAX / 4), 1, false), "block's list of shapes is damaged");
    assert_problem(block_of(payload_of(1, 1, 1), 0, false), "block has sources but no records");
}

static void compression_is_limited(void **state)
{
    (void)state;
    /* The block of the attack: one shape of 2^20 fields in a few hundred bytes. */
    nl_buffer payload = payload_of(1, 1, 1 << 20), block = block_of(payload, 0, true);
    assert_true(block.size < 1000);
    assert_problem(block, "block of several records is larger than 2 MiB");
    assert_problem(block_of(payload_of(1, 8, 8000), 1, true), "block's compression ratio exceeds 100");
}

static void expansion_is_limited(void **state)
{
    (void)state;
    static const char problem[] = "block's records are larger than its size allows";
    assert_problem(block_of(repeating_payload(100, 20000), 100, false), "");
    assert_problem(block_of(repeating_payload(110, 20000), 110, false), problem);
    assert_problem(block_of(repeating_payload(1, 8 << 20), 1, false), "");
    assert_problem(block_of(repeating_payload(2, 1200000), 2, false), problem);
    /* Records without strings count too. */
    assert_problem(block_of(repeating_payload(30000, 1), 30000, false), problem);
    assert_problem(block_of(repeating_payload(20000, 1), 20000, false), "");
    assert_problem(block_of(repeating_payload(20000, 1), 20000, true), problem);
}

/* ---- writers ---- */

/* A record that always has the same content, except for its time. */
static nl_record *steady_record(size_t string_size, size_t field_count)
{
    nl_record *record = nl_record_new();
    char *string = calloc(1, string_size + 1);
    assert_non_null(string);
    memset(string, 'x', string_size);
    nl_record_set_time(record, 1000000000);
    nl_record_set_host(record, "dolly", 5);
    nl_record_set_prog(record, "prog", 4);
    nl_record_set_event(record, "E", 1);
    for (size_t i = 0; i < field_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "F%zu", i);
        nl_record_add_string(record, name, string, string_size);
    }
    free(string);
    return record;
}

static void check_encoder(size_t records, size_t string_size, size_t field_count, int level)
{
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB, .zstd_level = level});
    nl_record *record = steady_record(string_size, field_count);
    nl_buffer bytes = {0};
    char problem[256];
    for (size_t i = 0; i < records; i++)
        assert_int_equal(nl_encoder_put(encoder, record), NL_OK);
    nl_encoder_finish(encoder, &bytes);
    assert_int_equal(read_blocks((nl_string){bytes.data, bytes.size}, problem), records);
    assert_string_equal(problem, "");
    nl_buffer_free(&bytes);
    nl_record_free(record);
    nl_encoder_free(encoder);
}

static void an_encoder_keeps_to_the_limits(void **state)
{
    (void)state;
    for (int level = 0; level <= 3; level += 3) {
        check_encoder(200000, 0, 0, level);
        check_encoder(100000, 3, 3, level);
        check_encoder(5000, 1000, 2, level);
        check_encoder(1000, 3000, 1, level);
        check_encoder(300, 30000, 1, level);
        check_encoder(5, 3 << 20, 1, level);
        check_encoder(2, 15 << 20, 1, level);
        check_encoder(20, 10, NL_BLOCK_SHAPE_FIELDS_MAX, level);
    }
}

static void many_shapes_go_into_several_blocks(void **state)
{
    (void)state;
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB});
    nl_record *record = nl_record_new();
    nl_buffer bytes = {0};
    char problem[256], name[24];
    enum { COUNT = 20000 };
    for (int i = 0; i < COUNT; i++) {
        nl_record_clear(record);
        snprintf(name, sizeof name, "h%d", i);
        nl_record_set_host(record, name, strlen(name));
        assert_int_equal(nl_encoder_put(encoder, record), NL_OK);
    }
    nl_encoder_finish(encoder, &bytes);
    assert_int_equal(read_blocks((nl_string){bytes.data, bytes.size}, problem), COUNT);
    assert_string_equal(problem, "");
    nl_buffer_free(&bytes);
    nl_record_free(record);
    nl_encoder_free(encoder);
}

/* Blocks that are passed on whole, and are compressed on the way. */
static void repacked_blocks_keep_to_the_limits(void **state)
{
    (void)state;
    nl_block_writer w = {0};
    nl_record *record = steady_record(2000, 1);
    nl_buffer plain = {0}, packed = {0};
    nl_block_header header;
    nl_block_reader reader = {0};
    uint64_t expanded;
    char problem[256];
    for (int i = 0; i < 900; i++)
        assert_true(nl_block_put(&w, record));
    nl_block_finish(&w, &no_stream, 0, &plain);
    assert_int_equal(nl_block_parse_header(plain.data, plain.size, &header), NL_OK);
    assert_int_equal(nl_block_open(&reader, &header, plain.data), NL_OK);
    assert_true(nl_block_check(&reader, &expanded));
    assert_int_equal(reader.left, 900);
    nl_block_repack(&w, (nl_string){plain.data, plain.size}, expanded, 3, &packed);
    assert_true(packed.size < plain.size);
    assert_int_equal(read_blocks((nl_string){packed.data, packed.size}, problem), 900);
    assert_string_equal(problem, "");
    nl_block_reader_free(&reader);
    nl_buffer_free(&plain);
    nl_buffer_free(&packed);
    nl_record_free(record);
    nl_block_writer_free(&w);
}

/* Events of a log whose names are much longer than their values. */
static void a_log_keeps_to_the_limits(void **state)
{
    (void)state;
    enum { FIELDS = NL_FIELDS_MAX, EVENTS = 100000, NAME_SIZE = 100 };
    char path[] = "/tmp/block_limits.XXXXXX", url[64], name[FIELDS][NAME_SIZE];
    nl_string names[FIELDS];
    nl_field values[FIELDS] = {{.type = NL_TYPE_BOOL}};
    for (size_t i = 0; i < FIELDS; i++) {
        memset(name[i], 'N', NAME_SIZE);
        name[i][NAME_SIZE - 1] = (char)('a' + i);
        names[i] = (nl_string){name[i], NAME_SIZE};
        values[i] = (nl_field){.name = names[i], .type = NL_TYPE_BOOL};
    }
    close(mkstemp(path));
    snprintf(url, sizeof url, "file:%s?format=nlb&zstd=3", path);
    nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){"E", 1}, names, FIELDS);
    nl_log *log = nl_open("prog", url);
    if (log == NULL)
        fail_msg("%s: %s", url, nl_error_message());
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    nl_event_kind_free(kind);
    nl_buffer bytes = {0};
    char piece[65536], problem[256];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        nl_buffer_append(&bytes, piece, got);
    fclose(file);
    unlink(path);
    size_t count = read_blocks((nl_string){bytes.data, bytes.size}, problem);
    assert_string_equal(problem, "");
    assert_true(count >= EVENTS);
    nl_buffer_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_limited),
        cmocka_unit_test(compression_is_limited),
        cmocka_unit_test(expansion_is_limited),
        cmocka_unit_test(an_encoder_keeps_to_the_limits),
        cmocka_unit_test(many_shapes_go_into_several_blocks),
        cmocka_unit_test(repacked_blocks_keep_to_the_limits),
        cmocka_unit_test(a_log_keeps_to_the_limits),
    };
    return cmocka_run_group_tests_name("block_limits", tests, NULL, NULL);
}
