/* Logging to memory: formats, values, levels, records. */
#include <netlogger.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "thread_sanitizer.h"
#include "under_valgrind.h"

static nl_log *log_open_log(void **state)
{
    (void)state;
    nl_memory_free("log");
    nl_log *log = nl_open("prog", "memory:log");
    assert_non_null(log);
    return log;
}

/* Returns everything logged so far, read back. */
static nl_reader *read_back(void)
{
    nl_reader *reader = nl_reader_open("memory:log", NULL);
    assert_non_null(reader);
    return reader;
}

static void expect_field(const nl_record *record, const char *name, const char *value, size_t size)
{
    nl_field field;
    assert_true(nl_record_find(record, name, &field));
    assert_int_equal(field.string.size, size);
    assert_memory_equal(field.string.data, value, size);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat" /* %hhd of 300 */
static void printf_formats(void **state)
{
    nl_log *log = log_open_log(state);
    errno = ENOENT;
    assert_int_equal(
        nl_write(log, NL_USAGE, "E",
                 "D=%d  LD=%ld U=%u LLX=%llx Z=%zu J=%jd F=%.3f G=%g C=%c P=%% S=%s W=%*d PS=%.*s HH=%hhd M=%m "
                 "TWO=%d/%d L=a%sb T=%-5dx Q=\"%s y\"",
                 -5, -6L, 7u, 0xabcULL, (size_t)8, (intmax_t)-9, 1.5, 2.5, 'c', "text", 6, 42, 3, "abcdef", 300, 1, 2,
                 "-", 7, "x"),
        NL_OK);
    assert_int_equal(errno, ENOENT);
    nl_close(log);
    static const char *const expected[][2] = {
        {"D", "-5"},    {"LD", "-6"},    {"U", "7"},      {"LLX", "abc"}, {"Z", "8"},
        {"J", "-9"},    {"F", "1.500"},  {"G", "2.5"},    {"C", "c"},     {"P", "%"},
        {"S", "text"},  {"W", "    42"}, {"PS", "abc"},   {"HH", "44"},   {"M", "No such file or directory"},
        {"TWO", "1/2"}, {"L", "a-b"},    {"T", "7    x"}, {"Q", "x y"}};
    nl_reader *reader = read_back();
    const nl_record *record;
    assert_int_equal(nl_reader_next(reader, &record), NL_OK);
    assert_int_equal(record->field_count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < record->field_count; i++) {
        assert_int_equal(record->fields[i].name.size, strlen(expected[i][0]));
        expect_field(record, expected[i][0], expected[i][1], strlen(expected[i][1]));
    }
    nl_reader_close(reader);
}
#pragma GCC diagnostic pop

/* A log that cannot be opened does not change the program's descriptors. */
static void what_is_not_opened_closes_nothing(void **state)
{
    (void)state;
    static const char *const urls[] = {"file:///tmp/x?bogus=1", "file:///no/such/folder/x", "x-netlog://h?policy=what",
                                       "file:///tmp/x?backup=what://", "file:///tmp/x?spool=/dev/null/x"};
    struct stat before, after;
    int in = open("/dev/null", O_RDONLY), kept = dup(0);
    assert_int_equal(dup2(in, 0), 0); /* so that the result does not depend on the environment of the tests */
    assert_int_equal(fstat(0, &before), 0);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        assert_null(nl_open("prog", urls[i]));
        assert_int_equal(fstat(0, &after), 0);
        assert_int_equal(after.st_rdev, before.st_rdev);
    }
    if (kept >= 0) {
        dup2(kept, 0);
        close(kept);
    }
    close(in);
}

