/* NL_MARKER: probes attached and detached while threads pass the marker. */
#define _GNU_SOURCE 1
#include "log/marker.h"

#include <netlogger.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "under_valgrind.h"

static void pass_read(long block)
{
    NL_MARKER(disk_read, "BLOCK.ID", block, "NAME", "a b");
}

static void pass_write(long block)
{
    NL_MARKER(disk_write, "BLOCK.ID", block);
}

static void pass_bare(void)
{
    NL_MARKER(bare);
}

/* The calls of a probe that calls a function. */
typedef struct seen {
    unsigned long passes;
    char text[1024];
} seen;

static void see(void *user, const char *marker, const nl_field *fields, size_t field_count)
{
    seen *s = user;
    s->passes++;
    size_t size = (size_t)snprintf(s->text, sizeof s->text, "%s", marker);
    for (size_t i = 0; i < field_count; i++) {
        char scratch[NL_FIELD_TEXT_SIZE];
        nl_string text = nl_field_text(&fields[i], scratch);
        size += (size_t)snprintf(s->text + size, sizeof s->text - size, " %.*s=%.*s", (int)fields[i].name.size,
                                 fields[i].name.data, (int)text.size, text.data);
    }
}

static nl_probe attach_log(const char *pattern, nl_log *log, nl_level level)
{
    return nl_marker_attach(&(nl_probe_options){.kind = NL_PROBE_LOG, .pattern = pattern, .log = log, .level = level});
}

static nl_probe attach_count(const char *pattern)
{
    return nl_marker_attach(&(nl_probe_options){.kind = NL_PROBE_COUNT, .pattern = pattern});
}

static nl_probe attach_time(const char *from, const char *to)
{
    return nl_marker_attach(&(nl_probe_options){.kind = NL_PROBE_TIME, .pattern = from, .to = to});
}

static nl_probe attach_call(const char *pattern, nl_probe_function function, void *user)
{
    return nl_marker_attach(
        &(nl_probe_options){.kind = NL_PROBE_CALL, .pattern = pattern, .function = function, .user = user});
}

static uint64_t count_of(nl_probe probe)
{
    nl_probe_info info;
    assert_true(nl_probe_read(probe, &info));
    return info.count;
}

static void test_values_are_evaluated_once_and_only_when_somebody_is_attached(void **state)
{
    (void)state;
    int evaluated = 0;
    nl_probe probes[3] = {0};
    for (int i = 0; i < 4; i++) {
        NL_MARKER(evaluating, "N", ++evaluated);
        assert_int_equal(evaluated, i);
        if (i < 3)
            probes[i] = attach_count("evaluating");
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(count_of(probes[i]), 3 - i);
        assert_int_equal(nl_marker_detach(probes[i]), NL_OK);
        assert_int_equal(nl_marker_detach(probes[i]), NL_END);
    }
    NL_MARKER(evaluating, "N", ++evaluated);
    assert_int_equal(evaluated, 3);
}

static void test_every_type(void **state)
{
    (void)state;
    seen s = {0};
    nl_probe probe = attach_call("types*", see, &s);
    NL_MARKER(types1, "A", (signed char)-128, "B", INT64_MIN, "C", UINT64_MAX, "D", 'a', "E", (bool)1, "F", 0.1, "G",
              1.5f, "H", 2.5L);
    assert_string_equal(s.text,
                        "types1 A=-128 B=-9223372036854775808 C=18446744073709551615 D=97 E=true F=0.1 G=1.5 H=2.5");
    NL_MARKER(types2, "A", "literal", "B", (const char *)NULL, "C", NL_BYTES("xyz", 2), "D", (short)-1, "E",
              (unsigned char)255, "F", "");
    assert_string_equal(s.text, "types2 A=literal B=(null) C=xy D=-1 E=255 F=");
    nl_marker_detach(probe);
}

static void test_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        uint64_t count;
    } cases[] = {{"disk_read", 1}, {"disk_*", 2}, {"*", 3}, {"disk_rea", 0}, {"disk_[rw]*", 2}, {"?isk_write", 1}};
    enum { CASES = sizeof cases / sizeof cases[0] };
    nl_probe probes[CASES];
    for (int i = 0; i < CASES; i++)
        probes[i] = attach_count(cases[i].pattern);
    pass_read(1);
    pass_write(1);
    pass_bare();
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(count_of(probes[i]), cases[i].count);
        nl_marker_detach(probes[i]);
    }
    assert_int_equal(attach_count(""), 0);
    assert_non_null(strstr(nl_error_message(), "empty"));
    assert_int_equal(attach_time("a", ""), 0);
}

