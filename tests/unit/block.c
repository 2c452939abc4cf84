/* Tests the binary format: numbers, the checksum, round trips of blocks, and malformed blocks. */
#include "text_support.h"

#include "record/block_read.h"
#include "record/block_write.h"
#include "record/crc32c.h"
#include "base/buffer.h"

#include <math.h>

static const nl_block_identity nobody;

/* ---- numbers ---- */

static void checksums_are_those_of_the_standard(void **state)
{
    (void)state;
    unsigned char bytes[48] = {0};
    assert_int_equal(nl_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(nl_crc32c(0, "", 0), 0);
    /* RFC 3720, appendix B.4. */
    assert_int_equal(nl_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(nl_crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(nl_crc32c(0, bytes, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    assert_int_equal(nl_crc32c(0, bytes, 32), 0x113fdb5c);
    static const unsigned char command[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02};
    assert_int_equal(nl_crc32c(0, command, 48), 0xd9963a56);
}

/* Long buffers use another code path. */
static void checksums_of_many_bytes(void **state)
{
    (void)state;
    char bytes[20000];
    uint64_t seed = 8;
    random_bytes(&seed, bytes, sizeof bytes);
    for (size_t size = 3000; size < sizeof bytes; size += 977)
        for (size_t from = 0; from < 9; from++) {
            uint32_t by_table = nl_crc32c_by_table((uint32_t)size, bytes + from, size - from);
            assert_int_equal(nl_crc32c((uint32_t)size, bytes + from, size - from), by_table);
        }
}

static void checksums_are_the_same_in_pieces_and_by_table(void **state)
{
    (void)state;
    char bytes[100];
    uint64_t seed = 7;
    random_bytes(&seed, bytes, sizeof bytes);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        uint32_t whole = nl_crc32c(0, bytes, size);
        assert_int_equal(nl_crc32c_by_table(0, bytes, size), whole);
        for (size_t cut = 0; cut <= size; cut++) {
            assert_int_equal(nl_crc32c(nl_crc32c(0, bytes, cut), bytes + cut, size - cut), whole);
            assert_int_equal(nl_crc32c_by_table(nl_crc32c(0, bytes, cut), bytes + cut, size - cut), whole);
        }
    }
}

static void assert_varint(uint64_t value, size_t size)
{
    char bytes[NL_VARINT_SIZE];
    assert_ptr_equal(nl_varint_put(bytes, value), bytes + size);
    uint64_t back = ~value;
    assert_ptr_equal(nl_varint_get(bytes, bytes + size, &back), bytes + size);
    assert_true(back == value);
    for (size_t cut = 0; cut < size; cut++)
        assert_null(nl_varint_get(bytes, bytes + cut, &back));
    assert_true(nl_zigzag(nl_unzigzag(value)) == value);
}

static void numbers_come_back(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        assert_varint(((uint64_t)1 << bits) - 1, bits == 0 ? 1 : (bits + 6) / 7);
        assert_varint((uint64_t)1 << bits, bits / 7 + 1);
    }
    assert_varint(UINT64_MAX, 10);
    assert_int_equal(nl_zigzag(0), 0);
    assert_int_equal(nl_zigzag(-1), 1);
    assert_int_equal(nl_zigzag(1), 2);
    assert_true(nl_zigzag(INT64_MIN) == UINT64_MAX);
    assert_true(nl_unzigzag(UINT64_MAX - 1) == INT64_MAX);
}

static void numbers_that_are_too_long_are_refused(void **state)
{
    (void)state;
    static const char padded[] = "\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00",
                      large[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                      longer[] = "\x85\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00";
    uint64_t value = 0;
    assert_ptr_equal(nl_varint_get(padded, padded + 10, &value), padded + 10);
    assert_int_equal(value, 5);
    assert_null(nl_varint_get(large, large + 10, &value));
    assert_null(nl_varint_get(longer, longer + 11, &value));
}

/* ---- round trips ---- */

static void assert_same_value(const nl_field *a, const nl_field *b)
{
    assert_same_string(a->name, b->name);
    assert_int_equal(a->type, b->type);
    if (a->type == NL_TYPE_STRING)
        assert_same_string(a->string, b->string);
    else if (a->type == NL_TYPE_BOOL)
        assert_int_equal(a->bool_value, b->bool_value);
    else
        assert_memory_equal(&a->int_value, &b->int_value, 8); /* equal NaNs have equal bits */
}

/* An empty host, program or event counts as absent in this format. */
static void assert_same_optional(nl_string a, nl_string b)
{
    assert_int_equal(a.size, b.size);
    if (a.size > 0)
        assert_memory_equal(a.data, b.data, a.size);
    else
        assert_null(b.data);
}

/* Asserts that record b, decoded from a's block, equals a. */
static void assert_came_back(const nl_record *a, const nl_record *b)
{
    assert_true(a->time_ns == b->time_ns);
    assert_int_equal(a->level, b->level);
    assert_same_optional(a->host, b->host);
    assert_same_optional(a->prog, b->prog);
    assert_same_optional(a->event, b->event);
    assert_int_equal(a->field_count, b->field_count);
    for (size_t i = 0; i < a->field_count; i++)
        assert_same_value(&a->fields[i], &b->fields[i]);
    assert_null(b->raw.data);
}

/* Returns the header of a block. The bytes must be a valid block and nothing else. */
static nl_block_header good_header(const nl_buffer *bytes)
{
    nl_block_header header;
    nl_error_clear();
    if (nl_block_parse_header(bytes->data, bytes->size, &header) != NL_OK ||
        nl_block_verify(&header, bytes->data) != NL_OK)
        fail_msg("%s", nl_error_message());
    assert_int_equal(nl_block_total_size(&header), bytes->size);
    return header;
}

/* Asserts that the block gives exactly these records. */
static void assert_block(const nl_buffer *bytes, nl_record *const *records, size_t count)
{
    nl_block_header header = good_header(bytes);
    assert_int_equal(header.record_count, count);
    nl_block_reader reader = {0};
    assert_int_equal(nl_block_open(&reader, &header, bytes->data), NL_OK);
    nl_record *back = nl_record_new();
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        if (nl_block_next(&reader, back) != NL_OK)
            fail_msg("record %zu: %s", i, nl_error_message());
        assert_came_back(records[i], back);
        least = back->time_ns < least ? back->time_ns : least;
        most = back->time_ns > most ? back->time_ns : most;
    }
    assert_int_equal(nl_block_next(&reader, back), NL_END);
    assert_int_equal(back->field_count, 0);
    if (count > 0) {
        assert_true(header.min_time_ns == least);
        assert_true(header.max_time_ns == most);
    }
    nl_record_free(back);
    nl_block_reader_free(&reader);
}

/* Encodes the records as a block, checks it, and appends it to out. */
static void check_block(nl_block_writer *w, nl_record *const *records, size_t count, int level, nl_buffer *out)
{
    for (size_t i = 0; i < count; i++)
        assert_true(nl_block_put(w, records[i]));
    nl_buffer bytes = {0};
    nl_block_finish(w, &nobody, level, &bytes);
    assert_int_equal(nl_block_size(w), 0);
    if (count > 0)
        assert_block(&bytes, records, count);
    if (out != NULL)
        nl_buffer_append(out, bytes.data, bytes.size);
    nl_buffer_free(&bytes);
}

/* Gives a record fields of every type with special or random values. */
static void add_values(uint64_t *seed, nl_record *record, size_t count)
{
    static const int64_t ints[] = {0, 1, -1, 63, 64, -64, -65, INT64_MAX, INT64_MIN};
    static const double doubles[] = {0.0, -0.0, 1.5, INFINITY, -INFINITY, NAN, 5e-324, 1.7976931348623157e308};
    for (size_t i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof name, "F%zu.%zu", i, random_below(seed, 3));
        int64_t value = next_random(seed) & 0x100 ? ints[random_below(seed, 9)] : (int64_t)next_random(seed);
        char bytes[40];
        random_bytes(seed, bytes, sizeof bytes);
        switch ((nl_type)random_below(seed, 5)) {
        case NL_TYPE_STRING:
            nl_record_add_string(record, name, bytes, random_below(seed, sizeof bytes));
            break;
        case NL_TYPE_INT:
            nl_record_add_int(record, name, value);
            break;
        case NL_TYPE_UINT:
            nl_record_add_uint(record, name, (uint64_t)value);
            break;
        case NL_TYPE_DOUBLE:
            nl_record_add_double(record, name, doubles[random_below(seed, 8)]);
            break;
        case NL_TYPE_BOOL:
            nl_record_add_bool(record, name, value & 1);
        }
    }
}

static void records_of_every_kind_come_back(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    nl_record *records[COUNT];
    uint64_t seed = 99;
    for (size_t i = 0; i < COUNT; i++) {
        records[i] = nl_record_new();
        random_record(&seed, records[i]);
        add_values(&seed, records[i], i < 201 ? i : random_below(&seed, 4));
    }
    nl_record_set_time(records[3], INT64_MAX);
    nl_record_set_time(records[4], INT64_MIN);
    nl_block_writer w = {0};
    nl_buffer plain = {0}, packed = {0};
    check_block(&w, records, COUNT, 0, &plain);
    check_block(&w, records, COUNT, 3, &packed);
    assert_true(packed.size < plain.size);
    for (size_t i = 0; i < COUNT; i++)
        check_block(&w, records + i, 1, (int)(i % 2), NULL);
    nl_buffer_free(&plain);
    nl_buffer_free(&packed);
    nl_block_writer_free(&w);
    for (size_t i = 0; i < COUNT; i++)
        nl_record_free(records[i]);
}

static void a_level_of_ones_own_spelling_is_kept(void **state)
{
    (void)state;
    static const char *const lines[] = {"DATE=20000330112320.000000 LVL=usage", "DATE=20000330112320.000000 LVL=Info",
                                        "DATE=20000330112320.000000 LVL=Loud", "DATE=20000330112320.000000",
                                        "DATE=20000330112320.000000 LVL=Debug"};
    static const char *const texts[] = {"usage", "Usage", "Loud", NULL, "Debug"};
    nl_block_writer w = {0};
    for (size_t i = 0; i < 5; i++) {
        nl_record *record = read_line(NL_FORMAT_ULM, lines[i]);
        assert_true(nl_block_put(&w, record));
        nl_record_free(record);
    }
    nl_buffer bytes = {0};
    nl_block_finish(&w, &nobody, 0, &bytes);
    nl_block_header header = good_header(&bytes);
    nl_block_reader reader = {0};
    assert_int_equal(nl_block_open(&reader, &header, bytes.data), NL_OK);
    nl_record *back = nl_record_new();
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(nl_block_next(&reader, back), NL_OK);
        assert_int_equal(back->level, texts[i] == NULL ? NL_LEVEL_NONE : nl_level_parse(texts[i], strlen(texts[i])));
        if (texts[i] == NULL)
            assert_null(back->level_text.data);
        else
            assert_text(back->level_text, texts[i]);
    }
    nl_record_free(back);
    nl_block_reader_free(&reader);
    nl_block_writer_free(&w);
    nl_buffer_free(&bytes);
}

/* The writer expects shapes in the order in which they followed each other before. */
static void similar_shapes_in_any_order(void **state)
{
    (void)state;
    enum { TYPED = 11, COUNT = 3000 };
#define LINE(rest) "DATE=20000330112320.000000 " rest
    static const char *const lines[TYPED] = {
        LINE("HOST=h PROG=p LVL=Usage NL.EVNT=E A=1 B=2"),    LINE("HOST=i PROG=p LVL=Usage NL.EVNT=E A=1 B=2"),
        LINE("HOST=h PROG=q LVL=Usage NL.EVNT=E A=1 B=2"),    LINE("HOST=h PROG=p LVL=Debug NL.EVNT=E A=1 B=2"),
        LINE("HOST=h PROG=p LVL=Loud NL.EVNT=E A=1 B=2"),     LINE("HOST=h PROG=p NL.EVNT=E A=1 B=2"),
        LINE("HOST=h PROG=p LVL=Usage NL.EVNT=F A=1 B=2"),    LINE("HOST=h PROG=p LVL=Usage A=1 B=2"),
        LINE("HOST=h PROG=p LVL=Usage NL.EVNT=E A=1"),        LINE("HOST=h PROG=p LVL=Usage NL.EVNT=E A=1 C=2"),
        LINE("HOST=h PROG=p LVL=Usage NL.EVNT=E A=1 B=2 C=3")};
#undef LINE
    nl_record *kinds[TYPED + 1], *records[COUNT];
    for (size_t i = 0; i < TYPED; i++)
        kinds[i] = read_line(NL_FORMAT_ULM, lines[i]);
    kinds[TYPED] = read_line(NL_FORMAT_ULM, "DATE=20000330112320.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E A=1");
    nl_record_add_int(kinds[TYPED], "B", 2);
    nl_block_writer w = {0};
    uint64_t seed = 28;
    for (size_t i = 0; i < COUNT; i++) { /* each kind follows each kind, often several times */
        records[i] = kinds[random_below(&seed, TYPED + 1)];
        assert_true(nl_block_put(&w, records[i]));
    }
    assert_int_equal(w.shape_count, TYPED + 1);
    assert_int_equal(w.source_count, 3);
    nl_block_clear(&w);
    check_block(&w, records, COUNT, 0, NULL);
    nl_block_writer_free(&w);
    for (size_t i = 0; i <= TYPED; i++)
        nl_record_free(kinds[i]);
}

static void many_sources_and_shapes_are_put_down_once(void **state)
{
    (void)state;
    nl_block_writer w = {0};
    nl_record *record = nl_record_new();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++) {
            char text[24];
            nl_record_clear(record);
            snprintf(text, sizeof text, "host%d", i % 700);
            nl_record_set_host(record, text, strlen(text));
            snprintf(text, sizeof text, "F%d", i);
            nl_record_add_int(record, text, i);
            assert_true(nl_block_put(&w, record));
        }
        assert_int_equal(w.source_count, 700);
        assert_int_equal(w.shape_count, 2000);
    }
    nl_buffer bytes = {0};
    nl_block_finish(&w, &nobody, 1, &bytes);
    nl_block_header header = good_header(&bytes);
    nl_block_reader reader = {0};
    assert_int_equal(nl_block_open(&reader, &header, bytes.data), NL_OK);
    int count = 0;
    for (; nl_block_next(&reader, record) == NL_OK; count++)
        assert_int_equal(record->fields[0].int_value, count % 2000);
    assert_int_equal(count, 6000);
    nl_block_reader_free(&reader);
    nl_block_writer_free(&w);
    nl_buffer_free(&bytes);
    nl_record_free(record);
}