/* A value's bytes (except NUL, which ends a %s) come back in one field. */
static void any_bytes_come_back(void **state)
{
    nl_log *log = log_open_log(state);
    srand(2);
    char values[500][60];
    for (int i = 0; i < 500; i++) {
        size_t size = (size_t)rand() % 59;
        for (size_t j = 0; j < size; j++)
            values[i][j] = (char)(rand() % 3 == 0 ? " \"=\\\n\tA"[rand() % 7] : rand() % 255 + 1);
        values[i][size] = '\0';
        assert_int_equal(nl_write(log, NL_USAGE, "E", "V=%s N=%d", values[i], i), NL_OK);
    }
    nl_close(log);
    nl_reader *reader = read_back();
    const nl_record *record;
    for (int i = 0; i < 500; i++) {
        assert_int_equal(nl_reader_next(reader, &record), NL_OK);
        assert_int_equal(record->field_count, 2);
        expect_field(record, "V", values[i], strlen(values[i]));
    }
    assert_int_equal(nl_reader_next(reader, &record), NL_END);
    nl_reader_close(reader);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wformat-overflow"
#endif
static void bad_formats_are_refused(void **state)
{
    nl_log *log = log_open_log(state);
    int n = 0;
    static const char *const bad[] = {"N=%n", "no pair", "=5", "A=%y", "1A=5", "A=%"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(nl_write(log, NL_USAGE, "E", bad[i], &n), NL_FAILED);
        assert_string_not_equal(nl_error_message(), "");
    }
    assert_int_equal(nl_write(log, NL_USAGE, "E", "A=%s B=%.2000s", NULL, "x"), NL_OK);
    char longest[300];
    memset(longest, 'N', sizeof longest);
    strcpy(longest + 290, "=1");
    assert_int_equal(nl_write(log, NL_USAGE, "E", longest), NL_FAILED);
    nl_close(log);
    nl_buffer text = {0};
    assert_true(nl_memory_read("log", &text));
    nl_buffer_append(&text, "", 1);
    assert_non_null(strstr(text.data, "NL.EVNT=E A=(null) B=x\n"));
    nl_buffer_free(&text);
}
#pragma GCC diagnostic pop

/* Returns everything logged, NUL-terminated. Freed with the memory. */
static char *take_text(void)
{
    nl_buffer text = {0};
    assert_true(nl_memory_read("log", &text));
    nl_buffer_append(&text, "", 1);
    nl_memory_free("log");
    return text.data;
}

static size_t count(const char *text, const char *what)
{
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        found++;
    return found;
}

/* A value that the ring stores unformatted must be written as printf would format it. */
static void values_that_are_not_printed(void **state)
{
    nl_log *log = log_open_log(state);
    for (int i = 0; i < 2; i++) {
        nl_write(log, NL_USAGE, "Signed", "A=%d B=%i C=%ld D=%lld E=%jd F=%zd G=%hd H=%hhd", INT_MIN, INT_MAX, LONG_MIN,
                 LLONG_MAX, INTMAX_MIN, (ssize_t)-1, (short)-2, (signed char)-3);
        nl_write(log, NL_USAGE, "Unsigned", "A=%u B=%lu C=%llu D=%ju E=%zu F=%hu G=%hhu", UINT_MAX, ULONG_MAX,
                 ULLONG_MAX, UINTMAX_MAX, SIZE_MAX, (unsigned short)65535, (unsigned char)255);
        nl_write(log, NL_USAGE, "Quoted", "  A=\"%d\"  B=\"%s\" C=%s \n D= E=%d  ", 1, "a b", "", 2);
        nl_write(log, NL_USAGE, "Mixed", "A=%d B=%x C=%s D=%.2s E=%ld%% F=x", 1, 255, "s", "text", 5L);
        nl_write(log, NL_LEVEL_NONE, "None", "A=%d", 1);
    }
    nl_close(log);
    char *text = take_text();
    char expected[256]; /* a long may have 32 bits */
    snprintf(expected, sizeof expected,
             " LVL=Usage NL.EVNT=Signed A=-2147483648 B=2147483647 C=%ld D=9223372036854775807 E=-9223372036854775808 "
             "F=-1 G=-2 H=-3\n",
             LONG_MIN);
    assert_int_equal(count(text, expected), 2);
    snprintf(expected, sizeof expected,
             " NL.EVNT=Unsigned A=4294967295 B=%lu C=18446744073709551615 D=18446744073709551615 E=%zu F=65535 G=255\n",
             ULONG_MAX, SIZE_MAX);
    assert_int_equal(count(text, expected), 2);
    assert_int_equal(count(text, " NL.EVNT=Quoted A=1 B=\"a b\" C=\"\" D=\"\" E=2\n"), 2);
    assert_int_equal(count(text, " NL.EVNT=Mixed A=1 B=ff C=s D=te E=5% F=x\n"), 2);
    assert_int_equal(count(text, " PROG=prog NL.EVNT=None A=1\n"), 2);
    free(text);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
/* Another format may have the address of an earlier format, because memory is used again. */
static void formats_in_memory_used_again(void **state)
{
    nl_log *log = log_open_log(state);
    char event[16] = "First", format[16] = "A=%d";
    nl_write(log, NL_USAGE, event, format, 1);
    strcpy(format, "A=%s");
    nl_write(log, NL_USAGE, event, format, "text");
    strcpy(event, "Second");
    nl_write(log, NL_USAGE, event, format, "text");
    nl_write(log, NL_ERROR, event, format, "text");
    strcpy(format, "A");
    assert_int_equal(nl_write(log, NL_ERROR, event, format, "text"), NL_FAILED);
    strcpy(format, "BC=%x");
    nl_write(log, NL_ERROR, event, format, 255);
    nl_close(log);
    char *text = take_text();
    static const char *const expected[] = {"Usage NL.EVNT=First A=1\n", "Usage NL.EVNT=First A=text\n",
                                           "Usage NL.EVNT=Second A=text\n", "Error NL.EVNT=Second A=text\n",
                                           "Error NL.EVNT=Second BC=ff\n"};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(count(text, expected[i]), 1);
    assert_int_equal(count(text, "\n"), sizeof expected / sizeof expected[0]);
    free(text);
}

/* Uses more formats than each thread and the process keep. */
static void many_formats(void **state)
{
    enum { FORMATS = 6000 };
    nl_log *log = log_open_log(state);
    char *formats = malloc(FORMATS * 32);
    for (int i = 0; i < FORMATS; i++)
        snprintf(formats + 32 * i, 32, "F%d=%%d S=%%s", i);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < FORMATS; i++)
            assert_int_equal(nl_write(log, NL_USAGE, "Many", formats + 32 * i, i, "x"), NL_OK);
    nl_close(log);
    nl_reader *reader = read_back();
    const nl_record *record;
    for (int i = 0; i < 2 * FORMATS; i++) {
        assert_int_equal(nl_reader_next(reader, &record), NL_OK);
        char name[32], value[32];
        snprintf(name, sizeof name, "F%d", i % FORMATS);
        snprintf(value, sizeof value, "%d", i % FORMATS);
        expect_field(record, name, value, strlen(value));
        expect_field(record, "S", "x", 1);
    }
    assert_int_equal(nl_reader_next(reader, &record), NL_END);
    nl_reader_close(reader);
    free(formats);
}
#pragma GCC diagnostic pop

static void what_no_site_can_hold(void **state)
{
    nl_log *log = log_open_log(state);
    char *event = malloc(6001), *value = malloc(200001);
    memset(event, 'e', 6000);
    memset(value, 'v', 200000);
    event[6000] = value[200000] = '\0';
    nl_write(log, NL_USAGE, event, "A=%d", 1);
    nl_write(log, NL_USAGE, "Many",
             "A=%d B=%d C=%d D=%d E=%d F=%d G=%d H=%d I=%d J=%d K=%d L=%d M=%d N=%d O=%d P=%d Q=%s", 1, 2, 3, 4, 5, 6,
             7, 8, 9, 10, 11, 12, 13, 14, 15, 16, "end");
    nl_write(log, NL_USAGE, "Long", "A=%s B=%d", value, 2);
    nl_close(log);
    char *text = take_text();
    assert_int_equal(strspn(strstr(text, "NL.EVNT=e") + strlen("NL.EVNT="), "e"), 6000);
    assert_int_equal(count(text, " O=15 P=16 Q=end\n"), 1);
    assert_int_equal(strspn(strstr(text, "A=v") + strlen("A="), "v"), 128 * 1024);
    assert_int_equal(count(text, "v B=2\n"), 1);
    free(text);
    free(event);
    free(value);
}

static nl_log *shared_log;

static void *write_some(void *argument)
{
    for (int i = 0; i < 300; i++) {
        nl_write(shared_log, NL_USAGE, "Some", "THREAD=%ld I=%d", (long)argument, i);
        nl_write(shared_log, NL_USAGE, "Other", "I=%03d X=%s", i, "text");
    }
    return NULL;
}

static void threads_share_formats(void **state)
{
    enum { ROUNDS = 10, THREADS = 8 };
    shared_log = log_open_log(state);
    for (long round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (long i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, write_some, (void *)(round * THREADS + i));
        for (long i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    nl_close(shared_log);
    char *text = take_text();
    assert_int_equal(count(text, "NL.EVNT=Some THREAD="), ROUNDS * THREADS * 300);
    assert_int_equal(count(text, " I=299\n"), ROUNDS * THREADS);
    assert_int_equal(count(text, "NL.EVNT=Other I=007 X=text\n"), ROUNDS * THREADS);
    free(text);
}

/* The child knows the formats, but the shared memory of its events does not have them yet. */
static void formats_after_fork(void **state)
{
    (void)state;
    char path[] = "/tmp/netlogger-XXXXXX", url[64], text[4096] = "";
    int fd = mkstemp(path);
    snprintf(url, sizeof url, "file:%s", path);
    nl_log *log = nl_open("prog", url);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nl_write(log, NL_USAGE, "Forked", "I=%d S=%s", i, "parent"), NL_OK);
        pid_t child = fork();
        if (child == 0) {
            bool good = nl_write(log, NL_USAGE, "New", "I=%d X=%x", i, 255) == NL_OK &&
                        nl_write(log, NL_USAGE, "Forked", "I=%d S=%s", i, "child") == NL_OK;
            _exit(nl_close(log) == NL_OK && good ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    assert_int_equal(nl_close(log), NL_OK);
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    for (int i = 0; i < 3; i++) {
        char line[64];
        snprintf(line, sizeof line, "NL.EVNT=Forked I=%d S=parent\n", i);
        assert_int_equal(count(text, line), 1);
        snprintf(line, sizeof line, "NL.EVNT=Forked I=%d S=child\n", i);
        assert_int_equal(count(text, line), 1);
        snprintf(line, sizeof line, "NL.EVNT=New I=%d X=ff\n", i);
        assert_int_equal(count(text, line), 1);
    }
    close(fd);
    unlink(path);
}

static volatile sig_atomic_t handled, refused;

static void write_in_handler(int number)
{
    (void)number;
    handled++;
    refused += nl_write(shared_log, NL_USAGE, "Handler", "N=%d X=%x", (int)handled, 255) != NL_OK;
}

/*
 * If a handler interrupts nl_write at any place, its event is rejected and counted. At other places, the handler logs.
 */
static void handlers_in_the_middle(void **state)
{
    shared_log = log_open_log(state);
    nl_write(shared_log, NL_USAGE, "Handler", "N=%d X=%x", 0, 255);
    struct sigaction action = {.sa_handler = write_in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    int written = 0;
    for (; handled < 500; written++)
        assert_int_equal(nl_write(shared_log, NL_USAGE, "Main", "N=%d F=%.9f S=%200s", written, 1.5, "text"), NL_OK);
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN); /* one event may still be in transit */
    nl_write(shared_log, NL_USAGE, "End", NULL);
    nl_close(shared_log);
    nl_reader *reader = read_back();
    const nl_record *record;
    int mains = 0, handlers = 0;
    int64_t lost = 0, some;
    while (nl_reader_next(reader, &record) == NL_OK) {
        nl_field field;
        mains += record->event.size == 4;
        handlers += record->event.size == 7;
        if (nl_record_find(record, "REFUSED", &field) && nl_field_int(&field, &some))
            lost += some;
    }
    nl_reader_close(reader);
    assert_int_equal(mains, written);
    assert_int_equal(handlers - 1 + lost, handled);
    assert_int_equal(lost, refused);
}

static void levels_and_off(void **state)
{
    nl_log *log = log_open_log(state);
    nl_set_level(log, NL_WARNING);
    assert_int_equal(nl_write(log, NL_USAGE, "Off", NULL), NL_OFF);
    assert_int_equal(nl_write(log, NL_ERROR, "On", NULL), NL_OK);
    nl_close(log);
    nl_reader *reader = read_back();
    const nl_record *record;
    assert_int_equal(nl_reader_next(reader, &record), NL_OK);
    assert_int_equal(record->level, NL_ERROR);
    assert_int_equal(nl_reader_next(reader, &record), NL_END);
    nl_reader_close(reader);

    assert_int_equal(nl_write(NULL, NL_ERROR, "E", "A=%d", 1), NL_OFF);
    assert_int_equal(nl_flush(NULL), NL_OK);
    assert_int_equal(nl_close(NULL), NL_OK);
    setenv("NETLOGGER_ON", "off", 1);
    assert_null(nl_open("p", "memory:log"));
    assert_string_equal(nl_error_message(), "");
    unsetenv("NETLOGGER_ON");
    unsetenv("NETLOGGER_DEST");
    assert_null(nl_open("p", NULL));
    assert_string_equal(nl_error_message(), "");
}

/* ---- destinations that cannot be reached ---- */

enum { MESSAGES_MAX = 8 };

static struct {
    unsigned count;
    nl_message_kind kinds[MESSAGES_MAX];
    char texts[MESSAGES_MAX][1024];
} messages;

static void keep_message(void *user, nl_message_kind kind, const char *message)
{
    assert_ptr_equal(user, &messages);
    assert_true(messages.count < MESSAGES_MAX);
    messages.kinds[messages.count] = kind;
    snprintf(messages.texts[messages.count++], sizeof messages.texts[0], "%s", message);
}

static void begin_messages(void)
{
    memset(&messages, 0, sizeof messages);
    nl_set_message_handler(keep_message, &messages);
}

/* Binds a socket to a loopback port without a listener, and puts its URL in url. */
static int closed_port(char url[64], const char *options)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    snprintf(url, 64, "x-netlog://127.0.0.1:%d%s", ntohs(address.sin_port), options);
    return fd;
}

static void an_absent_collector_is_reported_once_and_at_close(void **state)
{
    (void)state;
    char url[64], expected[256];
    int fd = closed_port(url, "");
    begin_messages();
    nl_log *log = nl_open("p", url);
    assert_non_null(log);
    assert_string_equal(nl_error_message(), "");
    for (int i = 0; i < 3; i++)
        assert_int_equal(nl_write(log, NL_USAGE, "E", "I=%d", i), NL_OK);
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_int_equal(messages.count, 1);
    assert_int_equal(messages.kinds[0], NL_MESSAGE_RETRY);
    snprintf(expected, sizeof expected, "%s: Connection refused; is netlogd running there? (retrying)", url);
    assert_string_equal(messages.texts[0], expected);
    assert_int_equal(nl_close(log), NL_FAILED);
    assert_non_null(strstr(nl_error_message(), "3 events not delivered; nlrecover delivers them from /"));
    assert_int_equal(messages.count, 2);
    assert_int_equal(messages.kinds[1], NL_MESSAGE_CLOSE);
    assert_non_null(strstr(messages.texts[1], nl_error_message()));
    const char *directory = strstr(nl_error_message(), " from /") + strlen(" from ");
    char path[256];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(directory, ":"), directory);
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
    nl_set_message_handler(NULL, NULL);
}

/* A collector that serves one connection: it acknowledges the time question that begins the connection, and reads to
 * the end. */
typedef struct text_collector {
    pthread_t thread;
    int listener;
    char text[8192];
    size_t size;
} text_collector;

static void *text_collector_run(void *user)
{
    static const char acknowledgement[16] = "NLA1\x08\0\0\0\x01";
    text_collector *c = user;
    int connection = accept(c->listener, NULL, NULL);
    assert_int_equal(write(connection, acknowledgement, sizeof acknowledgement), sizeof acknowledgement);
    for (ssize_t got; (got = read(connection, c->text + c->size, sizeof c->text - c->size)) > 0;)
        c->size += (size_t)got;
    close(connection);
    return NULL;
}

static void text_collector_start(text_collector *c, int listener)
{
    *c = (text_collector){.listener = listener};
    assert_int_equal(pthread_create(&c->thread, NULL, text_collector_run, c), 0);
}

/* Waits for the end of the connection. The text must contain the events in this order. */
static void text_collector_expect(text_collector *c, const char *const *events)
{
    pthread_join(c->thread, NULL);
    const char *at = c->text;
    for (; *events != NULL; events++) {
        at = memmem(at, c->size - (size_t)(at - c->text), *events, strlen(*events));
        assert_non_null(at);
    }
}

static void events_wait_for_the_collector(void **state)
{
    (void)state;
    char url[64];
    text_collector collector;
    int fd = closed_port(url, "?clock=no&format=ulm");
    begin_messages();
    nl_log *log = nl_open("p", url);
    for (int i = 0; i < 3; i++)
        nl_write(log, NL_USAGE, "E", "I=%d", i);
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_int_equal(listen(fd, 1), 0);
    text_collector_start(&collector, fd);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    text_collector_expect(&collector, (const char *const[]){"NL.EVNT=E I=0\n", "NL.EVNT=E I=2\n", NULL});
    assert_int_equal(messages.count, 1);
    close(fd);
    nl_set_message_handler(NULL, NULL);
}

static void messages_can_be_switched_off(void **state)
{
    (void)state;
    char url[64];
    int fd = closed_port(url, "?quiet=yes");
    begin_messages();
    nl_log *log = nl_open("p", url);
    nl_write(log, NL_USAGE, "E", NULL);
    assert_int_equal(nl_close(log), NL_FAILED);
    assert_null(nl_open("p", "x-netlog://h?quiet=yes&unknown=1"));
    *strchr(url, '?') = '\0';
    setenv("NETLOGGER_QUIET", "1", 1);
    log = nl_open("p", url);
    nl_write(log, NL_USAGE, "E", NULL);
    assert_int_equal(nl_close(log), NL_FAILED);
    assert_null(nl_open("p", "unknown://x"));
    unsetenv("NETLOGGER_QUIET");
    assert_int_equal(messages.count, 0);
    assert_null(nl_open("p", "unknown://x"));
    assert_int_equal(messages.count, 1);
    close(fd);
    nl_set_message_handler(NULL, NULL);
}

/* These destinations can never work, not even with a spool. */
static void invalid_destinations_fail(void **state)
{
    (void)state;
    static const char *const urls[] = {"unknown://x", "x-netlog://h?unknown=1", "file:///no/such/directory/a.log",
                                       "x-netlogs://127.0.0.1:1?ca=/no/such.pem",
                                       "x-netlogs://127.0.0.1:1?ca=/no/such.pem&spool=/tmp"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        begin_messages();
        assert_null(nl_open("p", urls[i]));
        assert_true(*nl_error_message() != '\0');
        assert_int_equal(messages.count, 1);
        assert_int_equal(messages.kinds[0], NL_MESSAGE_OPEN);
        assert_string_equal(messages.texts[0], nl_error_message());
    }
    nl_set_message_handler(NULL, NULL);
}

/*
 * The library prints whole lines on standard error. It does not print them if the program has replaced the descriptor.
 */
static void messages_go_to_standard_error(void **state)
{
    (void)state;
    int ends[2], other[2], saved = dup(STDERR_FILENO);
    char text[2048] = "", url[64];
    int fd = closed_port(url, "");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(other), 0);
    dup2(ends[1], STDERR_FILENO);
    nl_log *log = nl_open("p", url);
    nl_write(log, NL_USAGE, "E", NULL);
    dup2(other[1], STDERR_FILENO);
    nl_status status = nl_close(log);
    dup2(saved, STDERR_FILENO);
    close(ends[1]);
    close(other[1]);
    assert_int_equal(status, NL_FAILED);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    assert_int_equal(strncmp(text, "netlogger: x-netlog://127.0.0.1:", strlen("netlogger: x-netlog://127.0.0.1:")), 0);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_int_equal(read(other[0], text, sizeof text), 0);
    close(ends[0]);
    close(other[0]);
    close(saved);
    close(fd);
}

static void buffered_until_flushed(void **state)
{
    (void)state;
    nl_memory_free("log");
    nl_log *log = nl_open("prog", "memory:log?format=bp");
    nl_buffer text = {0};
    nl_write(log, NL_USAGE, "E", NULL);
    assert_true(nl_memory_read("log", &text));
    assert_int_equal(text.size, 0);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_true(nl_memory_read("log", &text));
    assert_memory_equal(text.data, "ts=", 3);
    nl_close(log);
    nl_buffer_free(&text);
    nl_memory_free("log");
    assert_false(nl_memory_read("log", &text));
}

static void records_are_completed(void **state)
{
    setenv("NETLOGGER_HOST", "here", 1);
    nl_log *log = log_open_log(state);
    unsetenv("NETLOGGER_HOST");
    nl_record *record = nl_record_new();
    nl_record_set_event(record, "E", 1);
    nl_record_add_double(record, "X", 0.1);
    assert_int_equal(nl_write_record(log, record), NL_OK);
    nl_record_set_time(record, 1);
    nl_record_set_host(record, "there", 5);
    assert_int_equal(nl_write_record(log, record), NL_OK);
    nl_record_free(record);
    nl_close(log);
    nl_reader *reader = read_back();
    const nl_record *got;
    assert_int_equal(nl_reader_next(reader, &got), NL_OK);
    assert_true(nl_time_now_ns() - got->time_ns < 60 * NL_NS_PER_SECOND);
    expect_field(got, "HOST", "here", 4);
    expect_field(got, "PROG", "prog", 4);
    expect_field(got, "X", "0.1", 3);
    assert_int_equal(nl_reader_next(reader, &got), NL_OK);
    assert_int_equal(got->time_ns, 1);
    expect_field(got, "HOST", "there", 5);
    nl_reader_close(reader);
}

/* A large ring must not hold an event that no batch can hold, because it would block all later events. */
static void what_no_batch_can_hold_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"memory:log?ring=64m", "memory:log?ring=64m&format=nlb"};
    enum { PART = 120 << 10, TRIES = 40, MAX = 7 };
    char *part = malloc(PART);
    assert_non_null(part);
    memset(part, 1, PART); /* each byte becomes four in text */
    for (size_t i = 0; i < 2; i++) {
        nl_memory_free("log");
        nl_log *log = nl_open("prog", names[i]);
        assert_non_null(log);
        nl_record *record = nl_record_new();
        for (int j = 0; j < TRIES; j++) {
            nl_record_add_string(record, "PART", part, PART);
            nl_status status = nl_write_record(log, record);
            assert_int_equal(status, j < MAX ? NL_OK : NL_FAILED);
        }
        nl_record_free(record);
        assert_int_equal(nl_write(log, NL_USAGE, "E", "N=%d", 1), NL_OK);
        assert_int_equal(nl_flush(log), NL_OK);
        nl_close(log);
        nl_reader *reader = nl_reader_open("memory:log", &(nl_reader_options){.max_record_size = 4 << 20});
        assert_non_null(reader);
        const nl_record *read;
        uint64_t whole = 0, lost = 0, last = 0;
        while (nl_reader_next(reader, &read) == NL_OK) {
            nl_field field;
            whole += nl_record_find(read, "PART", &field);
            if (read->event.size == 14 && nl_record_find(read, "COUNT", &field))
                lost += field.type == NL_TYPE_UINT ? field.uint_value : strtoull(field.string.data, NULL, 10);
            last += read->event.size == 1;
        }
        assert_int_equal(whole, MAX);
        assert_int_equal(lost, TRIES - MAX);
        assert_int_equal(last, 1);
        nl_reader_close(reader);
    }
    free(part);
}

