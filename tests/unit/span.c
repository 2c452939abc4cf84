/* Spans and contexts: records, scopes, threads, processes, sampling, losses and errors. */
#define _GNU_SOURCE 1
#include <netlogger.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "thread_sanitizer.h"

/* ---- the logged records ---- */

enum { RECORDS_MAX = 64 };

typedef struct entry {
    char event[64], trace[40], span[24], parent[24], status[8], text[1000];
} entry;

static entry entries[RECORDS_MAX];
static size_t entry_count;

static void copy_value(const char *line, const char *name, char *to, size_t size)
{
    const char *at = strstr(line, name);
    *to = '\0';
    if (at == NULL)
        return;
    at += strlen(name);
    size_t length = strcspn(at, " \n");
    assert_true(length < size);
    memcpy(to, at, length);
    to[length] = '\0';
}

/* Closes the log and reads memory:spans. */
static void read_all(nl_log *log)
{
    nl_buffer all = {0};
    assert_int_equal(nl_close(log), NL_OK);
    assert_true(nl_memory_read("spans", &all));
    nl_memory_free("spans");
    nl_buffer_append(&all, "", 1);
    entry_count = 0;
    for (char *line = all.data, *next; *line != '\0'; line = next) {
        next = strchr(line, '\n') + 1;
        next[-1] = '\0';
        assert_true(entry_count < RECORDS_MAX);
        entry *e = &entries[entry_count++];
        copy_value(line, " NL.EVNT=", e->event, sizeof e->event);
        copy_value(line, " TRACE.ID=", e->trace, sizeof e->trace);
        copy_value(line, " SPAN.ID=", e->span, sizeof e->span);
        copy_value(line, " PARENT.ID=", e->parent, sizeof e->parent);
        copy_value(line, " STATUS=", e->status, sizeof e->status);
        snprintf(e->text, sizeof e->text, "%s", line);
    }
    nl_buffer_free(&all);
}

static const entry *find(const char *event)
{
    for (size_t i = 0; i < entry_count; i++)
        if (strcmp(entries[i].event, event) == 0)
            return &entries[i];
    fail_msg("%s was not logged", event);
    return NULL;
}

static size_t count_of(const char *event)
{
    size_t count = 0;
    for (size_t i = 0; i < entry_count; i++)
        count += strcmp(entries[i].event, event) == 0;
    return count;
}

static nl_log *open_log(void)
{
    nl_log *log = nl_open("prog", "memory:spans");
    assert_non_null(log);
    return log;
}

static void assert_in(const char *event, const entry *span)
{
    assert_string_equal(find(event)->trace, span->trace);
    assert_string_equal(find(event)->span, span->span);
}

static void assert_child(const char *event, const entry *parent)
{
    assert_string_equal(find(event)->trace, parent->trace);
    assert_string_equal(find(event)->parent, parent->span);
    assert_string_not_equal(find(event)->span, parent->span);
}

static nl_context parse(const char *text)
{
    nl_context context;
    assert_int_equal(nl_traceparent_parse(text, strlen(text), &context), NL_OK);
    return context;
}

static const char *const remote_text = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01";
static const char *const unsampled_text = "00-00112233445566778899aabbccddeeff-0123456789abcdef-02";

static bool is_empty(const nl_context *context)
{
    return memcmp(context, NL_NO_PARENT, sizeof *context) == 0;
}

/* ---- records ---- */

static void test_start_and_end(void **state)
{
    (void)state;
    nl_log *log = open_log();
    errno = 77;
    nl_span root = nl_span_begin(log, NL_USAGE, "Root", NULL, "SQL", "SELECT 1", "N", 3);
    nl_span child = nl_span_begin(log, NL_USAGE, "Child", &root.context);
    child.status = -1;
    nl_span_end(&child, "ROWS", 5L, "HIT", (bool)true);
    nl_span_end(&root);
    assert_int_equal(errno, 77);
    nl_context current = nl_context_current();
    assert_true(is_empty(&current));
    read_all(log);
    assert_int_equal(entry_count, 4);
    const entry *e = &entries[0];
    assert_int_equal(strlen(e->trace), 32);
    assert_int_equal(strlen(e->span), 16);
    assert_string_equal(e->parent, "");
    assert_non_null(strstr(e->text, " SQL=\"SELECT 1\" N=3"));
    assert_child("Child.start", e);
    assert_child("Child.end", e);
    assert_in("Child.end", find("Child.start"));
    assert_non_null(strstr(find("Child.end")->text, " STATUS=-1 ROWS=5 HIT=true"));
    assert_in("Root.end", e);
    assert_string_equal(find("Root.end")->parent, "");
    assert_string_equal(find("Root.end")->status, "0");
}

