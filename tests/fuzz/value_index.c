/*
 * The index of values. The first byte of the input gives the kind of the rest:
 *   'k'  keys: a byte for the format, a line with the name of a field, a line with an expression, and lines of records.
 *        If a record matches FIELD == VALUE, the operand's key is among the keys of the record, of the lines, and of a
 *        block of the records.
 *   'f'  a file: a byte for the number of pieces, a line with an expression, and the content of an index, whose
 *        checksums are corrected. Otherwise, the reader would reject nearly all mutated indexes at once.
 *   'e'  encoding: a byte for the number of pieces, and lines with a value, each of which belongs to the next piece.
 * The encoded index never excludes a piece that has the value.
 */
#include "fuzz.h"

#include "reader/decoder.h"
#include "reader/value_index.h"
#include "record/block_read.h"
#include "record/block_write.h"
#include "record/crc32c.h"
#include "record/varint.h"

#include <fcntl.h>
#include <unistd.h>

enum { PIECE = 1 << 20, HEADER = 52, DIRECTORY_ENTRY = 8, PIECES_MAX = 255 };

typedef struct input_text {
    const char *at, *end;
} input_text;

/* Returns the next line as a string that the caller frees. */
static char *take_line(input_text *in)
{
    const char *newline = in->at < in->end ? memchr(in->at, '\n', (size_t)(in->end - in->at)) : NULL;
    const char *end = newline != NULL ? newline : in->end;
    char *line = calloc(1, (size_t)(end - in->at) + 1);
    fuzz_expect(line != NULL, "there is memory");
    memcpy(line, in->at, (size_t)(end - in->at));
    in->at = newline != NULL ? newline + 1 : in->end;
    return line;
}

/* ---- keys ---- */

static bool has_key(const nl_value_keys *k, uint64_t key)
{
    const uint64_t *keys = (const uint64_t *)(const void *)k->keys.data;
    for (size_t i = 0; i < nl_value_keys_count(k); i++)
        if (keys[i] == key)
            return true;
    return false;
}

static bool has_any_operand(const nl_value_keys *k, const nl_filter *filter, const nl_filter_equality *test)
{
    for (size_t i = 0; i < test->operand_count; i++)
        if (has_key(k, nl_value_key_of_operand(k->seeds[0], filter, test->first_operand + i)))
            return true;
    return k->unknown;
}

static void add_as_block(nl_value_keys *k, nl_block_writer *w)
{
    static const nl_block_identity identity;
    nl_buffer bytes = {0};
    nl_block_header header;
    nl_block_reader reader = {0};
    if (nl_block_finish(w, &identity, 0, &bytes) && bytes.size > 0) {
        fuzz_expect(nl_block_whole_size(bytes.data, bytes.size, &header) == bytes.size &&
                        nl_block_open(&reader, &header, bytes.data) == NL_OK,
                    "a block that was written can be read");
        nl_value_keys_add_block(k, &reader);
        fuzz_expect(!k->unknown, "the keys of a valid block are known");
    }
    nl_block_reader_free(&reader);
    nl_buffer_free(&bytes);
}

static void check_lines(const nl_filter *filter, const nl_filter_equality *test, const nl_value_fields *fields,
                        nl_format format, const char *text, size_t size)
{
    nl_value_keys lines = {0}, blocks = {0}, one = {0};
    nl_block_writer w = {0};
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.format = format});
    const nl_record *record;
    bool in_lines = false, in_blocks = false;
    nl_value_keys_begin(&lines, fields);
    nl_value_keys_begin(&blocks, fields);
    nl_value_keys_begin(&one, fields);
    nl_value_keys_add_lines(&lines, format, text, size);
    nl_decoder_feed(decoder, text, size);
    nl_decoder_finish(decoder);
    while (nl_decoder_next(decoder, &record) == NL_OK) {
        const bool matches = nl_filter_matches(filter, record), put = nl_block_put(&w, record);
        nl_value_keys_clear(&one);
        nl_value_keys_add_record(&one, record);
        fuzz_expect(!matches || has_any_operand(&one, filter, test), "a matching record has the key");
        in_lines = in_lines || matches;
        in_blocks = in_blocks || (matches && put);
    }
    add_as_block(&blocks, &w);
    fuzz_expect(!in_lines || has_any_operand(&lines, filter, test), "lines with a matching record have the key");
    fuzz_expect(!in_blocks || has_any_operand(&blocks, filter, test), "a block with a matching record has the key");
    nl_block_writer_free(&w);
    nl_value_keys_free(&lines);
    nl_value_keys_free(&blocks);
    nl_value_keys_free(&one);
    nl_decoder_free(decoder);
}