/* A value that is too long is cut and marked; the event is logged. */
static void values_that_are_cut(void **state)
{
    enum { LONG = 200000, MAX = 131072 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    nl_log *log = log_open_log(state);
    assert_int_equal(nl_write(log, NL_USAGE, "Typed", "S=%s", text), NL_MALFORMED);
    assert_string_equal(nl_error_message(),
                        "write Typed: the event is logged, but a value of 200000 bytes was truncated to 131072 bytes");
    assert_int_equal(nl_write(log, NL_USAGE, "Printed", "S=%s F=%f", text, 1.0), NL_MALFORMED);
    assert_int_equal(nl_write(log, NL_USAGE, "Most", "S=%.*s", MAX, text), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    nl_reader *reader = read_back();
    const nl_record *record;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nl_reader_next(reader, &record), NL_OK);
        expect_field(record, "S", text, MAX);
    }
    nl_reader_close(reader);
    free(text);
}

/* The log reports its last dropped events even if no event follows. */
static void losses_before_the_close_are_told(void **state)
{
    (void)state;
    static const char *const names[] = {"memory:log?ring=64k&policy=newest",
                                        "memory:log?ring=64k&policy=newest&format=nlb"};
    enum { EVENTS = 100000, TIMES = 5 };
    for (size_t i = 0; i < 2 * TIMES; i++) {
        nl_memory_free("log");
        nl_log *log = nl_open("prog", names[i % 2]);
        assert_non_null(log);
        for (int j = 0; j < EVENTS; j++)
            NL_EVENT(log, NL_USAGE, "K", "T", 0, "I", j);
        nl_status status = nl_close(log);
        nl_reader *reader = read_back();
        const nl_record *read;
        uint64_t whole = 0, lost = 0;
        while (nl_reader_next(reader, &read) == NL_OK) {
            nl_field field;
            whole += read->event.size == 1;
            if (read->event.size == 14 && nl_record_find(read, "COUNT", &field))
                lost += field.type == NL_TYPE_UINT ? field.uint_value : strtoull(field.string.data, NULL, 10);
        }
        assert_int_equal(whole + lost, EVENTS);
        assert_int_equal(status, lost > 0 ? NL_FAILED : NL_OK);
        nl_reader_close(reader);
    }
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    unlink(path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 8), 0);
    return listener;
}