static nl_string view(const char *text)
{
    return (nl_string){text, strlen(text)};
}

/* Encodes records in the same way as a log's loop, with times before the first time. */
static void records_may_be_appended_directly(void **state)
{
    (void)state;
    static const int64_t times[] = {1000, 1500, 900, INT64_MIN, 2000};
    nl_block_writer w = {0};
    unsigned source = nl_block_add_source(&w, view("h"), view("p"));
    unsigned shape = nl_block_add_shape(&w, &(nl_block_shape){.source = source,
                                                              .level = NL_USAGE,
                                                              .event = view("Write"),
                                                              .names = (nl_string[]){view("SEND.SZ"), view("a b")},
                                                              .types = (nl_type[]){NL_TYPE_INT, NL_TYPE_STRING},
                                                              .field_count = 2});
    for (int i = 0; i < 5; i++) {
        nl_buffer_reserve(&w.records, NL_BLOCK_RECORD_HEAD + 2 * NL_VARINT_SIZE + 3);
        char *at = nl_block_begin_record(&w, w.records.data + w.records.size, shape, times[i]);
        uint64_t *before = nl_block_before(&w, shape);
        at = nl_block_put_number(at, (uint64_t)(int64_t)(i - 2), &before[0], false);
        at = nl_block_put_text(at, w.records.data, "xyz", 3, &before[1], false);
        w.records.size = (size_t)(at - w.records.data);
    }
    nl_block_identity identity = {
        .stream = "0123456789abcde", .first_sequence = 77, .lost = 3, .lost_from_ns = -5, .lost_to_ns = 6};
    nl_buffer bytes = {0};
    nl_block_finish(&w, &identity, 0, &bytes);
    nl_block_header header = good_header(&bytes);
    assert_true(nl_block_has_stream(&header));
    assert_memory_equal(header.stream, identity.stream, 16);
    assert_int_equal(header.first_sequence, 77);
    assert_int_equal(header.lost, 3);
    assert_int_equal(header.lost_from_ns, -5);
    assert_int_equal(header.lost_to_ns, 6);
    assert_true(header.min_time_ns == INT64_MIN);
    assert_int_equal(header.max_time_ns, 2000);
    nl_block_reader reader = {0};
    assert_int_equal(nl_block_open(&reader, &header, bytes.data), NL_OK);
    nl_record *record = nl_record_new();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(nl_block_next(&reader, record), NL_OK);
        assert_true(record->time_ns == times[i]);
        assert_int_equal(record->fields[0].int_value, i - 2);
        assert_field(record, 1, "a_b", "xyz");
    }
    assert_int_equal(nl_block_next(&reader, record), NL_END);
    nl_record_free(record);
    nl_block_reader_free(&reader);
    nl_block_writer_free(&w);
    nl_buffer_free(&bytes);
}