static void check_keys(nl_format format, input_text in)
{
    nl_value_fields fields = {0};
    nl_filter_equality test;
    char *name = take_line(&in), *expression = take_line(&in);
    nl_filter *filter = nl_filter_parse(expression);
    if (filter != NULL && nl_filter_count_tests(filter) == 1 && nl_filter_list_equalities(filter, &test, 1) == 1 &&
        nl_value_fields_add(&fields, name, strlen(name)) && test.name.size == strlen(name) &&
        memcmp(test.name.data, name, test.name.size) == 0)
        check_lines(filter, &test, &fields, format, in.at, (size_t)(in.end - in.at));
    nl_filter_free(filter);
    free(name);
    free(expression);
}

/* ---- files ---- */

/* Sets the pieces of a time index. */
static void make_pieces(nl_time_index *index, size_t count)
{
    *index = (nl_time_index){.count = count, .sum = 1234};
    index->pieces = calloc(count, sizeof *index->pieces);
    fuzz_expect(index->pieces != NULL, "there is memory");
    for (size_t i = 0; i < count; i++)
        index->pieces[i] = (nl_time_piece){.end = (i + 1) * PIECE, .tail = (uint32_t)i};
}

static uint32_t sum_of_pieces(const nl_time_index *index, size_t first, size_t count)
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

/* Corrects the offsets and checksums of the segment at `data`. Returns its size, or 0 if it is incomplete. */
static size_t correct_segment(const nl_time_index *index, char *data, size_t size)
{
    if (size < HEADER)
        return 0;
    const size_t first = nl_le32_get(data + 24), count = nl_le32_get(data + 28), whole = nl_le32_get(data + 4);
    const size_t names = nl_le32_get(data + 32) & 0xffffff, bucket_bits = (unsigned char)data[40];
    if (first >= index->count || count == 0 || count > index->count - first || names > size - HEADER)
        return 0;
    memcpy(data, "NLV1", 4);
    nl_le64_put(data + 8, nl_time_index_start(index, first));
    nl_le64_put(data + 16, index->pieces[first + count - 1].end);
    nl_le32_put(data + 44, sum_of_pieces(index, first, count));
    const uint32_t sum = nl_crc32c(nl_crc32c(0, data, HEADER - 4), data + HEADER, names);
    nl_le32_put(data + HEADER - 4, sum);
    if (bucket_bits > 12 || HEADER + names + (((size_t)1 << bucket_bits) + 1) * DIRECTORY_ENTRY > size)
        return 0;
    char *directory = data + HEADER + names, *buckets = directory + (((size_t)1 << bucket_bits) + 1) * DIRECTORY_ENTRY;
    for (uint32_t b = 0; b < UINT32_C(1) << bucket_bits; b++) {
        const uint32_t from = nl_le32_get(directory + b * DIRECTORY_ENTRY);
        const uint32_t to = nl_le32_get(directory + (b + 1) * DIRECTORY_ENTRY);
        char bytes[8];
        if (from > to || to > (size_t)(data + size - buckets))
            continue;
        nl_le32_put(bytes, b);
        nl_le32_put(bytes + 4, to - from);
        nl_le32_put(directory + b * DIRECTORY_ENTRY + 4,
                    nl_crc32c(nl_crc32c(sum, bytes, sizeof bytes), buckets + from, to - from));
    }
    return whole <= size ? whole : 0;
}

/* Returns the path for the indexed file. Its index is written beside it. */
static const char *fuzz_path(void)
{
    static char path[64];
    if (path[0] == '\0')
        snprintf(path, sizeof path, "/tmp/fuzz-value-index-%d", (int)getpid());
    return path;
}

static void write_index(const char *data, size_t size)
{
    char *name = nl_value_index_name(fuzz_path());
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_expect(fd >= 0 && write(fd, data, size) == (ssize_t)size, "the index can be written");
    close(fd);
    free(name);
}

static void remove_index(void)
{
    char *name = nl_value_index_name(fuzz_path());
    unlink(name);
    free(name);
}

static void search_all(const nl_time_index *index, const nl_filter *filter, bool *skip)
{
    nl_value_search *search = nl_value_search_open(fuzz_path(), filter);
    while (search != NULL && nl_value_search_next(search, index, skip))
        ;
    nl_value_search_close(search);
}