/* A flush and the close find a collector that is reachable again, even after a short absence. */
static void collectors_that_are_back(void **state)
{
    (void)state;
    char folder[] = "/tmp/netlogger-XXXXXX", path[64], urls[2][128], command[64];
    text_collector collector;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(urls[0], sizeof urls[0], "unix:%s?format=ulm", path);
    snprintf(urls[1], sizeof urls[1], "unix:%s?format=ulm&spool=%s/spool", path, folder);
    for (size_t i = 0; i < 4; i++) {
        bool flushed = i < 2;
        int listener = listen_at(path);
        nl_log *log = nl_open("prog", urls[i % 2]);
        assert_non_null(log);
        close(listener);
        for (int j = 0; j < 3; j++) { /* the pause doubles each time */
            assert_int_equal(nl_write(log, NL_USAGE, "Away", "N=%d", j), NL_OK);
            assert_int_equal(nl_flush(log), i % 2 == 0 ? NL_FAILED : NL_OK);
        }
        listener = listen_at(path);
        text_collector_start(&collector, listener);
        assert_int_equal(nl_write(log, NL_USAGE, "Back", NULL), NL_OK);
        if (flushed)
            assert_int_equal(nl_flush(log), NL_OK);
        assert_int_equal(nl_close(log), NL_OK);
        text_collector_expect(&collector, (const char *const[]){"N=0", "N=1", "N=2", "NL.EVNT=Back", NULL});
        close(listener);
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

#ifndef __SANITIZE_ADDRESS__

static bool enough;

static void *read_all_the_time(void *name)
{
    while (!__atomic_load_n(&enough, __ATOMIC_ACQUIRE)) {
        nl_buffer copy = {0};
        nl_memory_read(name, &copy);
        nl_buffer_free(&copy);
    }
    return NULL;
}

/* Forks a child while other threads use a memory log and hold its lock. */
static void memory_after_fork(void **state)
{
    (void)state;
    nl_log *log = nl_open("parent", "memory:forked");
    for (int i = 0; i < 10000; i++)
        nl_write(log, NL_USAGE, "Filling", "I=%d", i);
    assert_int_equal(nl_flush(log), NL_OK);
    pthread_t readers[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_all_the_time, "forked"), 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60); /* instead of blocking forever */
            nl_write(log, NL_USAGE, "Child", "I=%d", i);
            bool good = nl_close(log) == NL_OK;
            nl_buffer copy = {0};
            good &= nl_memory_read("forked", &copy);
            nl_buffer_append(&copy, "", 1);
            good &= strstr(copy.data, "NL.EVNT=Child") != NULL;
            _exit(good ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&enough, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    nl_close(log);
    nl_memory_free("forked");
}

#endif

/* ---- a sleeping writer thread ---- */

static bool comes_soon(const char *name, const char *what)
{
    nl_buffer copy = {0};
    bool there = false;
    for (int i = 0; i < 1000 && !there; i++) { /* waits up to 10 s; the writer thread would sleep for an hour */
        copy.size = 0;
        there = nl_memory_read(name, &copy) && (nl_buffer_append(&copy, "", 1), strstr(copy.data, what) != NULL);
        if (!there)
            usleep(10000);
    }
    nl_buffer_free(&copy);
    return there;
}

static void *log_first(void *log)
{
    nl_write(log, NL_USAGE, "Thread", NULL);
    return NULL;
}

static void who_sleeps_is_woken(void **state)
{
    (void)state;
    nl_memory_free("asleep");
    nl_log *log = nl_open("prog", "memory:asleep?policy=newest&ring=64k&idle=3600");
    assert_non_null(log);
    nl_write(log, NL_USAGE, "First", NULL);
    assert_true(comes_soon("asleep", "NL.EVNT=First"));
    for (int i = 0; i < 3; i++) {
        usleep(300000); /* until the writer thread sleeps */
        char what[32];
        snprintf(what, sizeof what, " I=%d\n", i);
        NL_EVENT(log, NL_USAGE, "Step", "I", i);
        assert_true(comes_soon("asleep", what));
    }
    usleep(300000);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, log_first, log), 0);
    pthread_join(thread, NULL);
    assert_true(comes_soon("asleep", "NL.EVNT=Thread"));
    usleep(300000);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    nl_memory_free("asleep");
    assert_null(nl_open("prog", "memory:asleep?idle=0"));
    assert_non_null(strstr(nl_error_message(), "option idle: 0 is out of range; use at least 1ms"));
}