/*
 * Values that repeat or rise slowly are mixed at random with other values, so that each kind of value follows each
 * other kind.
 */
static void what_is_as_before_takes_a_byte(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    static const char *const texts[] = {"",
                                        "a",
                                        "b",
                                        "seven..",
                                        "sevens.",
                                        "fourteen bytes",
                                        "fourteen bytea",
                                        "Fourteen bytes",
                                        "seventeen bytes..",
                                        "some that are longer than the thirty-two of short ones",
                                        "Some that are longer than the thirty-two of short ones"};
    static const int64_t rises[] = {0, 1, -1, 63, 64, INT64_MAX, INT64_MIN};
    nl_record *records[COUNT];
    uint64_t seed = 17, value = 0;
    for (size_t i = 0; i < COUNT; i++) {
        value += (uint64_t)rises[random_below(&seed, 7)];
        const char *text = texts[random_below(&seed, 11)];
        records[i] = nl_record_new();
        nl_record_add_string(records[i], "TEXT", text, strlen(text));
        nl_record_add_int(records[i], random_below(&seed, 2) ? "A" : "B", (int64_t)value); /* two shapes */
        nl_record_add_uint(records[i], "U", value);
    }
    nl_block_writer w = {0};
    check_block(&w, records, COUNT, 0, NULL);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(nl_block_put(&w, records[7]));
    assert_true(nl_block_size(&w) < 100 + 5 * COUNT); /* shape, time, and three unchanged values */
    nl_block_clear(&w);
    check_block(&w, records + 9, 2, 0, NULL); /* earlier blocks have no effect */
    nl_block_writer_free(&w);
    for (size_t i = 0; i < COUNT; i++)
        nl_record_free(records[i]);
}

