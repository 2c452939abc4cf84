/* The path emulator's model: packets leave at the right time. The time is a number here. */
#include "text_support.h"

#include "path.h"

#include <stdlib.h>

#define MS INT64_C(1000000)

typedef struct outcome {
    unsigned arrived, late; /* late: packets that arrive after a packet that was sent later */
    int64_t first_ns, last_ns, min_ns, max_ns;
    uint64_t bytes;
    path_counts counts;
} outcome;

/* Sends that many packets of a size at equal intervals, receives them when they are due, and frees the path. */
static outcome send(path_settings settings, unsigned count, size_t size, int64_t apart_ns)
{
    path *p = path_new(&settings);
    outcome o = {.min_ns = INT64_MAX, .max_ns = INT64_MIN};
    unsigned char bytes[65536] = {0};
    unsigned latest = 0;
    assert_non_null(p);
    for (unsigned i = 0; i <= count; i++) {
        int64_t now_ns = i < count ? i * apart_ns : INT64_MAX - 1;
        for (int64_t next_ns; (next_ns = path_next_ns(p)) <= now_ns;) {
            path_packet *packet = path_take(p, next_ns);
            unsigned number;
            assert_non_null(packet);
            assert_int_equal(packet->size, size);
            memcpy(&number, packet->bytes, sizeof number);
            int64_t took_ns = packet->due_ns - number * apart_ns;
            o.min_ns = took_ns < o.min_ns ? took_ns : o.min_ns;
            o.max_ns = took_ns > o.max_ns ? took_ns : o.max_ns;
            o.first_ns = o.arrived == 0 ? packet->due_ns : o.first_ns;
            o.last_ns = packet->due_ns;
            o.late += number < latest;
            latest = number > latest ? number : latest;
            o.bytes += size;
            o.arrived++;
            free(packet);
        }
        if (i < count) {
            memcpy(bytes, &i, sizeof i);
            assert_true(path_put(p, bytes, size, now_ns));
        }
    }
    o.counts = path_count(p);
    assert_int_equal(o.counts.packets, count);
    assert_int_equal(o.counts.arrived, o.arrived);
    assert_int_equal(o.counts.arrived + o.counts.lost + o.counts.overflowed, count);
    path_free(p);
    return o;
}

static void delays(void **state)
{
    (void)state;
    outcome o = send((path_settings){.delay_ns = 30 * MS}, 1000, 1500, MS);
    assert_int_equal(o.arrived, 1000);
    assert_true(o.min_ns == 30 * MS && o.max_ns == 30 * MS);
    assert_int_equal(o.late, 0);
}

static void carries_its_rate(void **state)
{
    (void)state;
    /* The packets have twice the rate of the link: 1250 bytes every 0.5 ms, over 10 Mbit/s. */
    outcome o = send((path_settings){.rate = 10e6, .delay_ns = 30 * MS}, 2000, 1250, MS / 2);
    assert_int_equal(o.arrived, 2000);
    assert_true(o.first_ns == 31 * MS);
    assert_true(o.last_ns == 2030 * MS);
    /* The link's queue is limited to its buffer: the 11th packet of a burst is dropped. */
    o = send((path_settings){.rate = 10e6, .buffer_bytes = 12500}, 30, 1250, 0);
    assert_int_equal(o.counts.overflowed, 20);
    assert_true(o.last_ns == 10 * MS);
    /* Below the rate, no packet waits. */
    o = send((path_settings){.rate = 10e6, .buffer_bytes = 1250}, 1000, 1250, MS);
    assert_int_equal(o.counts.overflowed, 0);
    assert_true(o.max_ns == MS);
    /* A policer drops the same packets as a queue, and delays none. */
    o = send((path_settings){.rate = 10e6, .buffer_bytes = 12500, .policed = true}, 30, 1250, 0);
    assert_int_equal(o.counts.overflowed, 20);
    assert_true(o.last_ns == 0);
}

static void loses_by_chance(void **state)
{
    (void)state;
    const double shares[] = {0.0001, 0.01, 0.3};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        outcome o = send((path_settings){.loss = shares[i], .seed = 7}, 1000000, 64, 1);
        /* The limit is four standard deviations of the binomial distribution. */
        double expected = 1e6 * shares[i], off = (double)o.counts.lost - expected;
        assert_true(off * off <= 16 * expected * (1 - shares[i]));
        outcome again = send((path_settings){.loss = shares[i], .seed = 7}, 1000000, 64, 1);
        assert_int_equal(o.counts.lost, again.counts.lost);
    }
    assert_int_equal(send((path_settings){.loss = 1}, 1000, 64, 1).arrived, 0);
}

static void jitter_keeps_the_order(void **state)
{
    (void)state;
    outcome o = send((path_settings){.delay_ns = 30 * MS, .jitter_ns = 5 * MS}, 10000, 64, MS / 10);
    assert_int_equal(o.arrived, 10000);
    assert_int_equal(o.late, 0);
    assert_true(o.min_ns >= 25 * MS && o.max_ns <= 35 * MS);
    assert_true(o.max_ns - o.min_ns > 3 * MS);
    /* With more jitter than delay, no packet arrives before it is sent. */
    o = send((path_settings){.delay_ns = MS, .jitter_ns = 5 * MS}, 1000, 64, MS);
    assert_true(o.min_ns >= 0);
}

static void some_overtake(void **state)
{
    (void)state;
    outcome o = send((path_settings){.delay_ns = 30 * MS, .overtaking = 0.05}, 100000, 64, MS);
    assert_int_equal(o.arrived, 100000);
    assert_true(o.counts.overtook > 4700 && o.counts.overtook < 5300);
    assert_true(o.min_ns == 0);
    assert_true(o.late > 0);
}

static void keeps_bytes(void **state)
{
    (void)state;
    path *p = path_new(&(path_settings){.delay_ns = 5});
    unsigned char in[300];
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)i;
    assert_true(path_next_ns(p) == INT64_MAX);
    assert_null(path_take(p, INT64_MAX - 1));
    path_put(p, in, sizeof in, 100);
    path_put(p, in, 0, 100);
    assert_true(path_next_ns(p) == 105);
    assert_null(path_take(p, 104));
    path_packet *out = path_take(p, 105);
    assert_memory_equal(out->bytes, in, sizeof in);
    free(out);
    path_free(p); /* with a packet in transit */
    path_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays),          cmocka_unit_test(carries_its_rate),
        cmocka_unit_test(loses_by_chance), cmocka_unit_test(jitter_keeps_the_order),
        cmocka_unit_test(some_overtake),   cmocka_unit_test(keeps_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
