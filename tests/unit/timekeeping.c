/* Corrections of clocks, for logs with known truth. */
#include "config.h"

#include "clocks/correction.h"
#include "clocks/fit.h"
#include "clocks/name_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define BEGIN (INT64_C(1700000000) * SECOND)

static uint64_t seed = 88172645463325252;

static double random_unit(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

/* A clock that shows true + offset + drift * (true - BEGIN), and jumps by step at step_at. */
typedef struct wrong {
    const char *host;
    double offset_ns, drift;
    int64_t step_at;
    double step_ns;
} wrong;

static int64_t shown(const wrong *w, int64_t true_ns)
{
    double off = w->offset_ns + w->drift * (double)(true_ns - BEGIN);
    if (w->step_at != 0 && true_ns >= w->step_at)
        off += w->step_ns;
    return true_ns + (int64_t)llround(off);
}

static void learn(correction *c, nl_record *r, const char *host, const char *event, int64_t time_ns)
{
    nl_record_set_time(r, time_ns);
    nl_record_set_host(r, host, strlen(host));
    nl_record_set_event(r, event, strlen(event));
    correction_learn(c, r);
    nl_record_clear(r);
}

/* Adds an exchange with a collector whose clock is correct. The delays there and back are given. */
static void timekeeping_measure(correction *c, const wrong *w, int64_t true_ns, int64_t there_ns, int64_t back_ns)
{
    nl_record *r = nl_record_new();
    int64_t t1 = shown(w, true_ns), t2 = true_ns + there_ns, t4 = shown(w, t2 + back_ns);
    nl_record_add_string(r, "CLOCK.COLLECTOR", "right", 5);
    nl_record_add_double(r, "CLOCK.OFFSET", ((double)(t2 - t1) + (double)(t2 - t4)) / 2e3);
    nl_record_add_double(r, "CLOCK.DELAY", (double)(t4 - t1) / 1e3);
    nl_record_add_double(r, "CLOCK.ERROR", (double)(t4 - t1) / 2e3);
    learn(c, r, w->host, "ClockOffset", t1 / 2 + t4 / 2);
    nl_record_free(r);
}

static void send(correction *c, const wrong *from, const wrong *to, int64_t true_ns, int64_t took_ns, int64_t id)
{
    nl_record *r = nl_record_new();
    nl_record_add_int(r, "MSG.ID", id);
    learn(c, r, from->host, "Ping.Send", shown(from, true_ns));
    nl_record_add_int(r, "MSG.ID", id);
    learn(c, r, to->host, "Ping.Receive", shown(to, true_ns + took_ns));
    nl_record_free(r);
}

/* Returns the maximum error of a host's times after the correction. */
static double worst_ns(const correction *c, const wrong *w, int64_t from_ns, int64_t to_ns)
{
    nl_record *r = nl_record_new(), *out = nl_record_new();
    double worst = 0;
    for (int64_t at = from_ns; at < to_ns; at += SECOND / 3) {
        nl_record_set_host(r, w->host, strlen(w->host));
        nl_record_set_time(r, shown(w, at));
        int64_t corrected = correction_apply(c, r, out) ? out->time_ns : r->time_ns;
        worst = fmax(worst, fabs((double)(corrected - at)));
        nl_record_clear(r);
    }
    nl_record_free(r);
    nl_record_free(out);
    return worst;
}

static correction_host host_named(const correction *c, const char *name)
{
    for (size_t i = 0; i < correction_host_count(c); i++)
        if (strcmp(correction_get_host(c, i).name, name) == 0)
            return correction_get_host(c, i);
    fail_msg("no host %s", name);
    return (correction_host){0};
}

static void test_offset_and_drift(void **state)
{
    (void)state;
    const wrong clocks[] = {{"a", 5e9, 100e-6, 0, 0}, {"b", -3.25e9, -100e-6, 0, 0}, {"c", 0, 0, 0, 0}};
    const correction_options options = {0};
    correction *c = correction_new(&options);
    for (int i = 0; i < 60; i++)
        for (int k = 0; k < 3; k++) /* symmetric, except for noise of up to 100 us */
            timekeeping_measure(c, &clocks[k], BEGIN + i * 10 * SECOND, 50000 + (int64_t)(random_unit() * 1e5),
                                50000 + (int64_t)(random_unit() * 1e5));
    correction_solve(c);
    assert_string_equal(correction_reference(c), "right");
    for (int k = 0; k < 3; k++) {
        correction_host h = host_named(c, clocks[k].host);
        double worst = worst_ns(c, &clocks[k], BEGIN, BEGIN + 600 * SECOND);
        assert_true(worst < 100e3);
        assert_true(worst <= h.error_ns + 4000); /* the stated error bound holds */
        assert_true(fabs(h.drift - clocks[k].drift) < 1e-6);
        assert_int_equal(h.measurements, 60);
    }
    correction_free(c);
}

/* The bound is half the delay, and holds for any asymmetry. */
static void test_asymmetric(void **state)
{
    (void)state;
    const wrong clock = {"a", 2e9, 50e-6, 0, 0};
    const correction_options options = {0};
    correction *c = correction_new(&options);
    for (int i = 0; i < 100; i++)
        timekeeping_measure(c, &clock, BEGIN + i * SECOND, 20000000, 1000000);
    correction_solve(c);
    double worst = worst_ns(c, &clock, BEGIN, BEGIN + 100 * SECOND), error = host_named(c, "a").error_ns;
    assert_true(worst > 9e6 && worst < 10.6e6);
    assert_true(worst <= error + 4000 && error < 11e6);
    correction_free(c);
}

/* Messages bound errors that asymmetric exchanges cannot bound. */
static void test_messages_tighten(void **state)
{
    (void)state;
    const wrong a = {"a", 2e9, 50e-6, 0, 0}, right = {"right", 0, 0, 0, 0};
    const correction_options options = {0};
    correction *c = correction_new(&options);
    for (int i = 0; i < 100; i++) {
        timekeeping_measure(c, &a, BEGIN + i * SECOND, 20000000, 1000000);
        send(c, &a, &right, BEGIN + i * SECOND + 300000, 100000, 2 * i);
        send(c, &right, &a, BEGIN + i * SECOND + 600000, 100000, 2 * i + 1);
    }
    correction_solve(c);
    assert_true(worst_ns(c, &a, BEGIN, BEGIN + 100 * SECOND) < 110e3);
    assert_true(host_named(c, "a").error_ns < 200e3);
    assert_int_equal(host_named(c, "a").contradictions, 0);
    correction_free(c);
}

/* A measurement of one second does not predict the following minutes, so later messages contradict no measurement. */
static void test_measured_for_a_moment(void **state)
{
    (void)state;
    const wrong a = {"a", 2e9, 100e-6, 0, 0}, right = {"right", 0, 0, 0, 0};
    const correction_options options = {0};
    correction *c = correction_new(&options);
    for (int i = 0; i < 3; i++)
        timekeeping_measure(c, &a, BEGIN + i * SECOND / 3, 60000, 40000);
    for (int i = 0; i < 1000; i++) {
        send(c, &a, &right, BEGIN + i * SECOND / 10, 50000 + (int64_t)(random_unit() * 1e5), 2 * i);
        send(c, &right, &a, BEGIN + i * SECOND / 10 + 300000, 50000 + (int64_t)(random_unit() * 1e5), 2 * i + 1);
    }
    correction_solve(c);
    assert_int_equal(host_named(c, "a").contradictions, 0);
    assert_true(worst_ns(c, &a, BEGIN, BEGIN + 100 * SECOND) < 60e3);
    correction_free(c);
}

static void test_messages_alone(void **state)
{
    (void)state;
    const wrong a = {"a", 7e9, 100e-6, 0, 0}, b = {"b", -1e9, -80e-6, 0, 0}, far = {"far", 3e9, 0, 0, 0};
    const correction_options options = {.reference = "a"};
    correction *c = correction_new(&options);
    nl_record *r = nl_record_new();
    for (int i = 0; i < 2000; i++) {
        int64_t at = BEGIN + i * SECOND / 10;
        send(c, &a, &b, at, 60000 + (int64_t)(random_unit() * 1e6), 2 * i);
        send(c, &b, &a, at + 5000000, 60000 + (int64_t)(random_unit() * 1e6), 2 * i + 1);
    }
    learn(c, r, far.host, "Alone", shown(&far, BEGIN));
    correction_solve(c);
    assert_false(host_named(c, "far").is_known);
    /* The clock of a is the reference, although it is wrong: b must get the same error. */
    nl_record *out = nl_record_new();
    for (int i = 0; i < 200; i++) {
        int64_t at = BEGIN + i * SECOND;
        nl_record_set_host(r, "b", 1);
        nl_record_set_time(r, shown(&b, at));
        assert_true(correction_apply(c, r, out));
        assert_true(llabs(out->time_ns - shown(&a, at)) < 100000);
        nl_field original;
        assert_true(nl_record_find(out, "DATE.ORIGINAL", &original));
    }
    nl_record_free(r);
    nl_record_free(out);
    correction_free(c);
}

/* The log has messages in only one direction. The correction restores the order, and claims no precision. */
static void test_one_way(void **state)
{
    (void)state;
    const wrong a = {"a", 0, 0, 0, 0}, b = {"b", -1e9, 0, 0, 0};
    const correction_options options = {.reference = "a"};
    correction *c = correction_new(&options);
    for (int i = 0; i < 50; i++)
        send(c, &a, &b, BEGIN + i * SECOND, 1000000, i);
    correction_solve(c);
    correction_host h = host_named(c, "b");
    assert_true(isinf(h.error_ns));
    assert_true(worst_ns(c, &b, BEGIN, BEGIN + 50 * SECOND) < 1.1e6);
    correction_free(c);
}

static void test_steps(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        const wrong w = {"a", 1e9, 100e-6, BEGIN + 300 * SECOND + SECOND / 4, 4e9};
        const correction_options options = {0};
        correction *c = correction_new(&options);
        nl_record *r = nl_record_new();
        for (int i = 0; i < 60; i++)
            timekeeping_measure(c, &w, BEGIN + i * 10 * SECOND, 60000, 50000);
        if (known) { /* it was logged */
            nl_record_add_double(r, "CLOCK.STEP", 4e6);
            learn(c, r, "a", "ClockStep", shown(&w, w.step_at));
        }
        correction_solve(c);
        assert_int_equal(host_named(c, "a").steps, 1);
        assert_true(worst_ns(c, &w, BEGIN, w.step_at - 10 * SECOND) < 20e3);
        assert_true(worst_ns(c, &w, w.step_at + 10 * SECOND, BEGIN + 600 * SECOND) < 20e3);
        if (known)
            assert_true(worst_ns(c, &w, BEGIN, BEGIN + 600 * SECOND) < 20e3);
        nl_record_free(r);
        correction_free(c);
    }
}

