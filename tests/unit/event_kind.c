/* nl_event_write: events whose names are known only at run time. */
#define _GNU_SOURCE 1
#include <netlogger.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "thread_sanitizer.h"

static nl_string text(const char *words)
{
    return (nl_string){words, strlen(words)};
}

static nl_field of_text(const char *words)
{
    return (nl_field){.type = NL_TYPE_STRING, .string = text(words)};
}

static nl_field of_int(int64_t number)
{
    return (nl_field){.type = NL_TYPE_INT, .int_value = number};
}

static nl_event_kind *kind_of(const char *event, const char *one, const char *two)
{
    nl_string names[] = {text(one), text(two)};
    return nl_event_kind_new(NL_USAGE, text(event), names, 2);
}

/* Returns everything that was written to memory:NAME, NUL-terminated. */
static char *memory(const char *name)
{
    static nl_buffer all;
    all.size = 0;
    assert_true(nl_memory_read(name, &all));
    nl_buffer_append(&all, "", 1);
    nl_memory_free(name);
    return all.data;
}

static size_t count(const char *all, const char *what)
{
    size_t found = 0;
    for (const char *at = all; (at = strstr(at, what)) != NULL; at++)
        found++;
    return found;
}

static void test_every_type(void **state)
{
    (void)state;
    nl_string names[] = {text("A"), text("B"), text("C"), text("D"), text("E"), text("F"), text("G")};
    nl_event_kind *kind = nl_event_kind_new(NL_ERROR, text("Types"), names, 7);
    nl_log *log = nl_open("prog", "memory:kinds");
    nl_field values[] = {
        of_int(INT64_MIN),
        {.type = NL_TYPE_UINT, .uint_value = UINT64_MAX},
        {.type = NL_TYPE_DOUBLE, .double_value = NAN},
        {.type = NL_TYPE_BOOL, .bool_value = true},
        of_text("a \"b\"\n\xc3\xa9"),
        {.type = NL_TYPE_STRING, .string = {NULL, 0}},
        {.type = NL_TYPE_STRING, .string = {"x\0y", 3}},
    };
    errno = 77;
    assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    assert_int_equal(errno, 77);
    nl_event_kind_free(kind);
    assert_int_equal(nl_close(log), NL_OK);
    assert_non_null(strstr(memory("kinds"), " LVL=Error NL.EVNT=Types A=-9223372036854775808 B=18446744073709551615 "
                                            "C=nan D=true E=\"a \\\"b\\\"\\n\xc3\xa9\" F=\"\" G=\"x\\x00y\"\n"));
}

static void test_types_may_change_with_every_call(void **state)
{
    (void)state;
    nl_event_kind *kind = kind_of("Changing", "A", "B");
    nl_log *log = nl_open("prog", "memory:kinds");
    for (int i = 0; i < 100; i++) { /* more lists of types than are kept */
        nl_field values[] = {of_int(i), of_int(-i)};
        for (int field = 0, types = i % 25; field < 2; field++, types /= 5) {
            values[field].type = (nl_type)(types % 5);
            if (values[field].type == NL_TYPE_STRING)
                values[field] = of_text("text");
            else if (values[field].type == NL_TYPE_DOUBLE)
                values[field].double_value = 0.5;
            else if (values[field].type == NL_TYPE_BOOL)
                values[field].bool_value = false;
        }
        assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    }
    nl_close(log);
    const char *all = memory("kinds");
    assert_int_equal(count(all, "NL.EVNT=Changing"), 100);
    assert_int_equal(count(all, "A=text B=text\n"), 4);
    assert_int_equal(count(all, "A=0.5 B=false\n"), 4);
    assert_non_null(strstr(all, "A=false B=0.5\n"));
    nl_event_kind_free(kind);
}

static void test_names_that_are_none(void **state)
{
    (void)state;
    char huge[5000];
    memset(huge, 'n', sizeof huge);
    nl_string names[] = {text("A B=C\n"), text(""), {"x\0y", 3}, {huge, sizeof huge}};
    nl_field values[] = {of_int(1), of_int(2), of_int(3), of_int(4)};
    nl_log *log = nl_open("prog", "memory:kinds");
    nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){"ev\0ent \"1\"", 10}, names, 3);
    assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    nl_event_kind_free(kind);
    kind = nl_event_kind_new(NL_USAGE, text("Huge"), names, 4);
    assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    nl_event_kind_free(kind);
    kind = nl_event_kind_new(NL_USAGE, text("None"), NULL, 0);
    assert_int_equal(nl_event_write(log, kind, NULL), NL_OK);
    nl_event_kind_free(kind);
    nl_event_kind_free(NULL);
    nl_close(log);
    const char *all = memory("kinds");
    assert_non_null(strstr(all, "NL.EVNT=\"ev\\x00ent \\\"1\\\"\" A_B_C_=1 _=2 x_y=3\n"));
    assert_non_null(strstr(all, "nnnn=4\n"));
    assert_non_null(strstr(all, "NL.EVNT=None\n"));
}