static void a_block_may_hold_nothing_but_loss(void **state)
{
    (void)state;
    nl_block_writer w = {0};
    nl_buffer bytes = {0};
    nl_block_finish(&w, &nobody, 1, &bytes);
    assert_int_equal(bytes.size, 0);
    nl_block_finish(&w, &(nl_block_identity){.stream = "s", .lost = 5}, 1, &bytes);
    assert_int_equal(good_header(&bytes).lost, 5);
    assert_block(&bytes, NULL, 0);
    nl_buffer_free(&bytes);
    nl_block_writer_free(&w);
}

static void what_is_too_large_is_not_put(void **state)
{
    (void)state;
    nl_block_writer w = {0};
    nl_record *record = nl_record_new(), *small = nl_record_new();
    char *bytes = calloc(1, NL_BLOCK_PAYLOAD_MAX);
    assert_non_null(bytes);
    nl_record_add_string(record, "A", bytes, NL_BLOCK_PAYLOAD_MAX);
    assert_false(nl_block_put(&w, record));
    assert_int_equal(nl_block_size(&w), 0);
    nl_record_clear(record);
    nl_record_add_string(record, "A", bytes, NL_BLOCK_PAYLOAD_MAX - 300);
    assert_true(nl_block_put(&w, record));
    assert_false(nl_block_put(&w, record));
    assert_true(nl_block_is_full(&w));
    nl_buffer out = {0};
    nl_block_finish(&w, &nobody, 0, &out);
    assert_block(&out, (nl_record *[]){record}, 1);
    nl_buffer_free(&out);
    free(bytes);
    nl_record_free(record);
    nl_record_free(small);
    nl_block_writer_free(&w);
}