/* Blocks have the same records as text. */
static void test_blocks(void **state)
{
    (void)state;
    char path[] = "/tmp/netlogger-span-XXXXXX", url[64];
    close(mkstemp(path));
    snprintf(url, sizeof url, "file:%s?format=nlb", path);
    nl_log *log = nl_open("prog", url);
    enum { SPANS = 300 };
    for (int i = 0; i < SPANS; i++)
        NL_SPAN (log, NL_USAGE, "Outer", "I", i) {
            if (i % 3 == 0)
                nl_write(log, NL_USAGE, "Point", "I=%d TEXT=%s X=%.1f", i, "text", 1.5);
            else
                NL_EVENT(log, NL_USAGE, "Point", "I", i, "TEXT", i % 2 == 0 ? "text" : "other text", "X", 1.5);
            NL_SPAN (log, NL_USAGE, "Inner") {
            }
        }
    assert_int_equal(nl_close(log), NL_OK);
    nl_reader *reader = nl_reader_open(path, NULL);
    const nl_record *record;
    static const char *const events[] = {"Outer.start", "Point", "Inner.start", "Inner.end", "Outer.end"};
    char trace[33] = "", outer[17] = "", inner[17] = "";
    size_t n = 0;
    while (nl_reader_next(reader, &record) == NL_OK) {
        const char *event = events[n++ % 5];
        nl_field field, parent;
        assert_int_equal(record->event.size, strlen(event));
        assert_memory_equal(record->event.data, event, record->event.size);
        int64_t i;
        if (strcmp(event, "Point") == 0) {
            assert_true(nl_record_find(record, "I", &field) && nl_field_int(&field, &i));
            assert_int_equal(i, n / 5);
            assert_true(nl_record_find(record, "TEXT", &field));
            assert_int_equal(field.string.size, i % 3 == 0 || i % 2 == 0 ? 4 : 10);
        }
        assert_true(nl_record_find(record, "TRACE.ID", &field));
        assert_int_equal(field.string.size, 32);
        if (n % 5 == 1) {
            assert_memory_not_equal(trace, field.string.data, 32);
            memcpy(trace, field.string.data, 32);
        }
        assert_memory_equal(trace, field.string.data, 32);
        assert_true(nl_record_find(record, "SPAN.ID", &field));
        assert_int_equal(field.string.size, 16);
        assert_int_equal(nl_record_find(record, "PARENT.ID", &parent), strncmp(event, "Inner", 5) == 0);
        if (n % 5 == 1)
            memcpy(outer, field.string.data, 16);
        if (n % 5 == 3)
            memcpy(inner, field.string.data, 16);
        if (strncmp(event, "Inner", 5) == 0)
            assert_memory_equal(parent.string.data, outer, 16);
        assert_memory_equal(field.string.data, strncmp(event, "Inner", 5) == 0 ? inner : outer, 16);
    }
    assert_int_equal(n, 5 * SPANS);
    assert_int_equal(nl_reader_get_stats(reader)->malformed, 0);
    assert_true(nl_reader_get_stats(reader)->blocks < SPANS);
    nl_reader_close(reader);
    unlink(path);
}

static nl_span begin_by_name(nl_log *log, const char *name, const nl_context *parent, nl_status expected)
{
    nl_span span;
    nl_field fields[] = {{.name = {"A", 1}, .type = NL_TYPE_INT, .int_value = 7},
                         {.name = {"B C=", 4}, .type = NL_TYPE_STRING, .string = {NULL, 0}},
                         {.name = {NULL, 0}, .type = NL_TYPE_BOOL, .bool_value = true}};
    assert_int_equal(nl_span_begin_fields(&span, log, NL_USAGE, name, parent, fields, 3), expected);
    return span;
}

static void test_names_at_run_time(void **state)
{
    (void)state;
    nl_log *log = open_log();
    nl_span root = begin_by_name(log, "Root", NULL, NL_OK), child = begin_by_name(log, "Child", &root.context, NL_OK);
    nl_field many[40];
    for (int i = 0; i < 40; i++)
        many[i] = (nl_field){.name = {"MANY", 4}, .type = NL_TYPE_INT, .int_value = i};
    child.status = 3;
    assert_int_equal(nl_span_end_fields(&child, many, 40), NL_OK);
    assert_int_equal(nl_span_end_fields(&child, many, 40), NL_OFF);
    assert_int_equal(nl_span_end_fields(&root, NULL, 0), NL_OK);
    read_all(log);
    assert_int_equal(entry_count, 4);
    assert_non_null(strstr(find("Root.start")->text, " A=7 B_C_=\"\" _=true"));
    assert_child("Child.start", find("Root.start"));
    assert_child("Child.end", find("Root.start"));
    assert_string_equal(find("Child.end")->status, "3");
    assert_non_null(strstr(find("Child.end")->text, " MANY=38 MANY=39"));
}

