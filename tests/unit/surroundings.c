/*
 * The library in programs that cancel threads, close all descriptors, log to pipes without readers, drop privileges, or
 * fill the shared memory. Nothing blocks, the program's state is untouched, and losses are reported.
 */
#include <netlogger.h>

#include "log/log_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_folders.h"
#include "under_valgrind.h"
#include "reader/decoder.h"

static char folder[] = "/tmp/netlogger-XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    setenv("NETLOGGER_SHM", folder, 1);
    setenv("NETLOGGER_HOST", "here", 1);
    signal(SIGPIPE, SIG_DFL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* Runs work in a separate process, which must succeed, so that its changes do not affect the other tests. */
static void expect_success(int (*work)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(work());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Returns the content of the file with a final NUL. The caller frees it. */
static char *contents(const char *name)
{
    char bytes[4096];
    nl_buffer all = {0};
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;)
        nl_buffer_append(&all, bytes, (size_t)got);
    close(fd);
    nl_buffer_append(&all, "", 1);
    return all.data;
}

static bool holds(const char *words)
{
    char *text = contents(path);
    bool found = strstr(text, words) != NULL;
    free(text);
    return found;
}

static nl_log *surroundings_open_log(const char *options)
{
    char url[160];
    snprintf(url, sizeof url, "file:%s?%s", path, options);
    nl_log *log = nl_open("p", url);
    assert_non_null(log);
    return log;
}

/* Returns the number of lines of the text. Asserts that all of them are complete. */
static unsigned count_lines(const char *text, size_t size)
{
    unsigned count = 0;
    for (size_t at = 0; at < size; count++) {
        const char *end = memchr(text + at, '\n', size - at);
        assert_non_null(end);
        assert_memory_equal(text + at, "DATE=", 5);
        at = (size_t)(end + 1 - text);
    }
    return count;
}

/* ---- pipes ---- */

static void a_pipe_that_nobody_has_open(void **state)
{
    (void)state;
    char url[128];
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(url, sizeof url, "file:%s?timeout=0.2", path);
    nl_log *log = nl_open("p", url);
    assert_non_null(log);
    NL_EVENT(log, NL_USAGE, "Event");
    assert_int_equal(nl_close(log), NL_FAILED);
    assert_non_null(strstr(nl_error_message(), "1 event not delivered; nlrecover delivers it from /"));
    assert_non_null(strstr(nl_error_message(), "no process is reading from the pipe"));
    assert_int_equal(nl_recover(&(nl_recover_options){.destination = "memory:recovered"}, NULL, NULL), NL_OK);
    nl_memory_free("recovered");
    unlink(path);
}

static void count_failures(void *user, const nl_recovered *what)
{
    *(unsigned *)user += what->status != NL_OK;
}

static void *read_to_the_end(void *user)
{
    nl_buffer *out = user;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char bytes[3000];
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;)
        nl_buffer_append(out, bytes, (size_t)got);
    close(fd);
    return NULL;
}

/*
 * Flush and close return although nobody reads the pipe. Another process recovers the events that the pipe did not
 * accept.
 */
static void a_pipe_that_nobody_reads(void **state)
{
    (void)state;
    enum { EVENTS = 3000 };
    char url[128], text[100];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    snprintf(url, sizeof url, "file:%s?timeout=0.2", path);
    nl_log *log = nl_open("p", url);
    assert_non_null(log);
    for (int i = 0; i < EVENTS; i++)
        NL_EVENT(log, NL_USAGE, "Piped", "I", i, "TEXT", text);
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_non_null(strstr(nl_error_message(), path));
    assert_int_equal(nl_close(log), NL_FAILED);

    unsigned failures = 0;
    nl_buffer all = {0};
    assert_int_equal(nl_recover(NULL, count_failures, &failures), NL_FAILED);
    assert_int_equal(failures, 1);
    char bytes[3000];
    for (ssize_t got; (got = read(reader, bytes, sizeof bytes)) > 0;)
        nl_buffer_append(&all, bytes, (size_t)got);
    close(reader);
    assert_true(count_lines(all.data, all.size) < EVENTS);
    assert_int_equal(nl_recover(NULL, count_failures, &failures), NL_FAILED); /* no process has it open any more */
    assert_int_equal(failures, 2);

    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_to_the_end, &all), 0);
    nl_status status = NL_FAILED;
    while (status != NL_OK) /* until the other process has it open */
        status = nl_recover(NULL, NULL, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(count_lines(all.data, all.size), EVENTS);
    nl_buffer_free(&all);
    unlink(path);
}