/* ---- damage ---- */

/* Makes a small block of a few records. */
static nl_buffer small_block(int level)
{
    nl_block_writer w = {0};
    nl_record *record = nl_record_new();
    nl_buffer bytes = {0};
    nl_record_set_host(record, "dolly", 5);
    nl_record_set_event(record, "WriteData", 9);
    nl_record_add_int(record, "SEND.SZ", 49332);
    nl_record_add_string(record, "FILE", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 40);
    nl_record_add_double(record, "T", 1.5);
    nl_record_add_bool(record, "OK", true);
    for (int i = 0; i < 3; i++) {
        nl_record_set_time(record, 1000000 * i);
        assert_true(nl_block_put(&w, record));
    }
    nl_block_finish(&w, &nobody, level, &bytes);
    nl_block_writer_free(&w);
    nl_record_free(record);
    return bytes;
}

/* Reads all records of a block in memory of exactly its size. Returns true if the block is valid. */
static bool read_block(const char *data, size_t size, bool verify)
{
    char *copy = malloc(size > 0 ? size : 1); /* exactly the size, so that a sanitizer detects a read beyond it */
    assert_non_null(copy);
    memcpy(copy, data, size);
    nl_block_header header;
    nl_block_reader reader = {0};
    nl_record *record = nl_record_new();
    nl_status status = nl_block_parse_header(copy, size, &header);
    if (status == NL_OK && nl_block_total_size(&header) > size)
        status = NL_AGAIN;
    if (status == NL_OK && verify)
        status = nl_block_verify(&header, copy);
    if (status == NL_OK)
        status = nl_block_open(&reader, &header, copy);
    while (status == NL_OK)
        status = nl_block_next(&reader, record);
    nl_record_free(record);
    nl_block_reader_free(&reader);
    free(copy);
    return status == NL_END;
}

