/*
 * Exact round trips: random records, some hostile, through every two-way format of nlconv and back, with the input
 * divided at any place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "convert/convert.h"
#include "base/hash_bytes.h"
#include "clocks/name_table.h"
#include "convert/keys.h"
#include "convert/text_set.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 150, RECORDS = 40 };

/* ---- random records ---- */

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t below(size_t limit)
{
    return (size_t)(next_random() % limit);
}

static const char *const hostile[] = {"",
                                      " ",
                                      "\"",
                                      "\\",
                                      "a b",
                                      "a=b",
                                      "=",
                                      "\n",
                                      "\r",
                                      "\r\n",
                                      "\t",
                                      ",",
                                      ",,",
                                      "\"\"",
                                      "\"a\",b",
                                      "a,\"b\"",
                                      "#order",
                                      "<&>",
                                      "]]>",
                                      "<![CDATA[",
                                      "&amp;",
                                      "&#10;",
                                      "\x01",
                                      "\x7f",
                                      "\xff",
                                      "\xc3\xa4",
                                      "\xc3",
                                      "\xed\xa0\x80",
                                      "\xef\xbf\xbe",
                                      "\xf0\x9f\x98\x80",
                                      "true",
                                      "false",
                                      "null",
                                      "0",
                                      "-0",
                                      "-0.0",
                                      "00",
                                      "007",
                                      "1",
                                      "-1",
                                      "+1",
                                      "1.0",
                                      "1.50",
                                      "0.5",
                                      "-0.5",
                                      ".5",
                                      "5.",
                                      "1e5",
                                      "1E5",
                                      "1e+20",
                                      "nan",
                                      "inf",
                                      "-inf",
                                      "Infinity",
                                      "123456789012345",
                                      "1234567890123456",
                                      "9007199254740993",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "18446744073709551615",
                                      "18446744073709551616",
                                      "0.1",
                                      "0.123456789",
                                      "0.1234567891",
                                      "3.141592653589793",
                                      "0.30000000000000004",
                                      "{\"a\":1}",
                                      "[1]",
                                      "{\"$bytes\":\"AA==\"}",
                                      "\\u0041",
                                      "\\n",
                                      "'",
                                      "DATE=20260101000000",
                                      "ts=2026-01-01T00:00:00Z",
                                      "a\nb,c\nd",
                                      "x y=z",
                                      "\xef\xbb\xbf",
                                      "%s%n",
                                      "a\tb",
                                      "  lead",
                                      "trail  ",
                                      "UNSET",
                                      "-",
                                      "{",
                                      "}",
                                      "\x1b[0m",
                                      "\xc0\x80"};

static const char *const names[] = {"A",     "B",       "a.b",    "X-1",  "_",     "_._",  "_.ts",  "_.HOST",
                                    "ts",    "DATE",    "HOST",   "host", "event", "PROG", "prog",  "LVL",
                                    "level", "NL.EVNT", "n",      "t",    "e",     "f",    "order", "A",
                                    "A",     "time",    "record", "body", "name",  "args"};

static nl_string random_text(char *capacity, size_t most)
{
    if (below(3) == 0) {
        const char *text = hostile[below(sizeof hostile / sizeof hostile[0])];
        return (nl_string){text, strlen(text)};
    }
    size_t size = below(4) == 0 ? below(most) : below(12);
    bool plain = below(2) == 0;
    for (size_t i = 0; i < size; i++)
        capacity[i] = plain ? (char)('a' + below(26)) : (char)below(256);
    return (nl_string){capacity, size};
}

static double random_double(void)
{
    static const double some[] = {
        0,    -0.0, 1,    -1,    0.5,    1e20,     1e-7,      1e300,  1e15, 123456789012345678.0,
        1e16, 0.1,  1e-9, 1e-10, 5e-324, INFINITY, -INFINITY, 3.0e-5, 2.5,  1.7976931348623157e308};
    if (below(2) == 0)
        return some[below(sizeof some / sizeof some[0])];
    uint64_t bits = next_random();
    double value;
    memcpy(&value, &bits, sizeof value);
    return value == value ? value : NAN;
}

