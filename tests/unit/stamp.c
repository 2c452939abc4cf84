/* The packets of path probes, the counts of replies and losses, and the bounds of the reflector. */
#include "agent/reflector_limits.h"
#include "sensors/path_tally.h"
#include "sensors/stamp.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS INT64_C(1000000)
#define NOW_NS (INT64_C(1790000000) * NL_NS_PER_SECOND + 123456789)

/* ---- packets ---- */

static void test_probe_round_trip(void **state)
{
    /* The last times are in NTP's era 1, and before 1970. */
    static const int64_t times[] = {NOW_NS, NOW_NS + 1, INT64_C(2085978496) * NL_NS_PER_SECOND + 999999999, -1};
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        stamp_probe probe = {.sequence = 0xfedcba98, .session = 0x7654, .sent_ns = times[i], .error_ns = 250000}, read;
        unsigned char packet[STAMP_SIZE];
        stamp_write_probe(&probe, packet);
        assert_true(stamp_read_probe(packet, sizeof packet, &read));
        assert_int_equal(read.sequence, probe.sequence);
        assert_int_equal(read.session, probe.session);
        assert_int_equal(read.sent_ns, probe.sent_ns);
        assert_in_range(read.error_ns, 250000, 255000);
        assert_false(stamp_read_probe(packet, STAMP_SIZE - 1, &read));
    }
}

static void test_bytes_are_those_of_the_standard(void **state)
{
    static const unsigned char expected[STAMP_SIZE] = {0,    0, 0, 7, 0x83,      0xaa, 0x7e, 0x81,
                                                       0x80, 0, 0, 0, 0x80 | 25, 0x80, 0x12, 0x34};
    unsigned char packet[STAMP_SIZE];
    (void)state;
    /* 1.5 s after 1970 with an error of just below 1 s: 2^25 * 128 units of 2^-32 s. */
    stamp_write_probe(
        &(stamp_probe){
            .sequence = 7, .session = 0x1234, .sent_ns = 3 * NL_NS_PER_SECOND / 2, .error_ns = NL_NS_PER_SECOND - 1},
        packet);
    assert_memory_equal(packet, expected, sizeof expected);
}

static void test_errors_are_rounded_up_or_unknown(void **state)
{
    (void)state;
    for (int64_t error_ns = 0; error_ns < 2 * NL_NS_PER_SECOND; error_ns = error_ns * 2 + 1) {
        stamp_probe read;
        unsigned char packet[STAMP_SIZE];
        stamp_write_probe(&(stamp_probe){.error_ns = error_ns}, packet);
        assert_true(stamp_read_probe(packet, sizeof packet, &read));
        assert_true(read.error_ns >= error_ns && (double)read.error_ns <= (double)error_ns * 1.02 + 2);
    }
    static const int64_t unknown[] = {STAMP_ERROR_UNKNOWN, 3 * NL_NS_PER_SECOND, INT64_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        stamp_probe read;
        unsigned char packet[STAMP_SIZE];
        stamp_write_probe(&(stamp_probe){.error_ns = unknown[i]}, packet);
        assert_true(stamp_read_probe(packet, sizeof packet, &read));
        assert_int_equal(read.error_ns, STAMP_ERROR_UNKNOWN);
    }
}

static void test_reply_repeats_the_probe_and_is_no_probe(void **state)
{
    stamp_probe probe = {.sequence = 9, .session = 3, .sent_ns = NOW_NS, .error_ns = 1000};
    stamp_reply reply = {.sequence = 2,
                         .received_ns = NOW_NS + 5,
                         .replied_ns = NOW_NS + 7,
                         .error_ns = 2000,
                         .ttl = 250},
                read;
    unsigned char sent[STAMP_SIZE], packet[STAMP_SIZE];
    (void)state;
    stamp_write_probe(&probe, sent);
    stamp_write_reply(sent, &reply, packet);
    assert_true(stamp_read_reply(packet, sizeof packet, &read));
    assert_int_equal(read.probe.sequence, 9);
    assert_int_equal(read.probe.session, 3);
    assert_int_equal(read.probe.sent_ns, NOW_NS);
    assert_int_equal(read.sequence, 2);
    assert_int_equal(read.received_ns, NOW_NS + 5);
    assert_int_equal(read.replied_ns, NOW_NS + 7);
    assert_in_range(read.error_ns, 2000, 2050);
    assert_int_equal(read.ttl, 250);
    assert_false(stamp_read_probe(packet, sizeof packet, &probe));
    packet[12] |= 0x40; /* times in the format of PTP */
    assert_false(stamp_read_reply(packet, sizeof packet, &read));
}

/* ---- counts ---- */

enum { FIRST = 1000, SESSION = 5 };

typedef struct path_world {
    path_tally tally;
    int64_t now_ns;
    uint32_t reflected; /* number of probes that the reflector has received */
} path_world;

