/* HTTP/2 frames and header blocks, as nlkernel trace reads them: names are right or unknown, never wrong. */
#include "config.h"

#include "trace/frames.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <string.h>

#define BLOCK(text) ((const uint8_t *)(text)), sizeof(text) - 1

static hpack_headers read_block(hpack *h, const uint8_t *block, size_t size)
{
    hpack_headers headers;
    uint8_t *copy = g_memdup2(block, size); /* so that a sanitizer detects a read beyond the block */
    hpack_read(h, copy, size, &headers);
    g_free(copy);
    return headers;
}

/* Fields with and without Huffman codes, with and without the tables. */
static void test_fields(void **state)
{
    (void)state;
    hpack *h = hpack_new();
    hpack_headers a = read_block(h, BLOCK("\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"));
    assert_string_equal(a.request.verb, "GET");
    assert_string_equal(a.request.object, "/");
    assert_false(a.has_unknown);
    a = read_block(h, BLOCK("\x83\x44\x13/shop.Store/Get?k=v\xbf")); /* :authority is now the second latest */
    assert_string_equal(a.request.verb, "POST");
    assert_string_equal(a.request.object, "/shop.Store/Get");
    a = read_block(h, BLOCK("\x42\x05PURGE\xbf\xbe"));
    assert_string_equal(a.request.verb, "PURGE");
    assert_string_equal(a.request.object, "/shop.Store/Get");
    assert_false(a.has_unknown);
    a = read_block(h, BLOCK("\x8e"));
    assert_string_equal(a.status, "500");
    a = read_block(h, BLOCK("\x48\x03"
                            "418"
                            "\x40\x0bgrpc-status\x02"
                            "13"));
    assert_string_equal(a.status, "418");
    assert_string_equal(a.grpc_status, "13");
    a = read_block(h, BLOCK("\xbe\xbf"));
    assert_string_equal(a.status, "418");
    assert_string_equal(a.grpc_status, "13");
    a = read_block(h, BLOCK("\x82\x04\x02/a\x00\x0btraceparent\x37"
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    assert_string_equal(a.request.trace_id, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(a.request.parent_id, "b7ad6b7169203331");
    hpack_free(h);
}

/* Values that the fields cannot have are not kept. */
static void test_values(void **state)
{
    (void)state;
    hpack *h = hpack_new();
    hpack_headers a = read_block(h, BLOCK("\x02\x06secret\x04\x07secret=\x08\x03"
                                          "2x0"
                                          "\x00\x0bgrpc-status\x03"
                                          "123"
                                          "\x00\x0btraceparent\x06secret"));
    const hpack_headers nothing = {0};
    assert_memory_equal(&a, &nothing, sizeof a);
    hpack_free(h);
}

/* After a gap, only fields that were added later are known. */
static void test_gap(void **state)
{
    (void)state;
    hpack *h = hpack_new();
    read_block(h, BLOCK("\x44\x02/a\x44\x02/b"));
    assert_string_equal(read_block(h, BLOCK("\xbf")).request.object, "/a");
    hpack_forget(h);
    hpack_headers a = read_block(h, BLOCK("\x83\xbe"));
    assert_true(a.has_unknown);
    assert_string_equal(a.request.object, "");
    assert_string_equal(a.request.verb, "POST");
    read_block(h, BLOCK("\x44\x02/c"));
    assert_string_equal(read_block(h, BLOCK("\xbe")).request.object, "/c");
    a = read_block(h, BLOCK("\xbf"));
    assert_true(a.has_unknown);
    assert_string_equal(a.request.object, "");
    a = read_block(h, BLOCK("\x7f\x00\x02/x")); /* a new field with an unknown name */
    assert_true(a.has_unknown);
    assert_true(read_block(h, BLOCK("\xbe")).has_unknown);
    assert_string_equal(read_block(h, BLOCK("\xbf")).request.object, "/c");
    hpack_free(h);
}

/* After a malformed block, all fields are unknown. */
static void test_malformed(void **state)
{
    static const char *const blocks[] = {"\x80",
                                         "\x82\x44",
                                         "\x44\x05/a",
                                         "\x44\x7f",
                                         "\xff\xff\xff\xff\xff\xff\xff",
                                         "\x44\x82\xff\xff",
                                         "\x40\x01",
                                         "\x3f\xff\xff\xff\xff\xff"};
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(blocks); i++) {
        hpack *h = hpack_new();
        read_block(h, BLOCK("\x44\x02/a"));
        hpack_headers a = read_block(h, (const uint8_t *)blocks[i], strlen(blocks[i]));
        assert_true(a.has_unknown);
        assert_string_equal(a.request.verb, "");
        a = read_block(h, BLOCK("\xbe"));
        assert_true(a.has_unknown);
        assert_string_equal(a.request.object, "");
        assert_string_equal(read_block(h, BLOCK("\x04\x02/b")).request.object, "/b");
        hpack_free(h);
    }
}

/* The blocks add more fields than the module keeps. */
static void test_many_fields(void **state)
{
    (void)state;
    hpack *h = hpack_new();
    read_block(h, BLOCK("\x44\x02/a"));
    for (int i = 1; i < HPACK_FIELDS_MAX; i++)
        read_block(h, BLOCK("\x44\x02/b"));
    assert_string_equal(read_block(h, BLOCK("\xff\x3e")).request.object, "/a"); /* index 61 + HPACK_FIELDS_MAX */
    read_block(h, BLOCK("\x44\x02/c"));
    assert_true(read_block(h, BLOCK("\xff\x3f")).has_unknown);
    assert_string_equal(read_block(h, BLOCK("\xbe")).request.object, "/c");
    hpack_free(h);
}

static void expect_field(const char *found, const char *expected, bool has_unknown, int *known)
{
    if (*found == '\0')
        assert_true(has_unknown);
    else
        assert_string_equal(found, expected);
    *known += *found != '\0';
}

/* Random headers from libnghttp2, whose table changes its size, with random gaps. */
static void test_encoder(void **state)
{
    enum { BLOCKS = 3000, TABLE_MAX = 4096 };
    static const char *const verbs[] = {"GET", "PUT", "PATCH", "PURGE"}, *const statuses[] = {"200", "404", "418",
                                                                                              "503"};
    (void)state;
    GRand *random = g_rand_new_with_seed(1);
    nghttp2_hd_deflater *deflater;
    hpack *h = hpack_new();
    bool has_gap = false;
    int known = 0;
    assert_int_equal(nghttp2_hd_deflate_new(&deflater, TABLE_MAX), 0);
    for (int i = 0; i < BLOCKS; i++) {
        const char *verb = verbs[g_rand_int_range(random, 0, 4)], *status = statuses[g_rand_int_range(random, 0, 4)];
        char path[20], other[20], grpc[4], block[2000];
        g_snprintf(path, sizeof path, "/%d", g_rand_int_range(random, 0, 20));
        g_snprintf(other, sizeof other, "secret%d", g_rand_int_range(random, 0, 60));
        g_snprintf(grpc, sizeof grpc, "%d", g_rand_int_range(random, 0, 17));
        const char *const pairs[][2] = {{":method", verb},   {":path", path},   {"x-a", other},
                                        {":status", status}, {"cookie", other}, {"grpc-status", grpc}};
        nghttp2_nv fields[G_N_ELEMENTS(pairs)];
        for (size_t f = 0; f < G_N_ELEMENTS(pairs); f++)
            fields[f] = (nghttp2_nv){.name = (uint8_t *)pairs[f][0],
                                     .value = (uint8_t *)pairs[f][1],
                                     .namelen = strlen(pairs[f][0]),
                                     .valuelen = strlen(pairs[f][1])};
        if (g_rand_int_range(random, 0, 100) == 0)
            nghttp2_hd_deflate_change_table_size(deflater, (size_t)g_rand_int_range(random, 0, TABLE_MAX));
        ssize_t size = nghttp2_hd_deflate_hd(deflater, (uint8_t *)block, sizeof block, fields, G_N_ELEMENTS(fields));
        assert_true(size > 0);
        if (g_rand_int_range(random, 0, 300) == 0) { /* this block is missing */
            hpack_forget(h);
            has_gap = true;
            continue;
        }
        hpack_headers a = read_block(h, (const uint8_t *)block, (size_t)size);
        assert_true(!a.has_unknown || has_gap);
        expect_field(a.request.verb, verb, a.has_unknown, &known);
        expect_field(a.request.object, path, a.has_unknown, &known);
        expect_field(a.status, status, a.has_unknown, &known);
        expect_field(a.grpc_status, grpc, a.has_unknown, &known);
    }
    assert_true(known > BLOCKS * 4 / 2);
    nghttp2_hd_deflate_del(deflater);
    hpack_free(h);
    g_rand_free(random);
}

/* ---- frames ---- */

typedef struct reader {
    frames *frames;
    GByteArray *bytes;
    enum trace_http2 kind;
    GString *found; /* a line for each frame */
} reader;

static void note(void *user, const stream_frame *frame)
{
    reader *r = user;
    g_string_append_printf(r->found, "%u", frame->stream);
    if (frame->has_headers)
        g_string_append_printf(r->found, " %s%s%s%s", frame->headers.request.verb, frame->headers.request.object,
                               frame->headers.status, frame->headers.has_unknown ? "?" : "");
    if (frame->resets)
        g_string_append_printf(r->found, " reset %u", frame->error);
    g_string_append(r->found, frame->ends_stream ? " end\n" : "\n");
}

static void add_frame(reader *r, enum trace_frame_type type, int flags, uint32_t stream, const char *payload,
                      size_t size)
{
    uint32_t length = (uint32_t)size;
    struct trace_frame frame = {.sequence = r->bytes->len,
                                .head = {(uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length,
                                         (uint8_t)type, (uint8_t)flags, (uint8_t)(stream >> 24),
                                         (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream}};
    g_byte_array_append(r->bytes, (const uint8_t *)&frame, sizeof frame);
    if (payload != NULL)
        g_byte_array_append(r->bytes, (const uint8_t *)payload, length);
}

/* Reads the frames in events of `part` bytes each. Returns the frames that the module found. */
static const char *read_parts(reader *r, size_t part)
{
    struct trace_event e = {.kind = TRACE_SEND, .http2 = (__u8)r->kind};
    g_string_truncate(r->found, 0);
    for (size_t at = 0; at < r->bytes->len; at += e.captured) {
        e.captured = (__u16)MIN(part, r->bytes->len - at);
        memcpy(e.data, r->bytes->data + at, e.captured);
        frames_read(r->frames, &e, note, r);
        e.http2 = TRACE_FRAMES;
    }
    g_byte_array_set_size(r->bytes, 0);
    return r->found->str;
}

static reader new_reader(void)
{
    return (reader){
        .frames = frames_new(), .bytes = g_byte_array_new(), .kind = TRACE_FRAMES, .found = g_string_new(NULL)};
}

static void free_reader(reader *r)
{
    frames_free(r->frames);
    g_byte_array_free(r->bytes, TRUE);
    g_string_free(r->found, TRUE);
}

enum { END_STREAM = 1, END_HEADERS = 4, PADDED = 8, PRIORITY = 0x20 };

#define PAYLOAD(text) (text), sizeof(text) - 1

static void test_frames(void **state)
{
    (void)state;
    reader r = new_reader();
    add_frame(&r, TRACE_FRAME_SETTINGS, 0, 0, NULL, 18);
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS | PADDED | PRIORITY, 1,
              PAYLOAD("\x03\x00\x00\x00\x00\x10\x83\x44\x02/a\xbe\xbe\xbe"));
    add_frame(&r, TRACE_FRAME_WINDOW, 0, 1, NULL, 4);
    add_frame(&r, TRACE_FRAME_DATA, END_STREAM, 1, NULL, 1000);
    add_frame(&r, TRACE_FRAME_HEADERS, END_STREAM, 3, PAYLOAD("\x82"));
    add_frame(&r, TRACE_FRAME_CONTINUATION, 0, 3, PAYLOAD(""));
    add_frame(&r, TRACE_FRAME_CONTINUATION, END_HEADERS, 3, PAYLOAD("\xbe"));
    add_frame(&r, TRACE_FRAME_PUSH, END_HEADERS, 3, PAYLOAD("\x00\x00\x00\x02\x44\x02/b"));
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 5, PAYLOAD("\x88\xbe"));
    add_frame(&r, TRACE_FRAME_RESET, 0, 5, PAYLOAD("\x00\x00\x00\x08"));
    assert_string_equal(read_parts(&r, TRACE_CAPTURE_MAX), "1 POST/a\n1 end\n3 GET/a end\n5 /b200\n5 reset 8\n");
    free_reader(&r);
}

/* A header block that ends in another event; the head of a frame is always in one event. */
static void test_parts(void **state)
{
    (void)state;
    reader r = new_reader();
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 1, PAYLOAD("\x83\x44\x0e/long/path/abc"));
    assert_string_equal(read_parts(&r, sizeof(struct trace_frame)), "1 POST/long/path/abc\n");
    free_reader(&r);
}

/* After a gap, the frames continue, and unknown names are missing. */
static void test_frames_after_gap(void **state)
{
    (void)state;
    reader r = new_reader();
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 1, PAYLOAD("\x83\x44\x02/a"));
    add_frame(&r, TRACE_FRAME_HEADERS, 0, 3, PAYLOAD("\x83"));
    read_parts(&r, TRACE_CAPTURE_MAX);
    const struct trace_event later = {.kind = TRACE_SEND, .http2 = TRACE_FRAMES_AFTER_GAP, .captured = 13};
    const struct trace_event first = {.kind = TRACE_RECEIVE, .http2 = TRACE_FRAMES_AFTER_GAP, .captured = 13};
    assert_true(frames_miss(r.frames, &later));
    assert_false(frames_miss(r.frames, &first)); /* the connection began before the trace */
    r.kind = TRACE_FRAMES_AFTER_GAP;
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 5, PAYLOAD("\x83\xbe"));
    add_frame(&r, TRACE_FRAME_DATA, END_STREAM, 5, NULL, 1);
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 7, PAYLOAD("\x83\x44\x02/b"));
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 9, PAYLOAD("\x83\xbe"));
    assert_string_equal(read_parts(&r, TRACE_CAPTURE_MAX), "5 POST?\n5 end\n7 POST/b\n9 POST/b\n");
    free_reader(&r);
}