static void add_random_field(nl_record *record, char *capacity, size_t most)
{
    const char *name = names[below(sizeof names / sizeof names[0])];
    nl_string text;
    switch (below(9)) {
    case 0:
        nl_record_add_int(record, name, below(2) == 0 ? (int64_t)next_random() : (int64_t)below(1000) - 500);
        break;
    case 1:
        nl_record_add_uint(record, name, below(2) == 0 ? next_random() : below(1000));
        break;
    case 2:
        nl_record_add_double(record, name, random_double());
        break;
    case 3:
        nl_record_add_bool(record, name, below(2) == 0);
        break;
    default:
        text = random_text(capacity, most);
        nl_record_add_string(record, name, text.data, text.size);
    }
}

static int64_t random_time(void)
{
    switch (below(8)) {
    case 0:
        return (int64_t)next_random();
    case 1:
        return below(2) == 0 ? INT64_MIN : INT64_MAX;
    case 2:
        return -(int64_t)below(2000000000);
    default:
        return INT64_C(1331733886) * NL_NS_PER_SECOND + (int64_t)below(5) * 1000 * below(1000000) + (int64_t)below(2);
    }
}

static nl_record *random_record(void)
{
    char capacity[300];
    nl_record *record = nl_record_new();
    nl_string text;
    nl_record_set_time(record, random_time());
    if (below(4) > 0) {
        text = random_text(capacity, sizeof capacity);
        nl_record_set_event(record, text.data, text.size);
    }
    if (below(3) > 0)
        nl_record_set_host(record, "dpss1.lbl.gov", below(14));
    if (below(3) > 0) {
        text = random_text(capacity, sizeof capacity);
        nl_record_set_prog(record, text.data, text.size);
    }
    if (below(8) > 0)
        nl_record_set_level(record, (nl_level)below(NL_DEBUG + 1));
    for (size_t count = below(12); count > 0; count--)
        add_random_field(record, capacity, sizeof capacity);
    return record;
}

/* ---- records as text that shows every difference ---- */

/* Limits of a format, which it reports. */
typedef struct limits {
    bool text_only;     /* everything is a string */
    bool small_signed;  /* small unsigned integers come back as signed integers */
    bool empty_members; /* empty standard fields come back as absent */
} limits;

static void put_member(nl_buffer *out, const char *name, nl_string text, const limits *l)
{
    char head[64];
    if (text.data == NULL || (text.size == 0 && l->empty_members))
        return;
    int size = snprintf(head, sizeof head, "%s:%zu:", name, text.size);
    nl_buffer_append(out, head, (size_t)size);
    nl_buffer_append(out, text.data, text.size);
    nl_buffer_append(out, " ", 1);
}

static void describe(const nl_record *record, const limits *l, nl_buffer *out)
{
    char head[64], scratch[NL_FIELD_TEXT_SIZE];
    int size = snprintf(head, sizeof head, "%" PRId64 " ", record->time_ns);
    nl_buffer_append(out, head, (size_t)size);
    put_member(out, "event", record->event, l);
    put_member(out, "level", level_as_text(record), l);
    put_member(out, "host", record->host, l);
    put_member(out, "prog", record->prog, l);
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        nl_type type = l->text_only ? NL_TYPE_STRING : field->type;
        if (l->small_signed && type == NL_TYPE_UINT && field->uint_value <= INT64_MAX)
            type = NL_TYPE_INT;
        nl_string text = nl_field_text(field, scratch);
        size = snprintf(head, sizeof head, "%.*s/%d:%zu:", (int)(field->name.size < 30 ? field->name.size : 30),
                        field->name.data, (int)type, text.size);
        nl_buffer_append(out, head, (size_t)size);
        nl_buffer_append(out, text.data, text.size);
        nl_buffer_append(out, " ", 1);
    }
    nl_buffer_append(out, "\n", 1);
}

/* ---- an exporter that describes its records ---- */

static limits described;

static const exporter_kind describer;
static exporter describing = {&describer, NULL};