/* ---- cancelled threads ---- */

static nl_log *log_;
static void (*before_cancel)(void), (*cancelled_in)(void);

static void one_event(void)
{
    NL_EVENT(log_, NL_USAGE, "Event", "I", 1);
}

static void one_write(void)
{
    nl_write(log_, NL_USAGE, "Written", "I=%d X=%g", 1, 1.5);
}

static void one_flush(void)
{
    nl_flush(log_);
}

static void one_control(void)
{
    assert_int_equal(nl_control(log_, "event Nothing off", strlen("event Nothing off")), NL_OK);
}

static void one_log(void)
{
    nl_log *other = nl_open("q", "memory:cancelled");
    NL_EVENT(other, NL_USAGE, "Other");
    nl_close(other);
}

static void *be_cancelled(void *unused)
{
    if (before_cancel != NULL)
        before_cancel();
    pthread_cancel(pthread_self());
    cancelled_in();
    pthread_testcancel();
    return unused;
}

static void *log_one(void *unused)
{
    one_event();
    one_write();
    return unused;
}

/* A cancellation takes effect after a call of the library, not within the call, which may hold locks. */
static void threads_that_are_cancelled(void **state)
{
    (void)state;
    static void (*const calls[])(void) = {one_event, one_write, one_flush, one_control, one_log};
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int first = 0; first < 2; first++) {
            unlink(path);
            log_ = surroundings_open_log("append=no");
            cancelled_in = calls[i];
            before_cancel = first ? one_event : NULL;
            pthread_t thread;
            void *result;
            assert_int_equal(pthread_create(&thread, NULL, be_cancelled, NULL), 0);
            pthread_join(thread, &result);
            assert_ptr_equal(result, PTHREAD_CANCELED);
            assert_int_equal(pthread_create(&thread, NULL, log_one, NULL), 0);
            pthread_join(thread, NULL);
            assert_int_equal(nl_close(log_), NL_OK);
        }
    unlink(path);
}

/* ---- descriptors ---- */

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void *log_and_wait(void *user)
{
    one_event();
    pthread_barrier_wait(user);
    pthread_barrier_wait(user);
    return NULL;
}

/* A thread needs no descriptor for its rings, so there may be any number of logging threads. */
static void few_descriptors(void **state)
{
    (void)state;
    enum { THREADS = 20 };
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    unsigned before = count_descriptors();
    unlink(path);
    log_ = surroundings_open_log("ring=64k");
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_and_wait, &barrier), 0);
    pthread_barrier_wait(&barrier);
    nl_flush(log_);
    assert_true(count_descriptors() <= before + 4);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(nl_close(log_), NL_OK);
    assert_int_equal(count_descriptors(), before);
    unlink(path);
}

enum { OWN = 8 };

/*
 * A daemon starts with an open log and closes all descriptors. All events are written, and none into the daemon's own
 * files.
 */
static int close_all(void)
{
    nl_log *log = surroundings_open_log("append=no");
    int own[OWN], lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(lowest);
    NL_EVENT(log, NL_USAGE, "Before", "I", 1);
    nl_flush(log);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    for (int i = 0; i < OWN; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s/own%d", folder, i);
        own[i] = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (own[i] < 0 || own[i] > lowest + 8 || write(own[i], "precious", 8) != 8)
            return 1;
    }
    NL_EVENT(log, NL_USAGE, "After", "I", 2);
    if (nl_flush(log) != NL_OK || nl_close(log) != NL_OK)
        return 2;
    for (int i = 0; i < OWN; i++)
        if (lseek(own[i], 0, SEEK_END) != 8)
            return 3;
    return holds("Before") && holds("After") ? 0 : 4;
}