static void test_any_number_of_probes_on_one_marker(void **state)
{
    (void)state;
    enum { PROBES = 1000 };
    nl_probe probes[PROBES];
    for (int i = 0; i < PROBES; i++) {
        probes[i] = attach_count("bare");
        pass_bare();
    }
    for (int i = 0; i < PROBES; i++)
        assert_int_equal(count_of(probes[i]), PROBES - i);
    for (int i = 0; i < PROBES; i += 2)
        assert_int_equal(nl_marker_detach(probes[i]), NL_OK);
    pass_bare();
    for (int i = 1; i < PROBES; i += 2) {
        assert_int_equal(count_of(probes[i]), PROBES - i + 1);
        assert_int_equal(nl_marker_detach(probes[i]), NL_OK);
    }
}

static char *memory(const char *name)
{
    static nl_buffer text;
    text.size = 0;
    assert_true(nl_memory_read(name, &text));
    nl_buffer_append(&text, "", 1);
    return text.data;
}

static void test_logged_until_its_log_is_closed(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:marked");
    nl_probe probe = attach_log("disk_*", log, NL_SYSTEM);
    nl_probe other = attach_log("bare", log, NL_ERROR);
    pass_read(7);
    pass_bare();
    nl_set_level(log, NL_USAGE);
    pass_read(8);
    nl_marker_detach(other);
    assert_int_equal(nl_close(log), NL_OK);
    pass_read(9);
    assert_int_equal(nl_marker_detach(probe), NL_END);
    const char *all = memory("marked");
    assert_non_null(strstr(all, " LVL=System NL.EVNT=disk_read BLOCK.ID=7 NAME=\"a b\"\n"));
    assert_non_null(strstr(all, " LVL=Error NL.EVNT=bare\n"));
    assert_null(strstr(all, "BLOCK.ID=8"));
    assert_null(strstr(all, "BLOCK.ID=9"));
    nl_memory_free("marked");
}

static void *write_without_read(void *unused)
{
    pass_write(1);
    return unused;
}

static void test_times_are_each_threads_own(void **state)
{
    (void)state;
    nl_probe probe = attach_time("disk_read", "disk_write"), between = attach_time("bare", "bare");
    nl_probe_info info;
    assert_true(nl_probe_read(probe, &info));
    assert_int_equal(info.count + (uint64_t)info.p99_ns, 0);
    pass_write(0); /* the marker that begins the time was not passed before */
    pass_read(1);
    pthread_t thread;
    pthread_create(&thread, NULL, write_without_read, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(count_of(probe), 0);
    pass_write(1);
    pass_write(1); /* the previous pass has already ended the time */
    assert_int_equal(count_of(probe), 1);
    for (int i = 0; i < 1000; i++) {
        pass_read(i);
        pass_bare();
        pass_write(i);
    }
    assert_true(nl_probe_read(probe, &info));
    assert_int_equal(info.count, 1001);
    assert_true(0 <= info.min_ns && info.min_ns <= info.p50_ns + info.p50_ns / 8 && info.min_ns <= info.mean_ns);
    assert_true(info.p50_ns <= info.p90_ns && info.p90_ns <= info.p99_ns && info.p99_ns <= info.p99_9_ns);
    assert_true(info.p99_9_ns <= info.max_ns && info.mean_ns <= info.max_ns);
    assert_int_equal(count_of(between), 999);
    nl_marker_detach(between);
    nl_marker_detach(probe);
    assert_false(nl_probe_read(probe, &info));
}

/* The begin time of a detached probe must not count for a later probe that has the same place in the table. */
static void test_a_time_begun_for_another_probe_is_not_taken(void **state)
{
    (void)state;
    nl_probe probe = attach_time("disk_read", "disk_write");
    pass_read(1);
    nl_marker_detach(probe);
    probe = attach_time("disk_read", "disk_write");
    pass_write(1);
    assert_int_equal(count_of(probe), 0);
    nl_marker_detach(probe);
}

static void test_times_are_limited_and_their_places_used_again(void **state)
{
    (void)state;
    static nl_probe probes[4096];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4096; i++)
            assert_int_not_equal(probes[i] = attach_time("nothing_a", "nothing_b"), 0);
        assert_int_equal(attach_time("nothing_a", "nothing_b"), 0);
        assert_non_null(strstr(nl_error_message(), "4096"));
        for (int i = 0; i < 4096; i++)
            nl_marker_detach(probes[i]);
    }
}

/* ---- attaching and detaching ---- */

enum { THREADS = 4 };
static bool stop;

typedef struct target {
    uint64_t alive;
    uint64_t passes;
} target;
#define ALIVE UINT64_C(0x123456789abcdef)