static path_world *new_world(void)
{
    path_world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->now_ns = 1;
    path_tally_begin(&w->tally, SESSION, FIRST);
    return w;
}

static stamp_probe send_probe(path_world *w)
{
    w->now_ns += 10 * MS;
    return path_tally_send(&w->tally, w->now_ns, NOW_NS + w->now_ns, 0);
}

/* The reflector's clock is 5 ms fast. The probe needs 20 ms, and the reply 30 ms; the reflector needs 1 ms. */
static stamp_reply reflect(path_world *w, stamp_probe probe)
{
    return (stamp_reply){.probe = probe,
                         .sequence = w->reflected++,
                         .received_ns = probe.sent_ns + 25 * MS,
                         .replied_ns = probe.sent_ns + 26 * MS,
                         .error_ns = 6 * MS,
                         .ttl = 253};
}

static bool take_reply(path_world *w, stamp_reply reply)
{
    return path_tally_reply(&w->tally, &reply, reply.replied_ns + 25 * MS, 252);
}

static path_report report_after(path_world *w, int64_t ns)
{
    path_tally_decide(&w->tally, w->now_ns + ns);
    return path_tally_take(&w->tally);
}

static void test_delays(void **state)
{
    (void)state;
    path_world *w = new_world();
    for (int i = 0; i < 3; i++)
        assert_true(take_reply(w, reflect(w, send_probe(w))));
    path_report r = report_after(w, 0);
    assert_int_equal(r.replies, 3);
    assert_int_equal(r.out.min_ns, 25 * MS);
    assert_int_equal(r.back.max_ns, 25 * MS);
    assert_int_equal(r.round_trip.min_ns, 50 * MS);
    assert_int_equal(r.round_trip.sum_ns, 150 * MS);
    assert_int_equal(r.peer_error_ns, 6 * MS);
    assert_int_equal(r.ttl_out, 253);
    assert_int_equal(r.ttl_back, 252);
    r = report_after(w, 0);
    assert_int_equal(r.replies + r.lost + r.out.count, 0);
    free(w);
}

/* Each probe in `fates` is lost on the way out, is lost on the way back, or gets a reply. */
static void test_losses_in_each_direction(void **state)
{
    static const char fates[] = "o.bb.oob...b"; /* o: lost on the way out, b: on the way back */
    (void)state;
    path_world *w = new_world();
    for (const char *fate = fates; *fate != '\0'; fate++) {
        stamp_probe probe = send_probe(w);
        if (*fate == 'o')
            continue;
        stamp_reply reply = reflect(w, probe);
        if (*fate == '.')
            take_reply(w, reply);
    }
    path_report r = report_after(w, 0);
    assert_int_equal(r.replies, 5);
    assert_int_equal(r.lost, 0); /* no probe is late yet */
    r = report_after(w, PATH_LATE_NS);
    assert_int_equal(r.lost, 7);
    assert_int_equal(r.lost_out, 3);
    assert_int_equal(r.lost_back,
                     3); /* the direction of the last loss is unknown, because no reply has arrived after it */
    assert_true(r.knows_direction);
    take_reply(w, reflect(w, send_probe(w)));
    r = report_after(w, 0);
    assert_int_equal(r.lost, 0);
    assert_int_equal(r.lost_back, 1);
    free(w);
}

static void test_stateless_reflector_shows_no_direction(void **state)
{
    (void)state;
    path_world *w = new_world();
    for (int i = 0; i < 4; i++) {
        stamp_probe probe = send_probe(w);
        w->reflected = probe.sequence;
        if (i != 1)
            take_reply(w, reflect(w, probe));
    }
    path_report r = report_after(w, PATH_LATE_NS);
    assert_int_equal(r.lost, 1);
    assert_int_equal(r.lost_out + r.lost_back, 0);
    assert_false(r.knows_direction);
    free(w);
}

static void test_duplicates_and_reordering(void **state)
{
    (void)state;
    path_world *w = new_world();
    stamp_reply first = reflect(w, send_probe(w)), second = reflect(w, send_probe(w));
    assert_true(take_reply(w, second));
    assert_true(take_reply(w, first));
    assert_true(take_reply(w, first));
    path_report r = report_after(w, 0);
    assert_int_equal(r.replies, 2);
    assert_int_equal(r.reordered, 1);
    assert_int_equal(r.duplicates, 1);
    assert_int_equal(r.lost, 0);
    assert_int_equal(r.round_trip.count, 2);
    free(w);
}

static void test_other_replies_are_ignored(void **state)
{
    (void)state;
    path_world *w = new_world();
    stamp_reply good = reflect(w, send_probe(w)), late = reflect(w, send_probe(w));
    for (int i = 0; i < 4; i++) {
        stamp_reply bad = good;
        bad.probe.session += i == 0;
        bad.probe.sent_ns += i == 1;
        bad.probe.sequence += i == 2 ? 1 : 0;
        bad.probe.sequence = i == 3 ? 0 : bad.probe.sequence;
        assert_false(take_reply(w, bad));
    }
    assert_true(take_reply(w, good));
    path_report r = report_after(w, PATH_LATE_NS);
    assert_int_equal(r.replies, 1);
    assert_int_equal(r.lost, 1);
    assert_false(take_reply(w, late)); /* it already counts as lost */
    free(w);
}