static void descriptors_that_the_program_closes(void **state)
{
    (void)state;
    unlink(path);
    expect_success(close_all);
    assert_int_equal(count_log_folders(folder), 0);
    unlink(path);
}

/* A process that closed its lock file still counts as running. */
static int lose_the_lock(void)
{
    nl_log *log = surroundings_open_log("append=no&format=nlb");
    for (int i = 0; i < 1000; i++)
        NL_EVENT(log, NL_USAGE, "Before", "I", i);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    unsigned told = 0;
    if (nl_recover(NULL, count_failures, &told) != NL_OK || count_log_folders(folder) != 1)
        return 1;
    return nl_close(log) == NL_OK ? 0 : 2;
}

static void a_lock_that_is_closed(void **state)
{
    (void)state;
    unlink(path);
    expect_success(lose_the_lock);
    unlink(path);
}

/* ---- memory and rights ---- */

/*
 * After the process has dropped its privileges, it cannot write to the directory of the rings. Events are logged, and a
 * message states that these events are lost if the process is killed.
 */
static int drop_privileges(void)
{
    nl_log *log = surroundings_open_log("append=no");
    NL_EVENT(log, NL_USAGE, "Before", "I", 1);
    nl_flush(log);
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 1;
    pthread_t thread;
    log_ = log;
    pthread_create(&thread, NULL, log_one, NULL);
    pthread_join(thread, NULL);
    nl_flush(log);
    if (nl_close(log) != NL_OK)
        return fprintf(stderr, "%s\n", nl_error_message()), 2;
    return holds("Before") && holds("NL.EVNT=Event ") &&
                   holds("NL.EVNT=NetLogger.Unrecoverable REASON=\"Permission denied\"")
               ? 0
               : 3;
}

static void no_shared_memory_for_dropped_rights(void **state)
{
    (void)state;
    if (geteuid() != 0) /* no privileges to drop */
        return;
    unlink(path);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    assert_int_equal(chmod(folder, 0755) | chown(path, 65534, 65534), 0);
    expect_success(drop_privileges);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s/netlogger-*", folder);
    assert_int_equal(system(command), 0);
    unlink(path);
}

static int without_files(void)
{
    setenv("NETLOGGER_SHM", "/nonexistent", 1);
    nl_log *log = surroundings_open_log("append=no");
    NL_EVENT(log, NL_USAGE, "Event", "I", 1);
    nl_flush(log);
    if (nl_close(log) != NL_OK)
        return 1;
    return holds("NL.EVNT=Event ") && holds("NetLogger.Unrecoverable") ? 0 : 2;
}

static void no_shared_memory_at_all(void **state)
{
    (void)state;
    unlink(path);
    expect_success(without_files);
    unlink(path);
}

/* Logs events of 16 fields with names of that size. */
static void log_wide(nl_log *log, int count, size_t name_size)
{
    static char long_name[4000];
    memset(long_name, 'n', sizeof long_name);
    nl_string names[NL_FIELDS_MAX];
    nl_field values[NL_FIELDS_MAX];
    for (int i = 0; i < NL_FIELDS_MAX; i++) {
        names[i] = (nl_string){long_name, name_size};
        values[i] = (nl_field){.type = NL_TYPE_INT, .int_value = i};
    }
    for (int i = 0; i < count; i++) {
        char event[16];
        int size = snprintf(event, sizeof event, "Wide%d", i);
        nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){event, (size_t)size}, names, NL_FIELDS_MAX);
        nl_event_write(log, kind, values);
    }
}

/* Fills the table of sites (64 MiB) with large and then with smaller sites, so that the next site does not fit. */
static void fill_table(nl_log *log)
{
    log_wide(log, 1100, 4000);
    log_wide(log, 50, 200);
    log_wide(log, 100, 1);
}