static void test_many_fields(void **state)
{
    (void)state;
    enum { FIELDS = 1000 };
    static char written[FIELDS][16];
    static nl_string names[FIELDS];
    static nl_field values[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        snprintf(written[i], sizeof written[i], "F%d", i);
        names[i] = text(written[i]);
        values[i] = i % 2 == 0 ? of_int(i) : (nl_field){.type = NL_TYPE_STRING};
    }
    nl_event_kind *kind = nl_event_kind_new(NL_USAGE, text("Many"), names, FIELDS);
    nl_log *log = nl_open("prog", "memory:kinds");
    assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    nl_close(log);
    const char *all = memory("kinds");
    assert_non_null(strstr(all, "NL.EVNT=Many F0=0 F1=\"\" F2=2 "));
    assert_non_null(strstr(all, "F998=998 F999=\"\"\n"));
    nl_event_kind_free(kind);
}

static void test_long_strings(void **state)
{
    (void)state;
    size_t size = 1 << 20;
    char *huge = malloc(size + 1);
    memset(huge, 'x', size);
    huge[size] = '\0';
    nl_event_kind *kind = kind_of("Long", "A", "B");
    nl_log *log = nl_open("prog", "memory:kinds");
    nl_field values[] = {of_text(huge), of_int(1)};
    assert_int_equal(nl_event_write(log, kind, values), NL_MALFORMED);
    assert_string_equal(nl_error_message(),
                        "write Long: the event is logged, but a value of 1048576 bytes was truncated to 131072 bytes");
    nl_event_kind_free(kind);
    nl_string names[] = {text("A"), text("B"), text("C")};
    kind = nl_event_kind_new(NL_USAGE, text("Longer"), names, 3);
    nl_field three[] = {of_text(huge), of_text(huge), of_text(huge)};
    assert_int_equal(nl_event_write(log, kind, three), NL_FAILED);
    assert_string_equal(nl_error_message(), "write Longer: the event is lost: the log's ring has no space for "
                                            "393244 bytes");
    nl_event_kind_free(kind);
    nl_close(log);
    const char *all = memory("kinds");
    assert_int_equal(strspn(strstr(all, " A=") + 3, "x"), 131072);
    assert_non_null(strstr(all, " B=1\n"));
    assert_non_null(strstr(all, "NetLogger.Lost COUNT=1 "));
    free(huge);
}

static void test_what_is_off(void **state)
{
    (void)state;
    nl_event_kind *kind = kind_of("Off", "A", "B");
    nl_field values[] = {of_int(1), of_int(2)};
    assert_int_equal(nl_event_write(NULL, kind, values), NL_OFF);
    assert_false(nl_is_on(NULL, NL_EMERGENCY));
    nl_log *log = nl_open("prog", "memory:kinds");
    assert_true(nl_is_on(log, NL_DEBUG));
    nl_set_level(log, NL_WARNING);
    assert_false(nl_is_on(log, NL_USAGE));
    assert_true(nl_is_on(log, NL_WARNING));
    assert_int_equal(nl_event_write(log, kind, values), NL_OFF);
    nl_set_level(log, NL_DEBUG);
    assert_int_equal(nl_control(log, "event Of* off", 13), NL_OK);
    assert_int_equal(nl_event_write(log, kind, values), NL_OFF);
    values[1] = of_text("a site to come");
    assert_int_equal(nl_event_write(log, kind, values), NL_OFF);
    assert_int_equal(nl_control(log, "event Of* on", 12), NL_OK);
    assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    nl_close(log);
    assert_int_equal(count(memory("kinds"), "NL.EVNT=Off"), 1);
    nl_event_kind_free(kind);
}

