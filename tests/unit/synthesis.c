/* Rules of synthesis: their results, for any order of records. */
#include "config.h"

#include <netlogger.h>

#include "reader/decoder.h"
#include "synthesis/synthesis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "under_valgrind.h"

/* Returns the rules in a file with that text, or NULL. */
static nl_synthesis *parse_rules(const char *text, const char *const *parameters)
{
    nl_sections sections;
    nl_synthesis *s = nl_sections_parse(&sections, text, "test", parameters) ? nl_synthesis_new(&sections) : NULL;
    nl_sections_free(&sections);
    return s;
}

static nl_synthesis *rules_of(const char *text)
{
    nl_synthesis *s = parse_rules(text, NULL);
    if (s == NULL)
        fail_msg("%s", nl_error_message());
    return s;
}

/* Puts an event. The arguments are its time in microseconds, and its name and fields in ULM. */
static void synthesis_put(nl_synthesis *s, int64_t us, const char *event, const char *fields)
{
    char line[512];
    int size = snprintf(line, sizeof line, "DATE=20260101000000.%06d HOST=h PROG=p LVL=System NL.EVNT=%s %s\n", (int)us,
                        event, fields);
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *record;
    nl_decoder_feed(decoder, line, (size_t)size);
    assert_int_equal(nl_decoder_next(decoder, &record), NL_OK);
    nl_synthesis_put(s, record);
    nl_decoder_free(decoder);
}

static int64_t second_ns(void)
{
    int64_t time_ns = 0;
    nl_decoder *decoder = nl_decoder_new(NULL);
    static const char line[] = "DATE=20260101000000.000000 HOST=h PROG=p LVL=System NL.EVNT=x\n";
    const nl_record *read;
    nl_decoder_feed(decoder, line, sizeof line - 1);
    if (nl_decoder_next(decoder, &read) == NL_OK)
        time_ns = read->time_ns;
    nl_decoder_free(decoder);
    return time_ns;
}

/* Returns all results, one per line: microseconds, event, program, and fields. The caller frees it. */
static char *made(nl_synthesis *s)
{
    char *all = calloc(1, 1 << 16), scratch[NL_FIELD_TEXT_SIZE];
    size_t size = 0;
    const nl_record *record;
    while ((record = nl_synthesis_next(s)) != NULL) {
        size += (size_t)sprintf(all + size, "%d %.*s %.*s", (int)((record->time_ns - second_ns()) / 1000),
                                (int)record->event.size, record->event.data, (int)record->prog.size, record->prog.data);
        for (size_t i = 0; i < record->field_count; i++) {
            nl_string text = nl_field_text(&record->fields[i], scratch);
            if (record->fields[i].name.size != 4 || memcmp(record->fields[i].name.data, "FROM", 4) != 0)
                size += (size_t)sprintf(all + size, " %.*s=%.*s", (int)record->fields[i].name.size,
                                        record->fields[i].name.data, (int)text.size, text.data);
        }
        size += (size_t)sprintf(all + size, "\n");
    }
    return all;
}

static void expect(nl_synthesis *s, const char *expected)
{
    nl_synthesis_finish(s);
    char *all = made(s);
    assert_string_equal(all, expected);
    free(all);
    nl_synthesis_free(s);
}

/* ---- spans ---- */

static void test_span(void **state)
{
    (void)state;
    nl_synthesis *s =
        rules_of("[span S]\nbegin = a:b key K\nend = a.c key L where OK == 1\nfield = N begin.N\nfield = M end.N\n");
    synthesis_put(s, 30, "a.c", "L=2 OK=1 N=x"); /* out of order, and without a begin */
    synthesis_put(s, 20, "a.c", "L=1 OK=1 N=z");
    synthesis_put(s, 10, "a.b", "K=1 N=y");
    synthesis_put(s, 15, "a.c", "L=1 OK=0 N=no");
    synthesis_put(s, 40, "a.b", "K=3 N=open");
    synthesis_put(s, 50, "a.b", "N=nokey");
    expect(s, "20 S p N=y M=z DUR.NS=10000\n");
}

static void test_span_begun_again(void **state)
{
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        nl_synthesis *s = rules_of(keep ? "[span S]\nbegin = b key K\nend = e key K\nagain = keep\n"
                                        : "[span S]\nbegin = b key K\nend = e key K\nagain = restart\n");
        synthesis_put(s, 10, "b", "K=1");
        synthesis_put(s, 20, "b", "K=1");
        synthesis_put(s, 30, "e", "K=1");
        synthesis_put(s, 40, "e", "K=1");
        expect(s, keep ? "30 S p DUR.NS=20000\n" : "30 S p DUR.NS=10000\n");
    }
}