static void put_description(exporter *e, const nl_record *record, bool typed, sink *s)
{
    (void)e, (void)typed;
    describe(record, &described, &s->bytes);
}

static const exporter_kind describer = {.name = "description", .put = put_description};

/* ---- round trips ---- */

static void empty(sink *s)
{
    nl_buffer_free(&s->bytes);
    nl_buffer_free(&s->report_text);
    free(s->reports);
    *s = (sink){0};
}

static void put_all(const exporter_kind *kind, void *shared, nl_record **records, bool typed, sink *s)
{
    exporter *e = exporter_open(kind, shared);
    s->out = e;
    if (kind->begin != NULL)
        kind->begin(e, s);
    for (size_t i = 0; i < RECORDS; i++)
        sink_put(s, records[i], typed);
    if (kind->flush != NULL)
        kind->flush(e, s);
    if (kind->end != NULL)
        kind->end(e, s);
    exporter_close(e);
}

static nl_buffer export_all(const exporter_kind *kind, nl_record **records, bool typed)
{
    void *shared = kind->share != NULL ? kind->share(NULL) : NULL;
    sink s = {0};
    if (kind->first_pass != NULL) {
        put_all(kind->first_pass, shared, records, typed, &s);
        assert_true(kind->first_pass->learn(shared, (nl_string){s.bytes.data, s.bytes.size}));
        empty(&s);
    }
    put_all(kind, shared, records, typed, &s);
    nl_buffer bytes = s.bytes;
    s.bytes = (nl_buffer){0};
    assert_int_equal(s.report_count, 0);
    empty(&s);
    if (kind->unshare != NULL)
        kind->unshare(shared);
    return bytes;
}

static size_t whole_lines(const char *data, size_t size)
{
    while (size > 0 && data[size - 1] != '\n')
        size--;
    return size;
}

/* Reads a chunk in separate memory, so that a sanitizer detects a read beyond its end. */
static void read_chunk(importer *i, const char *data, size_t size, sink *s)
{
    char *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    i->kind->read(i, copy, size, s);
    free(copy);
}

static void import_all(const importer_kind *kind, const nl_buffer *bytes, sink *s)
{
    void *shared = NULL;
    size_t at = kind->head != NULL ? kind->head(bytes->data, bytes->size, true, &shared, s) : 0;
    importer *in = importer_open(kind, shared);
    size_t (*cut)(const char *data, size_t size) = kind->cut != NULL ? kind->cut : whole_lines;
    for (size_t end = at; end < bytes->size && !kind->blocks;) {
        end += 1 + below(bytes->size - end);
        size_t size = cut(bytes->data + at, end - at);
        read_chunk(in, bytes->data + at, size, s);
        at += size;
    }
    read_chunk(in, bytes->data + at, bytes->size - at, s);
    if (kind->end != NULL)
        kind->end(in, s);
    importer_close(in);
    if (kind->unshare != NULL)
        kind->unshare(shared);
}

/* Returns a printable form of the bytes around at. */
static const char *printable(const nl_buffer *bytes, size_t at)
{
    enum { AROUND = 60 };
    char *text = calloc(1, 2 * AROUND + 1);
    assert_non_null(text);
    for (size_t i = at > AROUND ? at - AROUND : 0, size = 0; i < bytes->size && i < at + AROUND; i++)
        text[size++] = bytes->data[i] >= ' ' && bytes->data[i] < 127 ? bytes->data[i] : '?';
    return text;
}