/* An event whose site does not fit is lost and reported; an event of nl_write needs no site. */
static int fill_sites(void)
{
    nl_log *log = nl_open("p", "file:/dev/null?policy=block");
    if (log == NULL)
        return 1;
    fill_table(log);
    if (nl_write(log, NL_USAGE, "Written", "I=%d", 1) != NL_OK)
        return 2;
    NL_EVENT(log, NL_USAGE, "A.Site.That.Is.Not.Known.Yet", "A.LONG.NAME", 1, "ANOTHER.LONG.NAME", 2);
    NL_EVENT(log, NL_USAGE, "Another.Site.That.Is.Not.Known.Yet", "A.LONG.NAME", 1, "ANOTHER.LONG.NAME", 2);
    nl_status status = nl_close(log);
    return status == NL_FAILED && strstr(nl_error_message(), "2 events lost: ") != NULL ? 0 : 3;
}

static void sites_that_there_is_no_memory_for(void **state)
{
    (void)state;
    expect_success(fill_sites);
}

/* ---- the log that a loss is charged to ---- */

static nl_log *a, *b;

static void write_to_b(int number)
{
    nl_write(b, NL_USAGE, "Handler", "I=%d", number);
}

/* If log b rejects an event in the middle of an event of log a, the loss belongs to b. */
static void refused_events_are_charged_to_their_log(void **state)
{
    (void)state;
    nl_memory_free("a");
    nl_memory_free("b");
    a = nl_open("A", "memory:a");
    b = nl_open("B", "memory:b");
    assert_true(a != NULL && b != NULL);
    write_to_b(0); /* a new format needs memory, which a handler must not allocate */
    struct sigaction action = {.sa_handler = write_to_b}, before;
    sigaction(SIGUSR2, &action, &before);
    /* The handler runs while the arguments are evaluated, which is not within a call, so its event is logged. */
    NL_EVENT(a, NL_USAGE, "First", "I", (raise(SIGUSR2), 1));
    nl_inside++; /* from here on, the handler logs as if it interrupted a call */
    raise(SIGUSR2);
    raise(SIGUSR2);
    nl_inside--;
    NL_EVENT(a, NL_USAGE, "Second", "I", 2);
    sigaction(SIGUSR2, &before, NULL);
    assert_int_equal(nl_close(a), NL_OK);
    assert_int_equal(nl_close(b), NL_FAILED);
    assert_non_null(strstr(nl_error_message(), "2 events"));
    nl_buffer text = {0};
    assert_true(nl_memory_read("a", &text));
    nl_buffer_append(&text, "", 1);
    assert_null(strstr(text.data, "NetLogger.Lost"));
    nl_buffer_free(&text);
}

/* ---- disabled events ---- */

/* Switching off by name also affects events without a site. */
static void switched_off_without_a_site(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    static char long_name[LONG + 1];
    memset(long_name, 'L', LONG);
    nl_log *log = nl_open("p", "memory:off");
    nl_record *record = nl_record_new();
    nl_record_set_level(record, NL_USAGE);
    nl_record_set_event(record, "Record", strlen("Record"));
    static const char off[] = "event L* off\nevent Record off\nevent Many off\n";
    static const char many[] = "A=%d B=%d C=%d D=%d E=%d F=%d G=%d H=%d I=%d J=%d K=%d L=%d M=%d N=%d O=%d P=%d Q=%d";
    for (int round = 0; round < 2; round++) {
        nl_status expected = round == 0 ? NL_OK : NL_OFF;
        assert_int_equal(nl_write_record(log, record), expected);
        assert_int_equal(nl_write(log, NL_USAGE, long_name, "I=%d", 1), expected);
        assert_int_equal(
            nl_write(log, NL_USAGE, "Many", many, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17), expected);
        assert_int_equal(nl_write(log, NL_USAGE, "Other", NULL), NL_OK);
        assert_int_equal(nl_control(log, off, strlen(off)), NL_OK);
    }
    static const char on[] = "event L* on\nevent Record on\nevent Many on\n";
    assert_int_equal(nl_control(log, on, strlen(on)), NL_OK);
    assert_int_equal(nl_write_record(log, record), NL_OK);
    nl_record_free(record);
    assert_int_equal(nl_close(log), NL_OK);
}