static void test_span_cancelled_and_too_long(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[span S]\nbegin = b key K\nend = e key K\ncancel = c key K\nlongest = 100us\n");
    synthesis_put(s, 10, "b", "K=1");
    synthesis_put(s, 11, "c", "K=1");
    synthesis_put(s, 12, "e", "K=1");
    synthesis_put(s, 20, "b", "K=1");
    synthesis_put(s, 121, "e", "K=1");
    synthesis_put(s, 200, "b", "K=1");
    synthesis_put(s, 300, "e", "K=1");
    expect(s, "300 S p DUR.NS=100000\n");
}

static void test_span_pairs_and_same_event(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[span S]\nbegin = b key K\nend = b key K\nemit = pair\nfield = K\n");
    synthesis_put(s, 10, "b", "K=1");
    synthesis_put(s, 25, "b", "K=1");
    expect(s, "10 S.Begin p K=1\n25 S.End p K=1 DUR.NS=15000\n25 S.Begin p K=1\n");
}

/* A lost record may have been an end: no span crosses a loss. */
static void test_lost(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[span S]\nbegin = b key K\nend = e key K\n");
    synthesis_put(s, 10, "b", "K=1");
    synthesis_put(s, 20, "NetLogger.Lost", "CPU=0 COUNT=3");
    synthesis_put(s, 30, "e", "K=1");
    synthesis_put(s, 40, "b", "K=1");
    synthesis_put(s, 50, "e", "K=1");
    nl_synthesis_finish(s);
    nl_synthesis_stats stats;
    nl_synthesis_get_stats(s, &stats);
    assert_int_equal(stats.dropped, 1);
    assert_int_equal(stats.made, 1);
    expect(s, "50 S p DUR.NS=10000\n");
}

/* Kernel addresses exceed INT64_MAX. Equal numbers are equal keys for all spellings. */
static void test_keys(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[span S]\nbegin = b key K,N\nend = e key K,N\n");
    synthesis_put(s, 10, "b", "K=18446612682090000000 N=x");
    synthesis_put(s, 15, "e", "K=18446612682090000001 N=x");
    synthesis_put(s, 16, "e", "K=18446612682090000000 N=y");
    synthesis_put(s, 20, "e", "K=18446612682090000000 N=x");
    synthesis_put(s, 30, "b", "K=007 N=x");
    synthesis_put(s, 40, "e", "K=7 N=x");
    expect(s, "20 S p DUR.NS=10000\n");
}

/* ---- sums ---- */

static void test_sum(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[sum S]\nof = a key K\nvalue = V\n");
    for (int i = 1; i <= 100; i++) {
        char fields[32];
        snprintf(fields, sizeof fields, "K=x V=%d", i);
        synthesis_put(s, i, "a", fields);
    }
    expect(s, "100 S p K=x COUNT=100 SUM=5050 MEAN=50.5 MIN=1 MAX=100 P50=50 P90=90 P99=99\n");
}

/* A rule ignores values that are not numbers; nan is not a number. */
static void test_sum_without_numbers(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[sum S]\nof = a key K\nvalue = V\n");
    const char *values[] = {"K=x V=1", "K=x V=nan", "K=x V=-NaN", "K=x V=word", "K=x V=2"};
    for (int i = 0; i < 5; i++)
        synthesis_put(s, i, "a", values[i]);
    expect(s, "4 S p K=x COUNT=2 SUM=3 MEAN=1.5 MIN=1 MAX=2 P50=1 P90=2 P99=2\n");
}

static void test_rate(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[rate R]\nof = a where OK != 0\nevery = 100ms\n");
    synthesis_put(s, 10000, "a", "OK=1");
    synthesis_put(s, 20000, "a", "OK=1");
    synthesis_put(s, 30000, "a", "OK=0");
    synthesis_put(s, 250000, "a", "OK=1");
    nl_synthesis_advance(s, second_ns() + 400000000);
    expect(s, "100000 R p COUNT=2 RATE=20\n200000 R p COUNT=0 RATE=0\n300000 R p COUNT=1 RATE=10\n400000 R p COUNT=0 "
              "RATE=0\n");
}

/* A program that adapts to a rate needs a rate of zero from the start. */
static void test_rate_of_nothing(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[rate R]\nof = a\nevery = 100ms\n");
    nl_synthesis_advance(s, second_ns() + 50000000);
    nl_synthesis_advance(s, second_ns() + 210000000);
    expect(s, "100000 R synthesis COUNT=0 RATE=0\n200000 R synthesis COUNT=0 RATE=0\n");
}