/* More probes are pending than the tally can keep, and the sequence numbers wrap around. */
static void test_many_probes_without_replies(void **state)
{
    (void)state;
    path_world *w = new_world();
    path_tally_begin(&w->tally, SESSION, UINT32_MAX - 10);
    for (int i = 0; i < 3 * PATH_PENDING_MAX; i++)
        path_tally_send(&w->tally, 1, NOW_NS, 0);
    path_report r = path_tally_take(&w->tally);
    assert_in_range(r.lost, 2 * PATH_PENDING_MAX, 2 * PATH_PENDING_MAX + 1);
    r = report_after(w, PATH_LATE_NS);
    assert_in_range(r.lost, PATH_PENDING_MAX - 1, PATH_PENDING_MAX);
    free(w);
}

/* ---- the reflector's bounds ---- */

static struct sockaddr_storage address_of(uint32_t host, unsigned port)
{
    struct sockaddr_storage address = {.ss_family = AF_INET};
    ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(0x0a000000 + host);
    ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
    return address;
}

static bool ask(reflector_limits *l, uint32_t host, unsigned port, int64_t now_ns, uint32_t *number)
{
    struct sockaddr_storage from = address_of(host, port);
    return reflector_limits_probe(l, (struct sockaddr *)&from, now_ns, number);
}

static size_t answered(reflector_limits *l, uint32_t host, size_t count, int64_t now_ns)
{
    size_t replies = 0;
    uint32_t number;
    for (size_t i = 0; i < count; i++)
        replies += ask(l, host, 1, now_ns, &number);
    return replies;
}

static void test_rates(void **state)
{
    static reflector_limits l;
    int64_t now_ns = 1000 * NL_NS_PER_SECOND;
    uint32_t number;
    (void)state;
    assert_int_equal(answered(&l, 1, 1000, now_ns), REFLECTOR_SESSION_RATE);
    assert_int_equal(answered(&l, 1, 1000, now_ns + NL_NS_PER_SECOND / 2), REFLECTOR_SESSION_RATE / 2);
    now_ns += 100 * NL_NS_PER_SECOND; /* all sessions have ended */
    size_t replies = 0;
    for (uint32_t host = 0; host < REFLECTOR_SESSIONS_MAX; host++)
        replies += answered(&l, host, REFLECTOR_SESSION_RATE, now_ns);
    assert_int_equal(replies, REFLECTOR_RATE);
    now_ns += 100 * NL_NS_PER_SECOND;
    for (uint32_t host = 0; host < REFLECTOR_SESSIONS_MAX; host++)
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(ask(&l, host, 7, now_ns, &number));
            assert_int_equal(number, i);
        }
    assert_false(ask(&l, 0, 8, now_ns, &number)); /* all sessions are in use */
    assert_true(ask(&l, 0, 8, now_ns + REFLECTOR_SESSION_NS, &number));
    assert_int_equal(number, 0);
}

static void test_transfers(void **state)
{
    static reflector_limits l;
    int64_t now_ns = 1000 * NL_NS_PER_SECOND;
    (void)state;
    for (uint32_t host = 0; host <= REFLECTOR_TRANSFERS_MAX; host++) {
        struct sockaddr_storage from = address_of(host, host + 1), again = address_of(host, 9);
        assert_int_equal(reflector_limits_transfer(&l, (struct sockaddr *)&from, now_ns),
                         host < REFLECTOR_TRANSFERS_MAX);
        assert_false(reflector_limits_transfer(&l, (struct sockaddr *)&again, now_ns + REFLECTOR_TRANSFER_NS - 1));
    }
    struct sockaddr_storage from = address_of(0, 1);
    assert_true(reflector_limits_transfer(&l, (struct sockaddr *)&from, now_ns + REFLECTOR_TRANSFER_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe_round_trip),
        cmocka_unit_test(test_bytes_are_those_of_the_standard),
        cmocka_unit_test(test_errors_are_rounded_up_or_unknown),
        cmocka_unit_test(test_reply_repeats_the_probe_and_is_no_probe),
        cmocka_unit_test(test_delays),
        cmocka_unit_test(test_losses_in_each_direction),
        cmocka_unit_test(test_stateless_reflector_shows_no_direction),
        cmocka_unit_test(test_duplicates_and_reordering),
        cmocka_unit_test(test_other_replies_are_ignored),
        cmocka_unit_test(test_many_probes_without_replies),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_transfers),
    };
    return cmocka_run_group_tests_name("stamp", tests, NULL, NULL);
}