static void a_cut_block_asks_for_more(void **state)
{
    (void)state;
    for (int level = 0; level < 2; level++) {
        nl_buffer bytes = small_block(level);
        for (size_t cut = 0; cut < bytes.size; cut++) {
            nl_block_header header;
            nl_status status = nl_block_parse_header(bytes.data, cut, &header);
            assert_int_equal(status, cut < NL_BLOCK_HEADER_SIZE ? NL_AGAIN : NL_OK);
            if (status == NL_OK)
                assert_true(nl_block_total_size(&header) > cut);
            assert_false(read_block(bytes.data, cut, true));
        }
        assert_true(read_block(bytes.data, bytes.size, true));
        nl_buffer_free(&bytes);
    }
}

static void every_changed_bit_is_noticed(void **state)
{
    (void)state;
    for (int level = 0; level < 2; level++) {
        nl_buffer bytes = small_block(level);
        for (size_t bit = 0; bit < bytes.size * 8; bit++) {
            bytes.data[bit / 8] ^= (char)(1 << bit % 8);
            if (read_block(bytes.data, bytes.size, true))
                fail_msg("bit %zu of byte %zu changed unnoticed", bit % 8, bit / 8);
            bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        }
        nl_buffer_free(&bytes);
    }
}

/* An attacker can compute the checksum and send any payload. */
static void whatever_a_block_says_is_survived(void **state)
{
    (void)state;
    uint64_t seed = 31;
    nl_buffer bytes = small_block(0), packed = small_block(1);
    for (int round = 0; round < 200000; round++) {
        const nl_buffer *from = round % 4 == 0 ? &packed : &bytes;
        char copy[600];
        assert_true(from->size < sizeof copy);
        memcpy(copy, from->data, from->size);
        for (size_t changes = 1 + random_below(&seed, 4); changes > 0; changes--) {
            static const unsigned char special[] = {0, 1, 0x7f, 0x80, 0xff};
            size_t at = NL_BLOCK_AT_STORED_SIZE + random_below(&seed, from->size - NL_BLOCK_AT_STORED_SIZE);
            copy[at] = next_random(&seed) & 0x100 ? (char)special[random_below(&seed, 5)] : (char)next_random(&seed);
        }
        read_block(copy, from->size, false);
    }
    nl_buffer_free(&bytes);
    nl_buffer_free(&packed);
}