static void test_histogram(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[histogram H]\nof = a\nvalue = V\n");
    const char *values[] = {"V=0", "V=1", "V=3", "V=2", "V=1000"};
    for (int i = 0; i < 5; i++)
        synthesis_put(s, i, "a", values[i]);
    expect(s, "4 H p BUCKET.FROM=0 BUCKET.TO=0 COUNT=1\n4 H p BUCKET.FROM=1 BUCKET.TO=1 COUNT=1\n"
              "4 H p BUCKET.FROM=2 BUCKET.TO=3 COUNT=2\n4 H p BUCKET.FROM=512 BUCKET.TO=1023 COUNT=1\n");
}

/* A rule produces the input of the rules below it. */
static void test_rules_on_rules(void **state)
{
    (void)state;
    nl_synthesis *s =
        rules_of("[span S]\nbegin = b key K\nend = e key K\nfield = K\n[sum T]\nof = S key K\nvalue = DUR.NS\n"
                 "[make M]\nof = * where NL.EVNT == M\nfield = K\n");
    for (int i = 0; i < 3; i++) {
        synthesis_put(s, 10 * i, "b", "K=1");
        synthesis_put(s, 10 * i + 5, "e", "K=1");
    }
    expect(s, "5 S p K=1 DUR.NS=5000\n15 S p K=1 DUR.NS=5000\n25 S p K=1 DUR.NS=5000\n"
              "25 T p K=1 COUNT=3 SUM=15000 MEAN=5000 MIN=5000 MAX=5000 P50=5000 P90=5000 P99=5000\n");
}

/* ---- fields ---- */

static void test_fields(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[table COLOUR]\n1 = red\n2 = deep green\n[programs]\nlearn = P N\n"
                               "[make M]\nof = a\nfield = C COLOUR[X]\nfield = A address(B)\nfield = L 'so is it'\n"
                               "field = W program(T)\nfield = PROG Q\nfield = NONE\n");
    synthesis_put(s, 1, "a", "X=2 B=0a000001 T=9 Q=other");
    synthesis_put(s, 2, "a", "X=3 B=02001389c0a80001000000000000000000000000000000000000000f P=9 N=nine T=8");
    synthesis_put(s, 3, "a", "X=1 B=00000000000000000000000000000001 T=9");
    synthesis_put(s, 4, "a", "B=zz");
    expect(s, "1 M other C=deep green A=10.0.0.1 L=so is it W=9\n"
              "2 M p C=3 A=192.168.0.1 L=so is it W=8\n"
              "3 M p C=red A=::1 L=so is it W=nine\n"
              "4 M p A=zz L=so is it\n");
}

/* ---- states ---- */

#define STATES                                                                                                         \
    "[states S]\nmark = lock: lock key T\nunmark = lock: unlock key T\nbecomes = net: recv key T\n"                    \
    "state = ready: wake key W unless run\nstate = ready: switch key P where ST == 0\n"                                \
    "wait = disk: switch key P where ST == 2\nwait = sleep: switch key P where ST == 1\n"                              \
    "state = run: switch key N\nsegment = run: app.* key T\nfield = ID begin.ID\n"

static void test_segments(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of(STATES);
    synthesis_put(s, 0, "app.a", "T=1 ID=7");
    synthesis_put(s, 10, "switch", "P=1 ST=1 N=2"); /* sleeps for an unknown reason */
    synthesis_put(s, 12, "wake", "W=1");
    synthesis_put(s, 15, "switch", "P=2 ST=0 N=1");
    synthesis_put(s, 16, "recv", "T=1"); /* the network was the reason */
    synthesis_put(s, 20, "lock", "T=1");
    synthesis_put(s, 21, "switch", "P=1 ST=2 N=2"); /* a lock, not the disk */
    synthesis_put(s, 31, "wake", "W=1");
    synthesis_put(s, 31, "switch", "P=2 ST=0 N=1");
    synthesis_put(s, 32, "unlock", "T=1");
    synthesis_put(s, 33, "switch", "P=1 ST=2 N=2");
    synthesis_put(s, 40, "switch", "P=2 ST=0 N=1");
    synthesis_put(s, 45, "wake", "W=1"); /* the thread runs, so its state does not change */
    synthesis_put(s, 50, "app.b", "T=1 ID=7");
    expect(
        s,
        "50 S p ID=7 FROM.EVENT=app.a TO.EVENT=app.b DUR.NS=50000 LOCK.NS=10000 NET.NS=2000 READY.NS=3000 RUN.NS=28000 "
        "DISK.NS=7000 SLEEP.NS=0 UNKNOWN.NS=0\n");
}