/* Spans whose names are known only at run time keep their ends for any number of names. */
static void test_many_names_at_run_time(void **state)
{
    enum { MANY = 5000, READ = 10 };
    static char names[MANY][16];
    (void)state;
    nl_log *log = nl_open("names", "file:/dev/null");
    assert_non_null(log);
    for (int i = 0; i < MANY; i++) {
        nl_span span;
        snprintf(names[i], sizeof names[i], "Name%d", i);
        if (i == MANY - READ) {
            assert_int_equal(nl_close(log), NL_OK);
            log = open_log();
        }
        assert_int_equal(nl_span_begin_fields(&span, log, NL_USAGE, names[i], NULL, NULL, 0), NL_OK);
        span.status = i;
        nl_span_end(&span, "I", i);
    }
    read_all(log);
    assert_int_equal(entry_count, 2 * READ);
    assert_string_equal(find("Name4999.end")->status, "4999");
    assert_string_equal(find("Name4999.end")->span, find("Name4999.start")->span);
}

/* One nl_span_end ends spans of several places, of both kinds, with and without parents. */
static void test_an_end_for_many_places(void **state)
{
    (void)state;
    nl_log *log = open_log();
    for (int round = 0; round < 2; round++) {
        nl_span spans[] = {nl_span_begin(log, NL_USAGE, "One", NULL), nl_span_begin(log, NL_ERROR, "Two", NULL),
                           begin_by_name(log, "Three", NULL, NL_OK), begin_by_name(log, "Thre", NULL, NL_OK),
                           nl_span_begin(log, NL_USAGE, "Two", NULL)};
        nl_span child = nl_span_begin(log, NL_USAGE, "One", &spans[1].context);
        for (int i = 0; i < 6; i++)
            nl_span_end(i < 5 ? &spans[i] : &child, "I", i);
    }
    read_all(log);
    assert_int_equal(entry_count, 24);
    assert_int_equal(count_of("One.end"), 4);
    assert_int_equal(count_of("Two.end"), 4);
    assert_int_equal(count_of("Three.end"), 2);
    assert_int_equal(count_of("Thre.end"), 2);
    static const char *const levels[] = {"Usage", "Error", "Usage", "Usage", "Usage", "Usage"};
    for (int i = 0; i < 12; i++) {
        const entry *start = &entries[i / 6 * 12 + i % 6], *end = start + 6;
        assert_string_equal(end->span, start->span);
        assert_string_equal(end->parent, start->parent);
        assert_non_null(strstr(end->text, levels[i % 6]));
    }
}

/* ---- scopes ---- */

static int leave_early(nl_log *log, int how)
{
    for (int i = 0; i < 2; i++)
        NL_SPAN (log, NL_USAGE, "Early", "HOW", how) {
            if (how == 0)
                return 5;
            if (how == 1)
                break;
            if (how == 2)
                continue;
            nl_span_set_status(9);
        }
    return 6;
}