/* Makes a block with that payload and a valid checksum. */
static nl_buffer block_of(const char *payload, size_t size, uint32_t records, unsigned flags)
{
    nl_buffer bytes = {0};
    char header[NL_BLOCK_HEADER_SIZE] = NL_BLOCK_MAGIC;
    nl_le16_put(header + NL_BLOCK_AT_HEADER_SIZE, NL_BLOCK_HEADER_SIZE);
    header[NL_BLOCK_AT_TYPE] = NL_BLOCK_TYPE_RECORDS;
    header[NL_BLOCK_AT_FLAGS] = (char)flags;
    nl_le32_put(header + NL_BLOCK_AT_STORED_SIZE, (uint32_t)size);
    nl_le32_put(header + NL_BLOCK_AT_RAW_SIZE, (uint32_t)size);
    nl_le32_put(header + NL_BLOCK_AT_RECORD_COUNT, records);
    nl_le32_put(header + NL_BLOCK_AT_CRC, nl_block_checksum(header, sizeof header, payload, size));
    nl_buffer_append(&bytes, header, sizeof header);
    nl_buffer_append(&bytes, payload, size);
    return bytes;
}

static void blocks_that_lie_are_refused(void **state)
{
    (void)state;
#define PAYLOAD(text) text, sizeof text - 1
#define HEAD "\x01\x01h\x01p" /* one source */
    static const struct {
        const char *payload;
        size_t size;
        uint32_t records;
        bool good;
    } cases[] = {
        {PAYLOAD(HEAD "\x01\x00\x07\x01"
                      "e\x01\x02\x01"
                      "A\x00\x00\x02"),
         1, true},
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x01\x01x\x00\x00\x00"), 1, true}, /* an empty string, like the one before */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x01\x01x\x00\x00\x02z\x00\x00\x00"), 2, true},
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x01\x01x\x00\x00\x03z"), 1, false}, /* one byte missing */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x01\x01x\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1, false},
        {PAYLOAD("\x00\x00"), 0, true},
        {PAYLOAD(""), 0, false},
        {PAYLOAD("\x00\x00"), 1, false},
        {PAYLOAD("\x00\x00x"), 0, false},
        {PAYLOAD("\x00\x00\x00\x00"), 1, false},                  /* an undefined shape */
        {PAYLOAD("\xff\xff\x03\x00\x00"), 0, false},              /* 65,535 sources */
        {PAYLOAD("\x01\xff\xff\xff\xff\x0fh\x00\x00"), 0, false}, /* a host of 4 GiB */
        {PAYLOAD("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01h\x00\x00"), 0, false},
        {PAYLOAD("\x00\x01\x00\x07\x00\x00"), 0, false},           /* a shape without a source */
        {PAYLOAD(HEAD "\x01\x01\x07\x00\x00"), 0, false},          /* source 1 of 1 */
        {PAYLOAD(HEAD "\x01\x00\x0b\x00\x00"), 0, false},          /* level 11 */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x00\x01x"), 0, false}, /* type 0 */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x06\x01x"), 0, false}, /* type 6 */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x01\x00"), 0, false},  /* an empty name */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x01\x01="), 0, false}, /* an invalid name */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x01\x03"
                      "A\n="),
         0, false},
        {PAYLOAD(HEAD "\x01\x00\x07\x00\xff\xff\x3f\x01\x01x"), 0, false}, /* 1,048,575 fields */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x05\x01x\x00\x00\x01"), 1, true},
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x05\x01x\x00\x00\x02"), 1, false}, /* neither true nor false */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x01\x04\x01x\x00\x00"
                      "1234567"),
         1, false},                                                   /* a part of a double */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x00\x00\x00\x00"), 1, false}, /* one byte too many */
        {PAYLOAD(HEAD "\x01\x00\x07\x00\x00\x00\x00"), 0xffffffff, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nl_buffer bytes = block_of(cases[i].payload, cases[i].size, cases[i].records, 0);
        if (read_block(bytes.data, bytes.size, true) != cases[i].good)
            fail_msg("case %zu: %s", i, nl_error_message());
        nl_buffer_free(&bytes);
        bytes = block_of(cases[i].payload, cases[i].size, cases[i].records, 1);
        assert_false(read_block(bytes.data, bytes.size, true)); /* not zstd's output */
        nl_buffer_free(&bytes);
        bytes = block_of(cases[i].payload, cases[i].size, cases[i].records, 2);
        assert_false(read_block(bytes.data, bytes.size, true)); /* a flag of a later version */
        nl_buffer_free(&bytes);
    }
}