static void test_changes(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of(STATES "emit = changes\n");
    synthesis_put(s, 0, "app.a", "T=1 ID=7");
    synthesis_put(s, 10, "switch", "P=1 ST=1 N=2");
    synthesis_put(s, 12, "wake", "W=1");
    synthesis_put(s, 15, "switch", "P=2 ST=0 N=1");
    synthesis_put(s, 16, "recv", "T=1");
    synthesis_put(s, 50, "app.b", "T=1 ID=8");
    expect(s, "0 S.run p ID=7 DUR.NS=10000\n10 S.net p ID=7 DUR.NS=2000\n12 S.ready p ID=7 DUR.NS=3000\n");
}

static void test_marks_that_overlay(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[states S]\nmarks = always\nmark = irq: in key C\nunmark = irq: out key C\n"
                               "mark = soft: sin key C\nunmark = soft: sout key C\nstate = other: switch key C\n"
                               "segment = loop: app key C\n");
    synthesis_put(s, 0, "app", "C=0");
    synthesis_put(s, 10, "sin", "C=0");
    synthesis_put(s, 12, "in", "C=0");
    synthesis_put(s, 15, "out", "C=0");
    synthesis_put(s, 20, "sout", "C=0");
    synthesis_put(s, 30, "switch", "C=0");
    synthesis_put(s, 100, "app", "C=0");
    expect(s, "100 S p FROM.EVENT=app TO.EVENT=app DUR.NS=100000 IRQ.NS=3000 SOFT.NS=7000 OTHER.NS=70000 LOOP.NS=20000 "
              "UNKNOWN.NS=0\n");
}

/* ---- follows ---- */

static void test_follow(void **state)
{
    (void)state;
    nl_synthesis *s =
        rules_of("[follow R]\nbegin = send to thread T id ID as sent\npass = queue from thread T to packet SKB\n"
                 "pass = receive from packet SKB to cpu C move as received\n"
                 "pass = wake from cpu C to thread W as woken\nleave = exit from cpu C\n"
                 "step = switch from thread N as running\nend = answer from thread T\n");
    synthesis_put(s, 0, "send", "T=1 ID=7");
    synthesis_put(s, 1, "queue", "T=1 SKB=100");
    synthesis_put(s, 2, "queue", "T=5 SKB=101"); /* another thread's */
    synthesis_put(s, 3, "receive", "SKB=100 C=0");
    synthesis_put(s, 4, "receive", "SKB=100 C=1"); /* SKB 100 has been received already */
    synthesis_put(s, 5, "wake", "C=0 W=2");
    synthesis_put(s, 6, "exit", "C=0");
    synthesis_put(s, 7, "wake", "C=0 W=3");
    synthesis_put(s, 8, "switch", "N=2");
    synthesis_put(s, 9, "answer", "T=2");
    synthesis_put(s, 10, "answer", "T=1"); /* T=2 has already answered the request */
    expect(
        s,
        "0 R.sent p REQUEST=7 SINCE.NS=0\n1 R.queue p REQUEST=7 SINCE.NS=1000\n3 R.received p REQUEST=7 SINCE.NS=3000\n"
        "5 R.woken p REQUEST=7 SINCE.NS=5000\n8 R.running p REQUEST=7 SINCE.NS=8000\n9 R.answer p REQUEST=7 "
        "SINCE.NS=9000\n");
}

/* ---- order and volume ---- */

static void test_late(void **state)
{
    (void)state;
    nl_synthesis *s = rules_of("[make M]\nof = a\n");
    synthesis_put(s, 50, "a", "");
    synthesis_put(s, 10, "a", "");
    nl_synthesis_advance(s, second_ns() + 30000);
    synthesis_put(s, 20, "a", "");
    nl_synthesis_advance(s, second_ns() + 100000);
    nl_synthesis_stats stats;
    nl_synthesis_get_stats(s, &stats);
    assert_int_equal(stats.late, 1);
    assert_int_equal(stats.taken, 3);
    expect(s, "10 M p\n20 M p\n50 M p\n");
}