/* After a frame that the protocol forbids, all fields are unknown. */
static void test_invalid_frames(void **state)
{
    (void)state;
    reader r = new_reader();
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 1, PAYLOAD("\x83\x44\x02/a"));
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS | PADDED, 3, PAYLOAD("\x09\x83"));
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 5, PAYLOAD("\xbe"));
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 7, PAYLOAD("\x44\x02/b"));
    add_frame(&r, TRACE_FRAME_CONTINUATION, END_HEADERS, 7, PAYLOAD("\x84"));
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 9, PAYLOAD("\xbe"));
    add_frame(&r, TRACE_FRAME_HEADERS, 0, 11, PAYLOAD("\x44\x02/c"));
    add_frame(&r, TRACE_FRAME_DATA, END_STREAM, 1, NULL, 1);
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 13, PAYLOAD("\xbe"));
    const char *found = read_parts(&r, TRACE_CAPTURE_MAX);
    assert_string_equal(found, "1 POST/a\n5 ?\n7 /b\n7 /\n9 ?\n1 end\n13 ?\n");
    free_reader(&r);
}

/* A client continues a header block without end. */
static void test_flood(void **state)
{
    enum { FRAMES = 2000, SIZE = 100 };
    (void)state;
    reader r = new_reader();
    char payload[SIZE];
    memset(payload, 0x82, sizeof payload);
    add_frame(&r, TRACE_FRAME_HEADERS, 0, 1, payload, sizeof payload);
    for (int i = 0; i < FRAMES; i++)
        add_frame(&r, TRACE_FRAME_CONTINUATION, i + 1 == FRAMES ? END_HEADERS : 0, 1, payload, sizeof payload);
    add_frame(&r, TRACE_FRAME_HEADERS, END_HEADERS, 3, PAYLOAD("\x83\x44\x02/a"));
    /* Each event has whole frames, like the events of the kernel's program. */
    assert_string_equal(read_parts(&r, sizeof(struct trace_frame) + SIZE), "1 ?\n3 POST/a\n");
    free_reader(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_many_fields),
        cmocka_unit_test(test_encoder),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_frames_after_gap),
        cmocka_unit_test(test_invalid_frames),
        cmocka_unit_test(test_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