static void test_scopes(void **state)
{
    (void)state;
    nl_log *log = open_log(), *other = nl_open("other", "memory:other");
    NL_EVENT(log, NL_USAGE, "Before");
    NL_EVENT(other, NL_USAGE, "Before");
    char large[40000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){"Kind", 4}, NULL, 0);
    nl_record *record = nl_record_new();
    nl_record_set_event(record, "Record", 6);
    nl_record_set_level(record, NL_USAGE);
    NL_SPAN (log, NL_USAGE, "Outer") {
        NL_EVENT(log, NL_USAGE, "Typed", "A", 1);
        nl_write(log, NL_USAGE, "Written", "A=%d B=%s", 1, "text");
        nl_write(log, NL_USAGE, "Printed", "A=%.3f", 1.5);
        nl_write(log, NL_USAGE, "Large", "A=%s", large);
        assert_int_equal(nl_event_write(log, kind, NULL), NL_OK);
        assert_int_equal(nl_write_record(log, record), NL_OK);
        NL_EVENT(log, NL_USAGE, "Explicit", "SPAN.ID", "mine");
        NL_EVENT(other, NL_USAGE, "Elsewhere");
        NL_SPAN (log, NL_USAGE, "Inner") {
            nl_span_set_status(-1);
            NL_EVENT(log, NL_USAGE, "Deep");
            assert_int_equal(leave_early(log, 0), 5);
            NL_EVENT(log, NL_USAGE, "Deeper");
        }
        NL_EVENT(log, NL_USAGE, "Again");
    }
    NL_EVENT(log, NL_USAGE, "After");
    NL_EVENT(other, NL_USAGE, "After");
    nl_event_kind_free(kind);
    nl_record_free(record);
    nl_close(other);
    nl_buffer text = {0};
    assert_true(nl_memory_read("other", &text));
    nl_memory_free("other");
    nl_buffer_append(&text, "", 1);
    read_all(log);
    const entry *outer = find("Outer.start"), *inner = find("Inner.start");
    static const char *const within[] = {"Typed", "Written", "Printed", "Large",
                                         "Kind",  "Record",  "Again",   "Outer.end"};
    for (size_t i = 0; i < sizeof within / sizeof *within; i++)
        assert_in(within[i], outer);
    assert_string_equal(find("Explicit")->span, "mine");
    assert_string_equal(find("Explicit")->trace, "");
    assert_child("Inner.start", outer);
    assert_in("Deep", inner);
    assert_in("Deeper", inner);
    assert_child("Early.start", inner);
    assert_string_equal(find("Inner.end")->status, "-1");
    assert_string_equal(find("Early.end")->status, "0");
    assert_string_equal(find("Outer.end")->status, "0");
    assert_string_equal(find("Before")->trace, "");
    assert_string_equal(find("After")->trace, "");
    char expected[100];
    snprintf(expected, sizeof expected, "NL.EVNT=Elsewhere TRACE.ID=%s SPAN.ID=%s\n", outer->trace, outer->span);
    assert_non_null(strstr(text.data, expected));
    assert_non_null(strstr(text.data, "NL.EVNT=Before\n"));
    assert_non_null(strstr(text.data, "NL.EVNT=After\n"));
    nl_buffer_free(&text);
}

static void test_leaving_early(void **state)
{
    (void)state;
    nl_log *log = open_log();
    for (int how = 0; how < 4; how++) {
        leave_early(log, how);
        nl_context current = nl_context_current();
        assert_true(is_empty(&current));
    }
    read_all(log);
    assert_int_equal(count_of("Early.start"), 7); /* break and continue leave the span, not the loop around it */
    assert_int_equal(count_of("Early.end"), 7);
    assert_string_equal(entries[entry_count - 1].status, "9");
}

/* The status of a span that is off does not become that of the span around it. */
static void test_status_of_spans_that_are_off(void **state)
{
    (void)state;
    nl_log *log = open_log();
    nl_set_level(log, NL_USAGE);
    NL_SPAN (log, NL_USAGE, "First") {
        NL_SPAN (log, NL_DEBUG, "Off") {
            nl_span_set_status(7);
        }
    }
    NL_SPAN (log, NL_USAGE, "Second") {
        nl_span_set_status(3);
        NL_SPAN (NULL, NL_USAGE, "Off") {
            NL_SPAN (log, NL_USAGE, "Third") {
                nl_span_set_status(4);
            }
            nl_span_set_status(7);
        }
    }
    read_all(log);
    assert_string_equal(find("First.end")->status, "0");
    assert_string_equal(find("Second.end")->status, "3");
    assert_string_equal(find("Third.end")->status, "4");
}

static int end_thread(void)
{
    pthread_exit(NULL);
}

static void *end_in_arguments(void *log)
{
    nl_span_set_status(5);
    NL_SPAN (log, NL_USAGE, "Never", "A", end_thread()) {
        fail();
    }
    return NULL;
}

/* Fills the stack of the thread, so that a scope without initialization differs from zeros. */
static void *end_in_arguments_with_a_used_stack(void *log)
{
    volatile char used[4096];
    for (size_t i = 0; i < sizeof used; i++)
        used[i] = 'x';
    return end_in_arguments(log);
}

/* The thread ends, and its cleanup handlers run, while the arguments of NL_SPAN are evaluated. */
static void test_a_thread_ends_in_the_arguments(void **state)
{
    (void)state;
    nl_log *log = open_log();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_in_arguments_with_a_used_stack, log), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    NL_EVENT(log, NL_USAGE, "After");
    read_all(log);
    assert_int_equal(entry_count, 1);
}

/* ---- threads ---- */

typedef struct passed {
    nl_log *log;
    nl_context context;
    nl_span *span;
} passed;