/* Opens the maximum number of spans. The module counts the spans that do not fit. */
static void test_many(void **state)
{
    (void)state;
    enum { OPEN_MAX = 1 << 20, MANY = OPEN_MAX + 10000 };
    const int ended = (int)times_here(OPEN_MAX);
    nl_synthesis *s = rules_of("[span S]\nbegin = b key K\nend = e key K\n");
    nl_record *record = nl_record_new();
    for (int i = 0; i < 2 * MANY; i++) {
        const int key = i % MANY;
        if (i >= MANY && key >= ended && key < OPEN_MAX)
            continue;
        nl_record_clear(record);
        nl_record_set_time(record, i);
        nl_record_set_event(record, i < MANY ? "b" : "e", 1);
        nl_record_add_int(record, "K", key);
        nl_synthesis_put(s, record);
    }
    nl_record_free(record);
    nl_synthesis_finish(s);
    nl_synthesis_stats stats;
    nl_synthesis_get_stats(s, &stats);
    assert_int_equal(stats.dropped, MANY - OPEN_MAX);
    assert_int_equal(stats.made, ended);
    uint64_t count = 0;
    while (nl_synthesis_next(s) != NULL)
        count++;
    assert_int_equal(count, ended);
    nl_synthesis_free(s);
}

/* ---- files ---- */

static void test_parameters(void **state)
{
    (void)state;
    static const char text[] = "[parameter E]\ndefault = a\n[make M]\nof = ${E} \\\n  where V == ${E}\n";
    const char *const other[] = {"E=b", NULL}, *const wrong[] = {"F=b", NULL};
    nl_synthesis *s = parse_rules(text, other);
    synthesis_put(s, 1, "a", "V=a");
    synthesis_put(s, 2, "b", "V=b");
    expect(s, "2 M p\n");
    assert_null(parse_rules(text, wrong));
    assert_string_equal(nl_error_message(), "test: unknown parameter \"F\"");
}

/* An event has a bit for each clause that concerns it. */
static void test_too_many_clauses(void **state)
{
    enum { LIMIT = 64, RULE_SIZE = 40 };
    static const char *const patterns[] = {"a", "a*", "*"};
    (void)state;
    for (size_t kind = 0; kind < sizeof patterns / sizeof *patterns; kind++)
        for (int count = LIMIT; count <= LIMIT + 1; count++) {
            char text[(LIMIT + 1) * RULE_SIZE], message[80];
            size_t size = 0;
            for (int i = 0; i < count; i++)
                size += (size_t)snprintf(text + size, RULE_SIZE, "[make M%d]\nof = %s\n", i, patterns[kind]);
            nl_synthesis *s = parse_rules(text, NULL);
            assert_int_equal(s != NULL, count == LIMIT);
            nl_synthesis_free(s);
            snprintf(message, sizeof message, "test:%d: more than 64 clauses concern %s", 2 * count,
                     kind == 0 ? "a" : "an event");
            if (count > LIMIT)
                assert_string_equal(nl_error_message(), message);
        }
}

static void test_wrong_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"[span]\nbegin = a\nend = b\n",
         "test:1: [span NAME]: missing or invalid NAME, the name of the derived events"},
        {"[span S]\nbegin = a\nend = b\nwhat = 1\n", "test:4: this kind of rule has no setting \"what\""},
        {"[span S]\nbegin =\nend = b\n", "test:2: expected an event name"},
        {"[span S]\nbegin = a key\nend = b\n", "test:2: key requires field names, separated by commas"},
        {"[span S]\nbegin = a from thread T\nend = b\n", "test:2: \"from\" and \"to\" are valid only in [follow]"},
        {"[make M]\nof = a\nfield = A what(B)\n", "test:3: unknown source \"what(B)\"; expected KIND(FIELD), "
                                                  "where KIND is program, address, syscall, symbol, hexadecimal or "
                                                  "device, or TABLE[FIELD] of a preceding [table TABLE]"},
        {"[states S]\nstate = run a key T\n", "test:2: expected \"STATE: EVENT key FIELD\""},
        {"[make M]\nof = a where (\n", NULL},
        {"[parameter A]\ndefault = 1\n[make M]\nof = ${A\n", "test:4: no [parameter] section declares ${A"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(parse_rules(wrong[i].text, NULL));
        if (wrong[i].message != NULL)
            assert_string_equal(nl_error_message(), wrong[i].message);
    }
    nl_sections sections;
    assert_false(nl_sections_read(&sections, "/nonexistent", NULL));
    nl_sections_free(&sections);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_span),
        cmocka_unit_test(test_span_begun_again),
        cmocka_unit_test(test_span_cancelled_and_too_long),
        cmocka_unit_test(test_span_pairs_and_same_event),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_sum_without_numbers),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_rate_of_nothing),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_rules_on_rules),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_marks_that_overlay),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_too_many_clauses),
        cmocka_unit_test(test_wrong_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