/* A drift that changes with temperature results in several lines, which join. */
static void test_drift_that_changes(void **state)
{
    (void)state;
    fit_bound bounds[200];
    for (int i = 0; i < 200; i++) {
        double truth = i < 100 ? 1e5 * i : 1e7 - 5e4 * (i - 100);
        bounds[i] = (fit_bound){BEGIN + i * SECOND, truth - 30e3, truth + 30e3};
    }
    fit f = fit_find(bounds, 200, NULL, 0);
    assert_true(f.count >= 2 && f.count < 6);
    for (int i = 0; i < 199 * 4; i++) {
        double at = i / 4.0, truth = at < 100 ? 1e5 * at : 1e7 - 5e4 * (at - 100);
        assert_true(fabs(fit_at(&f, BEGIN + (int64_t)(at * 1e9)) - truth) < 60e3);
    }
    fit_free(&f);
}

static void test_many_bounds(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    fit_bound *bounds = calloc(COUNT, sizeof *bounds);
    for (int i = 0; i < COUNT; i++) {
        double truth = 3e9 + 0.01 * i, noise = random_unit() * 1e6;
        bounds[i] = (fit_bound){BEGIN + i * (SECOND / 100), i % 2 ? truth - noise : -INFINITY,
                                i % 2 ? INFINITY : truth + noise};
    }
    fit f = fit_find(bounds, COUNT, NULL, 0);
    assert_int_equal(f.count, 1);
    assert_true(fabs(fit_at(&f, BEGIN + 1500 * SECOND) - (3e9 + 0.01 * 150000)) < 2e3);
    free(bounds);
    fit_free(&f);
}