static void *work_elsewhere(void *user)
{
    const passed *p = user;
    nl_context before = nl_context_attach(&p->context);
    assert_true(is_empty(&before));
    NL_EVENT(p->log, NL_USAGE, "Passed");
    NL_SPAN (p->log, NL_USAGE, "Work") {
    }
    nl_span_end(p->span);
    nl_context_attach(&before);
    NL_EVENT(p->log, NL_USAGE, "Detached");
    nl_span open = nl_span_begin(p->log, NL_USAGE, "Open", &p->context);
    nl_context_attach(&open.context); /* the thread exits in the span */
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    nl_log *log = open_log();
    nl_span first = nl_span_begin(log, NL_USAGE, "First", NULL);
    nl_span second = nl_span_begin(log, NL_USAGE, "Second", &first.context);
    passed p = {log, first.context, &second};
    pthread_t thread;
    NL_SPAN (log, NL_USAGE, "Unrelated") {
        assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, &p), 0);
        pthread_join(thread, NULL);
    }
    assert_null(second.log);
    nl_span_end(&first);
    read_all(log);
    assert_in("Passed", find("First.start"));
    assert_child("Work.start", find("First.start"));
    assert_child("Second.end", find("First.start"));
    assert_string_equal(find("Detached")->trace, "");
    assert_child("Open.start", find("First.start"));
    assert_int_equal(count_of("Open.end"), 0);
    assert_int_equal(entry_count, 11);
}

/*
 * Enters scopes in one log while another thread opens, uses and closes logs. The rings of these logs have the other
 * entries of the threads.
 */
static void *enter_scopes(void *user)
{
    const passed *p = user;
    while (!__atomic_load_n(&p->span->status, __ATOMIC_RELAXED))
        NL_SPAN (p->log, NL_USAGE, "Scope") {
            NL_EVENT(p->log, NL_USAGE, "Event");
        }
    return NULL;
}

static void test_logs_that_open_and_close(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "file:/dev/null");
    nl_span stop = {.status = 0};
    passed p = {.log = log, .span = &stop};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enter_scopes, &p), 0);
    for (int i = 0; i < 20; i++) {
        nl_log *other = open_log();
        NL_SPAN (other, NL_USAGE, "Other") {
            NL_EVENT(other, NL_USAGE, "Event");
            NL_EVENT(log, NL_USAGE, "Elsewhere");
        }
        NL_EVENT(other, NL_USAGE, "Outside");
        read_all(other);
        assert_int_equal(entry_count, 4);
        assert_in("Event", find("Other.start"));
        assert_string_equal(find("Outside")->trace, "");
    }
    __atomic_store_n(&stop.status, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(nl_close(log), NL_OK);
}

enum { THREADS = 4, IDS = 5000 };