/* ---- many logs ---- */

enum { LOGS = 40 };

static nl_log *many[LOGS];

static void log_to_all(void)
{
    for (int i = 0; i < LOGS; i++)
        NL_EVENT(many[i], NL_USAGE, "Everywhere", "I", i);
}

static void *log_twice(void *user)
{
    log_to_all();
    pthread_barrier_wait(user);
    pthread_barrier_wait(user);
    log_to_all();
    pthread_barrier_wait(user);
    return NULL;
}

/*
 * After its first event in each log, a thread takes no lock that other threads may hold. This holds for any number of
 * logs.
 */
static void many_logs_without_a_lock(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < LOGS; i++) {
        char url[40];
        snprintf(url, sizeof url, "memory:many%d?ring=64k", i);
        many[i] = nl_open("p", url);
        assert_non_null(many[i]);
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, log_twice, &barrier), 0);
    pthread_barrier_wait(&barrier);
    nl_registry_lock();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    nl_registry_unlock(); /* the thread needs this lock when it ends */
    pthread_join(thread, NULL);
    for (int i = 0; i < LOGS; i++) {
        char name[16];
        nl_buffer text = {0};
        assert_int_equal(nl_close(many[i]), NL_OK);
        snprintf(name, sizeof name, "many%d", i);
        assert_true(nl_memory_read(name, &text));
        assert_int_equal(count_lines(text.data, text.size), 2);
        nl_buffer_free(&text);
        nl_memory_free(name);
    }
}

/* ---- another folder ---- */

static int change_folder(void)
{
    char file[96];
    if (chdir(folder) != 0)
        return 1;
    snprintf(file, sizeof file, "%s/switch", folder);
    nl_log *log = nl_open("p", "file:relative.log?activation=switch&append=no");
    if (log == NULL || chdir("/") != 0)
        return 2;
    NL_EVENT(log, NL_USAGE, "First");
    nl_flush(log);
    snprintf(file, sizeof file, "%s/relative.log", folder);
    unlink(file);
    for (int fd = 3; fd < 64; fd++) /* the library must open its descriptors again */
        close(fd);
    NL_EVENT(log, NL_USAGE, "Second");
    nl_flush(log);
    char *text = contents(file);
    if (strstr(text, "Second") == NULL)
        return 3;
    snprintf(file, sizeof file, "%s/switch", folder);
    FILE *commands = fopen(file, "w");
    if (commands == NULL || fputs("event First off\n", commands) < 0 || fclose(commands) != 0)
        return 4;
    snprintf(file, sizeof file, "%s/relative.log", folder);
    do {
        nl_flush(log);
        free(text);
        text = contents(file);
        usleep(1000);
    } while (strstr(text, "NetLogger.Activation") == NULL);
    free(text);
    return nl_close(log) == NL_OK ? 0 : 5;
}

/* Relative file names refer to the directory in which the log was opened. */
static void names_without_their_folder(void **state)
{
    (void)state;
    expect_success(change_folder);
}

/* ---- invalid records ---- */

/*
 * Reads and frees a log in memory. *good is the number of events "Good", whose I must be 1, 2, 3, ...; *lost is the
 * number of reports of lost events, and *passed_over is the number of these that report skipped bytes.
 */