/* Later versions of the format may have a longer header. */
static void a_longer_header_is_passed_over(void **state)
{
    (void)state;
    nl_buffer bytes = small_block(0), longer = {0};
    nl_block_header header = good_header(&bytes);
    nl_buffer_append(&longer, bytes.data, NL_BLOCK_HEADER_SIZE);
    nl_buffer_append(&longer, "what is not known yet", 21);
    nl_buffer_append(&longer, bytes.data + NL_BLOCK_HEADER_SIZE, header.stored_size);
    nl_le16_put(longer.data + NL_BLOCK_AT_HEADER_SIZE, NL_BLOCK_HEADER_SIZE + 21);
    assert_false(read_block(longer.data, longer.size, true));
    size_t size = NL_BLOCK_HEADER_SIZE + 21;
    nl_le32_put(longer.data + NL_BLOCK_AT_CRC,
                nl_block_checksum(longer.data, size, longer.data + size, header.stored_size));
    assert_true(read_block(longer.data, longer.size, true));
    nl_buffer_free(&bytes);
    nl_buffer_free(&longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_those_of_the_standard),
        cmocka_unit_test(checksums_are_the_same_in_pieces_and_by_table),
        cmocka_unit_test(checksums_of_many_bytes),
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(numbers_that_are_too_long_are_refused),
        cmocka_unit_test(records_of_every_kind_come_back),
        cmocka_unit_test(a_level_of_ones_own_spelling_is_kept),
        cmocka_unit_test(similar_shapes_in_any_order),
        cmocka_unit_test(many_sources_and_shapes_are_put_down_once),
        cmocka_unit_test(records_may_be_appended_directly),
        cmocka_unit_test(what_is_as_before_takes_a_byte),
        cmocka_unit_test(a_block_may_hold_nothing_but_loss),
        cmocka_unit_test(what_is_too_large_is_not_put),
        cmocka_unit_test(a_cut_block_asks_for_more),
        cmocka_unit_test(every_changed_bit_is_noticed),
        cmocka_unit_test(whatever_a_block_says_is_survived),
        cmocka_unit_test(blocks_that_lie_are_refused),
        cmocka_unit_test(a_longer_header_is_passed_over),
    };
    return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