/* Returns how often the thread with that name went to sleep, by the kernel's count; 0 if unknown. */
static long sleeps_of_writer(void)
{
    long count = 0;
    char command[128], line[128];
    snprintf(command, sizeof command, "grep -l netlogger /proc/%d/task/*/comm | sed s/comm/status/ | xargs cat",
             (int)getpid());
    FILE *status = popen(command, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1)
            break;
    if (status != NULL)
        pclose(status);
    return count;
}

static void who_sleeps_takes_no_time(void **state)
{
    (void)state;
    nl_memory_free("asleep");
    nl_log *log = nl_open("prog", "memory:asleep");
    assert_non_null(log);
    nl_set_idle(log, 3600 * NL_NS_PER_SECOND);
    nl_write(log, NL_USAGE, "First", NULL);
    assert_true(comes_soon("asleep", "NL.EVNT=First"));
    usleep(500000);
    long rise = 2;
    for (int round = 0; rise > 1 && round < 20; round++) { /* on a busy machine, the thread may go to sleep late */
        long before = sleeps_of_writer();
        usleep(500000);
        assert_true(before > 0);
        rise = sleeps_of_writer() - before;
    }
    assert_true(rise <= 1);
    nl_close(log);
    nl_memory_free("asleep");
}

/* Returns the number of lines of a file, or -1 if the file does not exist or has a NUL. */
static int count_lines(const char *path)
{
    int lines = 0, c;
    FILE *file = fopen(path, "r");
    while (file != NULL && lines >= 0 && (c = getc(file)) != EOF)
        lines = c == '\0' ? -1 : lines + (c == '\n');
    if (file == NULL)
        return -1;
    fclose(file);
    return lines;
}