static void read_and_free(const char *name, unsigned *good, unsigned *lost, unsigned *passed_over)
{
    nl_buffer bytes = {0};
    const nl_record *record;
    nl_field field;
    *good = *lost = *passed_over = 0;
    assert_true(nl_memory_read(name, &bytes));
    nl_decoder *decoder = nl_decoder_new(NULL);
    nl_decoder_feed(decoder, bytes.data, bytes.size);
    while (nl_decoder_next(decoder, &record) == NL_OK)
        if (record->event.size == 4 && memcmp(record->event.data, "Good", 4) == 0) {
            int64_t i = 0;
            assert_true(nl_record_find(record, "I", &field) && nl_field_int(&field, &i));
            assert_int_equal(i, ++*good);
        } else if (record->event.size == 14 && memcmp(record->event.data, "NetLogger.Lost", 14) == 0) {
            ++*lost;
            *passed_over += nl_record_find(record, "BYTES", &field);
        }
    nl_decoder_free(decoder);
    nl_buffer_free(&bytes);
    nl_memory_free(name);
}

static const char *const in_memory[] = {"memory:bad", "memory:bad?format=nlb"};

/* An event with an invalid name, which the program itself has built, is lost, but no other event. */
static void a_record_that_is_none(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        nl_log *log = nl_open("p", in_memory[i]);
        nl_field field = {.name = {"a b", 3}, .type = NL_TYPE_INT, .int_value = 1};
        nl_record bad = {.level = NL_USAGE, .event = {"Bad", 3}, .fields = &field, .field_count = 1};
        NL_EVENT(log, NL_USAGE, "Good", "I", 1);
        nl_write_record(log, &bad);
        NL_EVENT(log, NL_USAGE, "Good", "I", 2);
        NL_EVENT(log, NL_USAGE, "Good", "I", 3);
        assert_int_equal(nl_close(log), NL_FAILED);
        assert_non_null(strstr(nl_error_message(), "1 event lost: "));
        unsigned good, lost, passed_over;
        read_and_free("bad", &good, &lost, &passed_over);
        assert_int_equal(good, 3);
        assert_int_equal(lost, 1);
    }
}

/*
 * Logs an event as NL_EVENT does, and then overwrites a part of it. `claim` is the new stated length of the event's
 * string, and `size` is the new stated length of the event; 0 leaves a value unchanged.
 */
static void put_good(nl_log *log, int i, uint32_t claim, uint32_t size)
{
    static const char *const names[] = {"I", "S", 0};
    static const unsigned char types[] = {NL_RAW_INT32, NL_RAW_STRING, 0};
    static nl_event_site site = {"Good", names, types, 2, NL_USAGE, 0, 0, 0};
    enum { SIZE = sizeof(nl_event_header) + 4 + 4 + 3 };
    nl_ring_producer *ring = NULL;
    char *at = nl_private_begin((nl_log_gate *)(void *)log, &site, SIZE, &ring);
    uint32_t string_size = claim != 0 ? claim : 3;
    assert_true(at != NULL && ring != NULL);
    memcpy(at, &i, 4);
    memcpy(at + 4, &string_size, 4);
    memcpy(at + 8, "abc", 3);
    if (size != 0)
        memcpy(at - sizeof(nl_event_header), &size, sizeof size);
    nl_private_commit(ring, SIZE);
}

/* If the program overwrites memory of a ring, only the events in this memory are lost, and the log counts them. */
static void a_ring_that_is_damaged(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        nl_log *log = nl_open("p", in_memory[i]);
        put_good(log, 1, 0, 0);
        put_good(log, 2, 0, 0);
        put_good(log, 77, 5000, 0);
        put_good(log, 3, 0, 0);
        put_good(log, 77, 4, 0);
        put_good(log, 78, UINT32_MAX, 0);
        put_good(log, 4, 0, 0);
        put_good(log, 77, 0, 3);
        assert_int_equal(nl_flush(log), NL_OK);
        put_good(log, 5, 0, 0);
        put_good(log, 77, 0, 1 << 20);
        assert_int_equal(nl_close(log), NL_FAILED);
        assert_non_null(strstr(nl_error_message(), "5 events lost: "));
        unsigned good, lost, passed_over;
        read_and_free("bad", &good, &lost, &passed_over);
        assert_int_equal(good, 5);
        assert_int_equal(lost, 5);
        assert_int_equal(passed_over, 2);
    }
}

/* ---- destinations from a hostile environment ---- */