static void hit(void *user, const char *marker, const nl_field *fields, size_t field_count)
{
    target *t = user;
    if (t->alive != ALIVE || strncmp(marker, "disk_", 5) != 0 || field_count == 0 || fields[0].int_value != 42)
        abort();
    __atomic_fetch_add(&t->passes, 1, __ATOMIC_RELAXED);
}

static void *pass_all_the_time(void *user)
{
    uint64_t *passes = user;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pass_read(42);
        pass_write(42);
        __atomic_fetch_add(passes, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void begin_threads(pthread_t *threads, uint64_t *passes)
{
    stop = false;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pass_all_the_time, passes), 0);
}

static void end_threads(pthread_t *threads)
{
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* A probe's data is destroyed as soon as it is detached: a thread that still used it would abort. */
static void test_attached_and_detached_while_threads_pass(void **state)
{
    (void)state;
    static const char *const patterns[] = {"disk_read", "disk_*", "*_write"};
    uint64_t passes = 0, hits = 0;
    pthread_t threads[THREADS];
    begin_threads(threads, &passes);
    nl_probe steady = attach_count("disk_read");
    unsigned rounds = times_here(100000);
    for (unsigned i = 0; i < rounds || (hits == 0 && i < 100 * rounds); i++) {
        target *t = malloc(sizeof *t);
        *t = (target){ALIVE, 0};
        nl_probe probe = attach_call(patterns[i % 3], hit, t);
        if (i % 1000 == 0)
            usleep(1000); /* lets other threads run on machines with few processors */
        assert_int_equal(nl_marker_detach(probe), NL_OK);
        hits += t->passes;
        t->alive = 0;
        free(t);
    }
    uint64_t counted = count_of(steady);
    end_threads(threads);
    assert_true(hits > 0);
    assert_true(counted > 0 && count_of(steady) <= passes);
    nl_marker_detach(steady);
}

static void *attach_and_detach(void *unused)
{
    unsigned rounds = times_here(5000);
    for (unsigned i = 0; i < rounds; i++) {
        target t = {ALIVE, 0};
        nl_probe call = attach_call("disk_*", hit, &t), time = attach_time("disk_read", "disk_*");
        nl_marker_detach(call);
        t.alive = 0;
        nl_marker_detach(time);
    }
    return unused;
}

static void test_attached_and_detached_by_several_threads_at_once(void **state)
{
    (void)state;
    uint64_t passes = 0;
    pthread_t threads[THREADS], changing[3];
    begin_threads(threads, &passes);
    for (int i = 0; i < 3; i++)
        pthread_create(&changing[i], NULL, attach_and_detach, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(changing[i], NULL);
    end_threads(threads);
    target t = {ALIVE, 0};
    nl_probe probe = attach_call("disk_read", hit, &t);
    pass_read(42);
    nl_marker_detach(probe);
    assert_int_equal(t.passes, 1);
}

/* Every pass is counted, in all threads. */
static void test_none_is_missed(void **state)
{
    (void)state;
    uint64_t passes = 0;
    pthread_t threads[THREADS];
    nl_probe count = attach_count("disk_write"), both = attach_count("disk_*");
    begin_threads(threads, &passes);
    for (int i = 0; i < 1000; i++)
        nl_marker_detach(attach_count("disk_*"));
    while (__atomic_load_n(&passes, __ATOMIC_RELAXED) < 10000)
        usleep(1000);
    end_threads(threads);
    assert_int_equal(count_of(count), passes);
    assert_int_equal(count_of(both), 2 * passes);
    nl_marker_detach(both);
    nl_marker_detach(count);
}

/* ---- calls from within a probe ---- */

static nl_probe own_probe, made_within;

static void detach_itself(void *user, const char *marker, const nl_field *fields, size_t field_count)
{
    see(user, marker, fields, field_count);
    assert_int_equal(nl_marker_detach(own_probe), NL_OK);
    made_within = attach_count("bare");
    pass_bare(); /* not seen, because it is within a probe */
}

static void test_a_probe_may_detach_itself_and_attach_others(void **state)
{
    (void)state;
    seen s = {0};
    own_probe = attach_call("bare", detach_itself, &s);
    pass_bare();
    pass_bare();
    assert_int_equal(s.passes, 1);
    assert_int_equal(count_of(made_within), 1);
    nl_marker_detach(made_within);
}

static volatile sig_atomic_t goes_on;

/* The next call comes some time after the end of this call, even if this call takes long. */
static void alarm_soon(void)
{
    struct itimerval soon = {.it_value = {0, 50}};
    if (goes_on)
        setitimer(ITIMER_REAL, &soon, NULL);
}

static void pass_in_handler(int signal_number)
{
    (void)signal_number;
    pass_read(42);
    pass_write(42);
    alarm_soon();
}

static void test_in_a_signal_handler(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = pass_in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    nl_probe count = attach_count("disk_read"), time = attach_time("disk_read", "disk_write");
    goes_on = 1;
    alarm_soon();
    for (int i = 0; i < 20000; i++) {
        target t = {ALIVE, 0};
        nl_probe probe = attach_call("disk_*", hit, &t);
        pass_read(42);
        nl_marker_detach(probe);
        assert_true(t.passes > 0);
        t.alive = 0;
    }
    goes_on = 0;
    signal(SIGALRM, SIG_IGN); /* one event may still be in transit */
    assert_true(count_of(count) >= 20000);
    nl_marker_detach(time);
    nl_marker_detach(count);
}

/* The child has the probes. Threads that were in a probe at the fork do not block it. */
static void test_after_fork(void **state)
{
    (void)state;
    uint64_t passes = 0;
    pthread_t threads[THREADS];
    nl_probe probe = attach_count("bare");
    begin_threads(threads, &passes);
    target t = {ALIVE, 0};
    nl_probe call = attach_call("disk_*", hit, &t);
    const unsigned forks = times_here(100);
    for (unsigned i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            pass_bare();
            bool good = count_of(probe) == 1 && nl_marker_detach(call) == NL_OK && nl_marker_detach(probe) == NL_OK;
            nl_probe again = attach_count("bare");
            pass_bare();
            _exit(good && count_of(again) == 1 && nl_marker_detach(again) == NL_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    end_threads(threads);
    nl_marker_detach(call);
    assert_int_equal(count_of(probe), 0);
    nl_marker_detach(probe);
}

/* ---- lists ---- */

static size_t found;

static void find_disk_read(void *user, const nl_marker_info *marker)
{
    if (strcmp(marker->name, "disk_read") != 0)
        return;
    found++;
    assert_int_equal(marker->probes, *(const size_t *)user);
    assert_string_equal(marker->fields, "BLOCK.ID NAME");
    assert_non_null(strstr(marker->place, "marker.c:"));
}

static void find_never_reached(void *user, const nl_marker_info *marker)
{
    (void)user;
    found += strcmp(marker->name, "never_reached") == 0 && *marker->fields == '\0';
}

void never_called(void);
void never_called(void)
{
    NL_MARKER(never_reached);
}

static void find_probe(void *user, const nl_probe_info *probe)
{
    const nl_probe *wanted = user;
    if (probe->probe == wanted[0]) {
        found++;
        assert_int_equal(probe->kind, NL_PROBE_TIME);
        assert_string_equal(probe->pattern, "disk_read");
        assert_string_equal(probe->to, "disk_w*");
        assert_int_equal(probe->markers, 2);
    } else if (probe->probe == wanted[1]) {
        found++;
        assert_int_equal(probe->kind, NL_PROBE_COUNT);
        assert_null(probe->to);
        assert_int_equal(probe->count, 1);
        assert_int_equal(probe->markers, 2);
    }
    nl_marker_detach(attach_count("disk_read")); /* the callback may call all functions of marker.h */
}

static void test_lists(void **state)
{
    (void)state;
    size_t probes = 0;
    found = 0;
    nl_marker_list(find_disk_read, &probes);
    assert_int_equal(found, 1);
    nl_marker_list(find_never_reached, NULL);
    assert_int_equal(found, 2);
    nl_probe both[2] = {attach_time("disk_read", "disk_w*"), attach_count("disk_*")};
    probes = 2;
    nl_marker_list(find_disk_read, &probes);
    assert_int_equal(found, 3);
    pass_read(1);
    nl_probe_list(find_probe, both);
    assert_int_equal(found, 5);
    nl_marker_detach(both[0]);
    nl_marker_detach(both[1]);
    nl_probe_list(find_probe, both);
    assert_int_equal(found, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_evaluated_once_and_only_when_somebody_is_attached),
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_any_number_of_probes_on_one_marker),
        cmocka_unit_test(test_logged_until_its_log_is_closed),
        cmocka_unit_test(test_times_are_each_threads_own),
        cmocka_unit_test(test_a_time_begun_for_another_probe_is_not_taken),
        cmocka_unit_test(test_times_are_limited_and_their_places_used_again),
        cmocka_unit_test(test_attached_and_detached_while_threads_pass),
        cmocka_unit_test(test_attached_and_detached_by_several_threads_at_once),
        cmocka_unit_test(test_none_is_missed),
        cmocka_unit_test(test_a_probe_may_detach_itself_and_attach_others),
        cmocka_unit_test(test_in_a_signal_handler),
        cmocka_unit_test(test_after_fork),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