static void test_hostile(void **state)
{
    (void)state;
    const correction_options options = {0};
    static const double values[] = {0, -1, 1e300, -1e300, 1e18, NAN, INFINITY, 5};
    static const int64_t times[] = {0, INT64_MIN, INT64_MAX, BEGIN, -1};
    correction *c = correction_new(&options);
    nl_record *r = nl_record_new();
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < 8; k++)
            for (size_t t = 0; t < 5; t++) {
                nl_record_add_double(r, "CLOCK.OFFSET", values[i]);
                nl_record_add_double(r, "CLOCK.ERROR", values[k]);
                nl_record_add_double(r, "CLOCK.STEP", values[k]);
                nl_record_add_string(r, "CLOCK.COLLECTOR", "x", 1);
                nl_record_add_string(r, "DATE.ORIGINAL", "never", 5);
                learn(c, r, i % 2 ? "a" : "b", t == 4 ? "ClockStep" : "ClockOffset", times[t]);
                nl_record_add_int(r, "ID", (int64_t)k);
                learn(c, r, k % 2 ? "a" : "b", i % 2 ? "send" : "recv", times[t]);
            }
    correction_solve(c);
    for (size_t t = 0; t < 5; t++) {
        nl_record *out = nl_record_new();
        nl_record_set_host(r, "a", 1);
        nl_record_set_time(r, times[t]);
        correction_apply(c, r, out);
        nl_record_free(out);
    }
    for (size_t i = 0; i < correction_host_count(c); i++)
        correction_get_host(c, i);
    nl_record_free(r);
    correction_free(c);
}

/* A name with a NUL is longer than the text before the NUL. The table reads nothing beyond the name. */
static void test_name_with_nul(void **state)
{
    (void)state;
    char forged[300];
    memset(forged, 'x', sizeof forged);
    memcpy(forged, "a", 2);
    name_table n = {0};
    const size_t a = name_table_add(&n, (nl_string){"a", 1});
    for (size_t size = 2; size <= sizeof forged; size++) {
        assert_int_equal(name_table_find(&n, (nl_string){forged, size}), a);
        assert_int_equal(name_table_add(&n, (nl_string){forged, size}), a);
    }
    assert_int_equal(name_table_find(&n, (nl_string){NULL, 0}), NAME_NONE);
    assert_int_equal(n.count, 1);
    name_table_free(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offset_and_drift),
        cmocka_unit_test(test_asymmetric),
        cmocka_unit_test(test_messages_tighten),
        cmocka_unit_test(test_messages_alone),
        cmocka_unit_test(test_measured_for_a_moment),
        cmocka_unit_test(test_one_way),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_drift_that_changes),
        cmocka_unit_test(test_many_bounds),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_name_with_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