static unsigned count_entries(void)
{
    unsigned count = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

/* The URL is rejected with a message of one line, and creates no file. */
static void expect_refused(const char *destination)
{
    unsigned before = count_entries();
    setenv("NETLOGGER_DEST", destination, 1);
    assert_null(nl_open("p", NULL));
    assert_true(*nl_error_message() != '\0');
    assert_null(strchr(nl_error_message(), '\n'));
    assert_int_equal(count_entries(), before);
    unsetenv("NETLOGGER_DEST");
}

static void hostile_destinations(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "x-nothing://host",
        "http://host/",
        "x-netlog://",
        "x-netlog://[::1",
        "x-netlog://h:99999",
        "x-netlog://h:-1",
        "x-netlog://h:1x",
        "file:%00",
        "file:%zz",
        "file:a%",
        "file://other/a",
        "no-such-file?policy=never",
        "file:a?policy=never",
        "file:a?unknown=1",
        "file:a?ring=999999g",
        "file:a?block=-1",
        "file:a?timeout=nan",
        "file:a?format=%s%n%s%n",
        "file:a?ring=1&ring=2%",
        "unix:",
        "memory:",
        "/nonexistent/a",
        "nats://h/stream",
        "inherited:x",
        "x-syslog://nothing",
        "file:",
    };
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        expect_refused(refused[i]);
    expect_refused(folder); /* a directory is not a log */
    enum { MANY = 1 << 17 };
    static char many[MANY + 1];
    memset(many, 'a', MANY);
    expect_refused(many);
    memcpy(many, "unix:/", 6);
    expect_refused(many);
    memset(many, '?', MANY);
    expect_refused(many);
    memcpy(many, "x-netlog://", 11);
    expect_refused(many);
    assert_int_equal(chdir("/"), 0);
}

/* ---- sizes ---- */

static double bytes_an_event(const char *options)
{
    enum { EVENTS = 200000 };
    static const int sizes[] = {65536, 65536, 65536, 16384, 1448};
    struct stat status;
    unlink(path);
    nl_log *log = surroundings_open_log(options);
    long offset = 0;
    for (int i = 0; i < EVENTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "block-%04d.raw", i / 16 % 10000);
        int size = sizes[(unsigned)rand() % 5];
        NL_EVENT(log, NL_USAGE, "WriteData", "OFFSET", offset, "SIZE", size, "NAME", name);
        offset += size;
    }
    assert_int_equal(nl_close(log), NL_OK);
    assert_int_equal(stat(path, &status), 0);
    unlink(path);
    return (double)status.st_size / EVENTS;
}

/*
 * The events are like those of a file server's log: an offset that increases by the written sizes, a few different
 * sizes, and a name of 14 bytes.
 */
static void sizes_of_events(void **state)
{
    (void)state;
    assert_true(bytes_an_event("format=nlb") <= 30);
    assert_true(bytes_an_event("format=nlb&zstd=3") <= 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_that_nobody_has_open),
        cmocka_unit_test(a_pipe_that_nobody_reads),
        cmocka_unit_test(threads_that_are_cancelled),
        cmocka_unit_test(few_descriptors),
        cmocka_unit_test(descriptors_that_the_program_closes),
        cmocka_unit_test(a_lock_that_is_closed),
        cmocka_unit_test(no_shared_memory_for_dropped_rights),
        cmocka_unit_test(no_shared_memory_at_all),
        cmocka_unit_test(sites_that_there_is_no_memory_for),
        cmocka_unit_test(refused_events_are_charged_to_their_log),
        cmocka_unit_test(switched_off_without_a_site),
        cmocka_unit_test(many_logs_without_a_lock),
        cmocka_unit_test(names_without_their_folder),
        cmocka_unit_test(a_record_that_is_none),
        cmocka_unit_test(a_ring_that_is_damaged),
        cmocka_unit_test(hostile_destinations),
        cmocka_unit_test(sizes_of_events),
    };
    leave_out_under_valgrind("no_shared_memory*");
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