/* Creates and frees more kinds than the process remembers. */
static void test_kinds_without_end(void **state)
{
    (void)state;
    enum { KINDS = 6000, ROUNDS = 3 };
    nl_log *log = nl_open("prog", "memory:kinds");
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < KINDS; i++) {
            char event[16];
            snprintf(event, sizeof event, "Kind%d", i);
            nl_event_kind *kind = kind_of(event, "A", "B");
            nl_field values[] = {of_int(i), of_text("")};
            assert_int_equal(nl_event_write(log, kind, values), NL_OK);
            nl_event_kind_free(kind);
        }
    nl_event_kind *kind = kind_of("Unremembered", "A", "B");
    nl_field values[] = {of_int(1), of_int(2)};
    assert_int_equal(nl_control(log, "event Unre* off", 15), NL_OK);
    assert_int_equal(nl_event_write(log, kind, values), NL_OFF);
    assert_int_equal(nl_control(log, "event Unre* on", 14), NL_OK);
    nl_event_kind_free(kind);
    nl_close(log);
    const char *all = memory("kinds");
    assert_int_equal(count(all, "\n"), ROUNDS * KINDS);
    assert_int_equal(count(all, "NL.EVNT=Kind5999 A=5999 B=\"\"\n"), ROUNDS);
    assert_int_equal(count(all, "NL.EVNT=Kind17 A=17 B=\"\"\n"), ROUNDS);
}

enum { THREADS = 4, EVENTS = 5000 };
static nl_log *shared_log;

static void *write_some(void *unused)
{
    (void)unused;
    for (int i = 0; i < EVENTS; i++) {
        nl_event_kind *kind = kind_of("Threads", i % 2 == 0 ? "A" : "Z", "B");
        nl_field values[] = {i % 3 == 0 ? of_text("three") : of_int(i), of_int(i)};
        if (nl_event_write(shared_log, kind, values) != NL_OK)
            return "lost";
        nl_event_kind_free(kind);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    shared_log = nl_open("prog", "memory:kinds?policy=block&block=60");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_some, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    nl_close(shared_log);
    const char *all = memory("kinds");
    assert_int_equal(count(all, "NL.EVNT=Threads"), THREADS * EVENTS);
    assert_int_equal(count(all, "=three"), THREADS * ((EVENTS + 2) / 3));
}

static void test_room_is_known_before(void **state)
{
    (void)state;
    nl_event_kind *kind = kind_of("Room", "A", "B");
    nl_field values[] = {of_int(1), of_int(2)};
    assert_true(nl_event_has_space(NULL, 32));
    nl_log *log = nl_open("prog", "memory:kinds");
    assert_false(nl_event_has_space(log, 32)); /* no ring yet */
    assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    assert_true(nl_event_has_space(log, 32));
    assert_false(nl_event_has_space(log, (size_t)1 << 30));
    assert_false(nl_event_has_space(log, SIZE_MAX));
    nl_close(log);
    memory("kinds");
    nl_event_kind_free(kind);
}

/* The child knows a kind that was made before fork(). */
static void test_a_forked_child(void **state)
{
    (void)state;
    char path[] = "/tmp/netlogger-kind-XXXXXX", url[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(url, sizeof url, "file://%s", path);
    nl_event_kind *kind = kind_of("Forked", "WHO", "N");
    nl_field values[] = {of_text("parent"), of_int(1)};
    nl_log *log = nl_open("prog", url);
    assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    pid_t child = fork();
    if (child == 0) {
        values[0] = of_text("child");
        bool good = nl_event_write(log, kind, values) == NL_OK && nl_close(log) == NL_OK;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(nl_event_write(log, kind, values), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    FILE *file = fopen(path, "r");
    char line[1000];
    int parents = 0, children = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        parents += strstr(line, "NL.EVNT=Forked WHO=parent N=1\n") != NULL;
        children += strstr(line, "NL.EVNT=Forked WHO=child N=1\n") != NULL;
    }
    fclose(file);
    unlink(path);
    assert_int_equal(parents, 2);
    assert_int_equal(children, 1);
    nl_event_kind_free(kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_types_may_change_with_every_call),
        cmocka_unit_test(test_names_that_are_none),
        cmocka_unit_test(test_many_fields),
        cmocka_unit_test(test_long_strings),
        cmocka_unit_test(test_what_is_off),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_room_is_known_before),
        cmocka_unit_test(test_a_forked_child),
        cmocka_unit_test(test_kinds_without_end), /* the last kind: no further kind is remembered */
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    leave_out_what_the_thread_sanitizer_cannot();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