static void log_steps(nl_log *log, int count)
{
    for (int i = 0; i < count; i++)
        NL_EVENT(log, NL_USAGE, "Step", "I", i, "TEXT", "some text");
}

static void log_reopens_removed_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/netlogger-test.XXXXXX", path[64], url[96];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.log", folder);
    snprintf(url, sizeof url, "file:%s?quiet=yes", path);
    nl_log *log = nl_open("prog", url);
    assert_non_null(log);
    log_steps(log, 1);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_int_equal(unlink(path), 0);
    log_steps(log, 2);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_int_equal(count_lines(path), 2);
    assert_true(unlink(path) == 0 && rmdir(folder) == 0);
    log_steps(log, 3);
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(nl_close(log), NL_OK);
    assert_int_equal(count_lines(path), 3);
    assert_true(unlink(path) == 0 && rmdir(folder) == 0);
}

/* Runs in a child. Standard output is a file without O_APPEND, and a write to the file fails in the middle of a record.
 */
static int log_to_limited_output(const char *path)
{
    struct rlimit usual;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || close(fd) != 0 || getrlimit(RLIMIT_FSIZE, &usual) != 0)
        return 1;
    setenv("NETLOGGER_QUIET", "1", 1);
    nl_log *log = nl_open("prog", "-");
    log_steps(log, 1);
    if (nl_flush(log) != NL_OK || setrlimit(RLIMIT_FSIZE, &(struct rlimit){2001, usual.rlim_max}) != 0)
        return 2;
    log_steps(log, 99);
    if (nl_flush(log) != NL_FAILED || setrlimit(RLIMIT_FSIZE, &usual) != 0)
        return 3;
    return nl_close(log) == NL_OK ? 0 : 4;
}