static void check_round(const char *format, limits l, bool typed)
{
    nl_record *records[RECORDS];
    nl_buffer expected = {0};
    described = l;
    for (size_t i = 0; i < RECORDS; i++) {
        records[i] = random_record();
        describe(records[i], &l, &expected);
    }
    nl_buffer bytes = export_all(exporter_kind_find(format), records, typed);
    sink back = {.out = &describing};
    import_all(importer_kind_find(format), &bytes, &back);
    for (size_t i = 0; i < back.report_count; i++)
        fail_msg("%s: line %" PRIu64 ": %s", format, back.reports[i].line,
                 back.report_text.data + back.reports[i].reason);
    size_t same = 0;
    while (same < expected.size && same < back.bytes.size && expected.data[same] == back.bytes.data[same])
        same++;
    if (same < expected.size || same < back.bytes.size)
        fail_msg("%s: of %zu bytes the first %zu came back, then not %s but %s", format, expected.size, same,
                 printable(&expected, same), printable(&back.bytes, same));
    empty(&back);
    nl_buffer_free(&bytes);
    nl_buffer_free(&expected);
    for (size_t i = 0; i < RECORDS; i++)
        nl_record_free(records[i]);
}

static void check_format(const char *format, limits l)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        state = 88172645463325252u + round;
        check_round(format, l, true);
    }
}

static void test_ulm(void **unused)
{
    (void)unused;
    check_format("ulm", (limits){.text_only = true});
}

static void test_bp(void **unused)
{
    (void)unused;
    check_format("bp", (limits){.text_only = true});
}

static void test_nlb(void **unused)
{
    (void)unused;
    check_format("nlb", (limits){.empty_members = true});
}

static void test_json(void **unused)
{
    (void)unused;
    check_format("json", (limits){.small_signed = true});
}

/* Text that looks like numbers becomes numbers, and comes back as the same text. */
static void test_json_of_text(void **unused)
{
    (void)unused;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        state = 1234567 + round;
        check_round("json", (limits){.text_only = true}, false);
    }
}

static void test_csv(void **unused)
{
    (void)unused;
    check_format("csv", (limits){.text_only = true});
}

static void test_otlp(void **unused)
{
    (void)unused;
    check_format("otlp", (limits){.small_signed = true});
    check_format("otlp-proto", (limits){.small_signed = true});
}

/* Text that looks like numbers becomes numbers, and comes back as the same text. */
static void test_otlp_of_text(void **unused)
{
    (void)unused;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        state = 7654321 + round;
        check_round("otlp", (limits){.text_only = true}, false);
        check_round("otlp-proto", (limits){.text_only = true}, false);
    }
}

static void test_chrome(void **unused)
{
    (void)unused;
    check_format("chrome", (limits){.small_signed = true});
}

static void test_xml(void **unused)
{
    (void)unused;
    check_format("xml", (limits){0});
}

/*
 * Names that collide if the seed of the hashes is known: each has a different first half, and a second half that makes
 * the hashes equal. They contain no NUL, at which a name_table ends a name.
 */
static void test_names_that_collide(void **state)
{
    enum { MANY = 300000, HALF = 8 };
    (void)state;
    text_set set = {0};
    name_table names = {0};
    clock_t start = clock();
    for (uint64_t i = 1; set.count < MANY; i++) {
        char name[2 * HALF];
        uint64_t first = i * UINT64_C(0x9e3779b97f4a7c15),
                 second = hash_mix(sizeof name ^ first, UINT64_C(0x9e3779b97f4a7c15)) ^ 1;
        memcpy(name, &first, HALF);
        memcpy(name + HALF, &second, HALF);
        if (memchr(name, 0, sizeof name) != NULL)
            continue;
        assert_true(hash_bytes(0, name, sizeof name) ==
                    hash_mix(hash_mix(1, UINT64_C(0x9e3779b97f4a7c15)), UINT64_C(0xd6e8feb86659fd93)));
        bool added;
        nl_string text = {name, sizeof name};
        assert_int_equal(name_table_add(&names, text), text_set_add(&set, text, &added));
    }
    /* Processor time, so that other processes do not matter. Look-ups of names that collide would take many minutes. */
    assert_true(clock() - start < 60 * CLOCKS_PER_SEC);
    text_set_free(&set);
    name_table_free(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ulm),
        cmocka_unit_test(test_bp),
        cmocka_unit_test(test_nlb),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_of_text),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_xml),
        cmocka_unit_test(test_chrome),
        cmocka_unit_test(test_otlp),
        cmocka_unit_test(test_otlp_of_text),
        cmocka_unit_test(test_names_that_collide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