static void verify_all(const nl_time_index *index)
{
    char *name = nl_value_index_name(fuzz_path());
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    nl_value_segment s;
    for (uint64_t at = 0; nl_value_index_read_segment(fd, at, index, &s); at += s.size)
        nl_value_index_verify_segment(fd, &s);
    close(fd);
    free(name);
}

static void check_file(size_t count, input_text in)
{
    nl_time_index index;
    nl_value_fields fields;
    char *expression = take_line(&in);
    nl_filter *filter = nl_filter_parse(expression);
    if (filter != NULL) {
        const size_t size = (size_t)(in.end - in.at);
        char *data = fuzz_copy(in.at, size);
        make_pieces(&index, count);
        for (size_t at = 0, segment = 1; segment > 0 && at < size; at += segment)
            segment = correct_segment(&index, data + at, size - at);
        write_index(data, size);
        bool *skip = calloc(count, sizeof *skip);
        search_all(&index, filter, skip);
        verify_all(&index);
        nl_value_index_read_fields(fuzz_path(), &fields);
        remove_index();
        free(skip);
        free(data);
        nl_time_index_free(&index);
    }
    nl_filter_free(filter);
    free(expression);
}

/* ---- encoding ---- */

static uint64_t key_of_value(const nl_value_fields *fields, const char *value, size_t size)
{
    nl_value_keys k = {0};
    nl_field field = {.name = {"A", 1}, .type = NL_TYPE_STRING, .string = {value, size}};
    nl_record record = {.fields = &field, .field_count = 1};
    nl_value_keys_begin(&k, fields);
    nl_value_keys_add_record(&k, &record);
    fuzz_expect(nl_value_keys_count(&k) == 1, "a value has a key");
    const uint64_t key = *(const uint64_t *)(const void *)k.keys.data;
    nl_value_keys_free(&k);
    return key;
}

/* Returns the expression A == "VALUE". */
static nl_filter *equality_of(const char *value, size_t size)
{
    nl_buffer text = {0};
    nl_buffer_append(&text, "A == \"", 6);
    for (size_t i = 0; i < size; i++) {
        if (value[i] == '"' || value[i] == '\\')
            nl_buffer_append(&text, "\\", 1);
        nl_buffer_append(&text, value + i, 1);
    }
    nl_buffer_append(&text, "\"", 2);
    nl_filter *filter = nl_filter_parse(text.data);
    nl_buffer_free(&text);
    return filter;
}

static void check_encoding(size_t count, input_text in)
{
    nl_time_index index;
    nl_value_fields fields = {0};
    nl_buffer entries = {0}, out = {0};
    nl_value_fields_add(&fields, "A", 1);
    make_pieces(&index, count);
    size_t piece = 0, entry_count = 0;
    for (input_text values = in; values.at < values.end; piece = (piece + 1) % count, entry_count++) {
        char *value = take_line(&values);
        const uint64_t entry = nl_value_entry(key_of_value(&fields, value, strlen(value)), piece);
        nl_buffer_append(&entries, &entry, sizeof entry);
        free(value);
    }
    fuzz_expect(nl_value_index_encode(&index, 0, count, &fields, (const uint64_t *)(const void *)entries.data,
                                      entry_count, &out),
                "few entries fit in the index of large pieces");
    write_index(out.data, out.size);
    piece = 0;
    for (input_text values = in; values.at < values.end; piece = (piece + 1) % count) {
        char *value = take_line(&values);
        bool *skip = calloc(count, sizeof *skip);
        nl_filter *filter = equality_of(value, strlen(value));
        if (filter != NULL)
            search_all(&index, filter, skip);
        fuzz_expect(!skip[piece], "a piece with the value is not excluded");
        nl_filter_free(filter);
        free(skip);
        free(value);
    }
    remove_index();
    nl_buffer_free(&entries);
    nl_buffer_free(&out);
    nl_time_index_free(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    char *text = fuzz_copy(data + 2, size - 2);
    const input_text in = {text, text + size - 2};
    const size_t count = data[1] == 0 ? 1 : data[1];
    switch (data[0]) {
    case 'k':
        check_keys(data[1] % 2 == 0 ? NL_FORMAT_ULM : NL_FORMAT_BP, in);
        break;
    case 'f':
        check_file(count, in);
        break;
    case 'e':
        check_encoding(count, in);
        break;
    }
    free(text);
    return 0;
}