static void *draw_ids(void *user)
{
    uint64_t *ids = user;
    nl_context unsampled = parse(unsampled_text);
    char text[NL_TRACEPARENT_SIZE];
    for (int i = 0; i < IDS; i++) {
        nl_traceparent_format(&unsampled, text);
        nl_context context = parse(text);
        memcpy(&ids[i], context.span_id, sizeof *ids);
    }
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static void test_ids_are_unique(void **state)
{
    (void)state;
    static uint64_t ids[THREADS + 1][IDS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw_ids, ids[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    draw_ids(ids[0]); /* this thread's generator has a state now */
    pid_t child = fork();
    if (child == 0) {
        draw_ids(ids[0]);
        _exit(write(ends[1], ids[0], 1000 * sizeof **ids) == 1000 * sizeof **ids ? 0 : 1);
    }
    draw_ids(ids[0]);
    assert_int_equal(read(ends[0], ids[THREADS], 1000 * sizeof **ids), 1000 * sizeof **ids);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    size_t count = (size_t)THREADS * IDS + 1000;
    qsort(ids, count, sizeof **ids, compare_ids);
    for (size_t i = 1; i < count; i++)
        assert_true((&ids[0][0])[i] != (&ids[0][0])[i - 1]);
    assert_true(ids[0][0] != 0);
}

/* ---- processes ---- */

static void test_fork(void **state)
{
    (void)state;
    char path[] = "/tmp/netlogger-span-XXXXXX", url[64];
    close(mkstemp(path));
    snprintf(url, sizeof url, "file:%s", path);
    nl_log *log = nl_open("prog", url);
    int status;
    NL_SPAN (log, NL_USAGE, "Shared") {
        pid_t child = fork();
        if (child == 0) {
            NL_EVENT(log, NL_USAGE, "InChild");
            NL_SPAN (log, NL_USAGE, "Forked", "WHO", "child") {
            }
            _exit(nl_close(log) == NL_OK ? 0 : 1);
        }
        NL_SPAN (log, NL_USAGE, "Forked", "WHO", "parent") {
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    assert_int_equal(nl_close(log), NL_OK);
    FILE *file = fopen(path, "r");
    char text[8192];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    char shared[24], in_child[24], forked[2][24], parent[24];
    const char *start = strstr(text, "NL.EVNT=Shared.start");
    copy_value(start, " SPAN.ID=", shared, sizeof shared);
    copy_value(strstr(text, "NL.EVNT=InChild"), " SPAN.ID=", in_child, sizeof in_child);
    assert_string_equal(in_child, shared);
    const char *at = text;
    for (int i = 0; i < 2; i++) {
        at = strstr(at + 1, "NL.EVNT=Forked.start");
        assert_non_null(at);
        copy_value(at, " SPAN.ID=", forked[i], sizeof forked[i]);
        copy_value(at, " PARENT.ID=", parent, sizeof parent);
        assert_string_equal(parent, shared);
    }
    assert_string_not_equal(forked[0], forked[1]);
}

static void test_environment(void **state)
{
    (void)state;
    nl_context context;
    unsetenv("TRACEPARENT");
    assert_int_equal(nl_traceparent_parse(NULL, 0, &context), NL_OFF);
    assert_true(is_empty(&context));
    setenv("TRACEPARENT", "nonsense", 1);
    assert_int_equal(nl_traceparent_parse(NULL, 0, &context), NL_FAILED);
    assert_true(is_empty(&context));
    nl_log *log = open_log();
    nl_span span = nl_span_begin(log, NL_USAGE, "Start", NULL);
    char inherited[100] = "", expected[NL_TRACEPARENT_SIZE];
    assert_int_equal(nl_traceparent_format(&span.context, expected), 55);
    setenv("TRACEPARENT", expected, 1);
    FILE *program = popen("printf %s \"$TRACEPARENT\"", "r"); /* a program started with exec */
    assert_non_null(program);
    assert_non_null(fgets(inherited, sizeof inherited, program));
    pclose(program);
    assert_string_equal(inherited, expected);
    assert_int_equal(nl_traceparent_parse(NULL, 0, &context), NL_OK);
    assert_memory_equal(&context, &span.context, sizeof context);
    unsetenv("TRACEPARENT");
    nl_span_end(&span);
    nl_close(log);
    nl_memory_free("spans");
}

/* A killed process leaves its spans, and the events in them, for nlrecover. */
static void test_recovery_after_fork(void **state)
{
    (void)state;
    char folder[] = "/tmp/netlogger-span-XXXXXX", path[64], url[128], command[128];
    assert_non_null(mkdtemp(folder));
    setenv("NETLOGGER_SHM", folder, 1);
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(url, sizeof url, "file:%s", path);
    pid_t child = fork();
    if (child == 0) {
        nl_log *log = nl_open("prog", url);
        nl_span span = nl_span_begin(log, NL_USAGE, "Killed", NULL, "A", 1);
        nl_context_attach(&span.context);
        NL_EVENT(log, NL_USAGE, "Point", "B", 2);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(nl_recover(NULL, NULL, NULL), NL_OK);
    unsetenv("NETLOGGER_SHM");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char text[2000], id[24], point[24];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *start = strstr(text, "NL.EVNT=Killed.start"), *event = strstr(text, "NL.EVNT=Point B=2");
    assert_non_null(start);
    assert_non_null(event);
    copy_value(start, " SPAN.ID=", id, sizeof id);
    copy_value(event, " SPAN.ID=", point, sizeof point);
    assert_string_equal(point, id);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- spans that are not logged ---- */

static void test_sampling(void **state)
{
    (void)state;
    nl_log *log = open_log();
    nl_context unsampled = parse(unsampled_text), remote = parse(remote_text);
    nl_context_attach(&unsampled);
    NL_SPAN (log, NL_USAGE, "Unsampled", "A", (fail(), 1)) {
        NL_EVENT(log, NL_USAGE, "Event");
        nl_span deep = nl_span_begin(log, NL_USAGE, "Deep", NULL);
        assert_null(deep.log);
        char first[NL_TRACEPARENT_SIZE], second[NL_TRACEPARENT_SIZE];
        nl_traceparent_format(&deep.context, first);
        nl_traceparent_format(&deep.context, second);
        assert_memory_equal(first, unsampled_text, 36);
        assert_memory_not_equal(first + 36, unsampled_text + 36, 16);
        assert_memory_not_equal(first + 36, second + 36, 16);
        assert_string_equal(first + 52, "-02");
        nl_span_end(&deep, "A", (fail(), 1));
        begin_by_name(log, "Dynamic", NULL, NL_OFF);
        NL_SPAN (log, NL_USAGE, "Other") {
            nl_span apart = nl_span_begin(log, NL_USAGE, "Apart", NL_NO_PARENT);
            assert_int_equal(apart.context.flags, NL_CONTEXT_SAMPLED | NL_CONTEXT_RANDOM);
            nl_span_end(&apart);
        }
    }
    nl_context_attach(&remote);
    NL_SPAN (log, NL_USAGE, "Sampled") {
    }
    nl_context_attach(NULL);
    read_all(log);
    assert_int_equal(entry_count, 5);
    assert_string_equal(find("Event")->trace, "");
    assert_string_equal(find("Apart.start")->parent, "");
    assert_string_equal(find("Sampled.start")->trace, "00112233445566778899aabbccddeeff");
    assert_string_equal(find("Sampled.start")->parent, "0123456789abcdef");
}

static void test_what_is_off(void **state)
{
    (void)state;
    nl_log *log = open_log();
    nl_set_level(log, NL_USAGE);
    nl_span outer = nl_span_begin(log, NL_USAGE, "Outer", NULL);
    for (int round = 0; round < 3; round++) {
        nl_span off[] = {nl_span_begin(NULL, NL_USAGE, "Null", &outer.context, "A", (fail(), 1)),
                         nl_span_begin(log, NL_DEBUG, "Level", &outer.context, "A", (fail(), 1)),
                         nl_span_begin(log, NL_USAGE, "Named", &outer.context, "A", 1)};
        if (round == 0) {
            nl_span_end(&off[2]);
            assert_int_equal(nl_control(log, "event Named.* off\nevent Later.start off", 39), NL_OK);
        }
        for (int i = 0; i < 3 && round > 0; i++) {
            assert_null(off[i].log);
            assert_memory_equal(&off[i].context, &outer.context, sizeof outer.context);
        }
        nl_span later = nl_span_begin(log, NL_USAGE, "Later", &outer.context); /* off before its first use */
        assert_null(later.log);
        assert_memory_equal(&later.context, &outer.context, sizeof outer.context);
        NL_SPAN (NULL, NL_USAGE, "Null") {
        }
        begin_by_name(NULL, "Null", NULL, NL_OFF);
        begin_by_name(log, "Named", NULL, NL_OFF);
    }
    nl_control(log, "event * on", 10);
    nl_set_level(log, NL_ERROR);
    nl_span_end(&outer); /* its start is in the log */
    nl_span_end(&outer, "A", (fail(), 1));
    nl_span_end((nl_span *)NULL);
    assert_int_equal(nl_span_end_fields(NULL, NULL, 0), NL_OFF);
    nl_set_level(log, NL_DEBUG);
    read_all(log);
    assert_int_equal(count_of("Named.start"), 1);
    assert_int_equal(count_of("Named.end"), 1);
    assert_int_equal(entry_count, 4);
}

static void test_a_full_ring(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:spans?ring=64k&policy=newest");
    nl_span before = nl_span_begin(log, NL_USAGE, "Before", NULL), lost = before;
    uint64_t count = 0;
    char text[1000];
    memset(text, 'x', sizeof text);
    for (; count < 3000; count++)
        lost = nl_span_begin(log, NL_DEBUG, "Fill", &before.context, "TEXT", NL_BYTES(text, sizeof text));
    assert_non_null(lost.log); /* its IDs are valid, even if its start was lost */
    assert_memory_equal(lost.context.trace_id, before.context.trace_id, sizeof lost.context.trace_id);
    nl_flush(log);
    nl_span_end(&before);
    nl_close(log); /* reports the lost events */
    nl_buffer all = {0};
    assert_true(nl_memory_read("spans", &all));
    nl_memory_free("spans");
    nl_buffer_append(&all, "", 1);
    uint64_t starts = 0, reported = 0;
    for (const char *at = all.data; (at = strstr(at, "NL.EVNT=")) != NULL; at++) {
        starts += strncmp(at, "NL.EVNT=Fill.start", 18) == 0;
        if (strncmp(at, "NL.EVNT=NetLogger.Lost COUNT=", 29) == 0)
            reported += strtoull(at + 29, NULL, 10);
    }
    assert_int_equal(starts + reported, count);
    assert_non_null(strstr(all.data, "NL.EVNT=Before.end"));
    nl_buffer_free(&all);
}

/* A ring that keeps the latest events overwrites events in spans like others. */
static void test_a_flight_recorder(void **state)
{
    (void)state;
    nl_log *log = nl_open("prog", "memory:spans?ring=64k&policy=oldest");
    nl_span span = nl_span_begin(log, NL_USAGE, "Span", NULL);
    nl_context_attach(&span.context);
    uint64_t count = 20000;
    for (uint64_t i = 0; i < count; i++)
        NL_EVENT(log, NL_USAGE, "Event", "I", i);
    nl_context_attach(NULL);
    nl_close(log);
    nl_buffer all = {0};
    assert_true(nl_memory_read("spans", &all));
    nl_memory_free("spans");
    nl_buffer_append(&all, "", 1);
    uint64_t events = 0, with_id = 0, reported = 0;
    for (const char *at = all.data; (at = strstr(at, "NL.EVNT=")) != NULL; at++) {
        char id[24];
        events += strncmp(at, "NL.EVNT=Event", 13) == 0 || strncmp(at, "NL.EVNT=Span.start", 18) == 0;
        size_t line = strcspn(at, "\n");
        const char *found = strstr(at, " SPAN.ID=");
        if (found != NULL && (size_t)(found - at) < line) {
            copy_value(at, " SPAN.ID=", id, sizeof id);
            with_id += strlen(id) == 16;
        }
        if (strncmp(at, "NL.EVNT=NetLogger.Lost COUNT=", 29) == 0)
            reported += strtoull(at + 29, NULL, 10);
    }
    assert_int_equal(events + reported, count + 1);
    assert_int_equal(with_id, events);
    nl_buffer_free(&all);
}

static nl_log *handler_log;

static void on_signal(int number)
{
    (void)number;
    NL_EVENT(handler_log, NL_USAGE, "Signal");
}

static void test_signal_handlers(void **state)
{
    (void)state;
    handler_log = open_log();
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGUSR1, &action, &before);
    NL_SPAN (handler_log, NL_USAGE, "Span") {
        raise(SIGUSR1);
    }
    raise(SIGUSR1);
    sigaction(SIGUSR1, &before, NULL);
    read_all(handler_log);
    assert_int_equal(count_of("Signal"), 2);
    assert_in("Signal", find("Span.start"));
    assert_string_equal(entries[entry_count - 1].trace, "");
}

/* ---- wrong calls ---- */

static void test_wrong_calls(void **state)
{
    (void)state;
    nl_log *log = open_log();
    nl_span span;
    nl_field field = {.name = {"A", 1}, .type = (nl_type)9};
    char huge[5000];
    memset(huge, 'n', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(nl_span_begin_fields(NULL, log, NL_USAGE, "N", NULL, NULL, 0), NL_FAILED);
    assert_int_equal(nl_span_begin_fields(&span, log, NL_USAGE, NULL, NULL, NULL, 0), NL_FAILED);
    assert_int_equal(nl_span_begin_fields(&span, log, NL_USAGE, "", NULL, NULL, 0), NL_FAILED);
    assert_int_equal(nl_span_begin_fields(&span, log, NL_USAGE, huge, NULL, NULL, 0), NL_FAILED);
    assert_int_equal(nl_span_begin_fields(&span, log, (nl_level)99, "N", NULL, NULL, 0), NL_FAILED);
    assert_int_equal(nl_span_begin_fields(&span, log, NL_USAGE, "N", NULL, NULL, 1), NL_FAILED);
    assert_int_equal(nl_span_begin_fields(&span, log, NL_USAGE, "N", NULL, &field, 1), NL_FAILED);
    assert_null(span.log);
    nl_span_end(&span);
    assert_int_equal(nl_span_begin_fields(&span, log, NL_USAGE, "N", NULL, NULL, 0), NL_OK);
    assert_int_equal(nl_span_end_fields(&span, NULL, 1), NL_FAILED);
    assert_int_equal(nl_span_end_fields(&span, &field, 1), NL_FAILED);
    assert_int_equal(nl_span_end_fields(&span, NULL, 0), NL_OK);
    read_all(log);
    assert_int_equal(entry_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_and_end),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_names_at_run_time),
        cmocka_unit_test(test_many_names_at_run_time),
        cmocka_unit_test(test_an_end_for_many_places),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_leaving_early),
        cmocka_unit_test(test_status_of_spans_that_are_off),
        cmocka_unit_test(test_a_thread_ends_in_the_arguments),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_logs_that_open_and_close),
        cmocka_unit_test(test_ids_are_unique),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_recovery_after_fork),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_what_is_off),
        cmocka_unit_test(test_a_full_ring),
        cmocka_unit_test(test_a_flight_recorder),
        cmocka_unit_test(test_signal_handlers),
        cmocka_unit_test(test_wrong_calls),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    leave_out_what_the_thread_sanitizer_cannot();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