static void log_leaves_no_hole_in_standard_output(void **state)
{
    (void)state;
    char path[] = "/tmp/netlogger-test.XXXXXX";
    int fd = mkstemp(path), status;
    assert_true(fd >= 0 && close(fd) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(log_to_limited_output(path));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_lines(path), 100);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printf_formats),
        cmocka_unit_test(what_is_not_opened_closes_nothing),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(bad_formats_are_refused),
        cmocka_unit_test(levels_and_off),
        cmocka_unit_test(an_absent_collector_is_reported_once_and_at_close),
        cmocka_unit_test(events_wait_for_the_collector),
        cmocka_unit_test(messages_can_be_switched_off),
        cmocka_unit_test(invalid_destinations_fail),
        cmocka_unit_test(messages_go_to_standard_error),
        cmocka_unit_test(buffered_until_flushed),
        cmocka_unit_test(records_are_completed),
        cmocka_unit_test(values_that_are_not_printed),
        cmocka_unit_test(formats_in_memory_used_again),
        cmocka_unit_test(many_formats),
        cmocka_unit_test(what_no_site_can_hold),
        cmocka_unit_test(threads_share_formats),
        cmocka_unit_test(formats_after_fork),
#ifndef __SANITIZE_ADDRESS__ /* another thread can hold the lock of the allocator at the fork */
        cmocka_unit_test(memory_after_fork),
#endif
        cmocka_unit_test(handlers_in_the_middle),
        cmocka_unit_test(what_no_batch_can_hold_is_refused),
        cmocka_unit_test(values_that_are_cut),
        cmocka_unit_test(losses_before_the_close_are_told),
        cmocka_unit_test(collectors_that_are_back),
        cmocka_unit_test(who_sleeps_is_woken),
        cmocka_unit_test(who_sleeps_takes_no_time),
        cmocka_unit_test(log_reopens_removed_files),
        cmocka_unit_test(log_leaves_no_hole_in_standard_output),
    };
    leave_out_what_the_thread_sanitizer_cannot();
    leave_out_under_valgrind("memory_after_fork");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
