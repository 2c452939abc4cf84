/* Killed processes: every complete event is recovered once and in order, and no torn event. */
#include <netlogger.h>

#include "log/remains.h"
#include "log/shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_folders.h"
#include "under_valgrind.h"
#include "reader/decoder.h"

enum { THREADS = 2 };

/* Each thread's number of events whose call has returned, in memory shared with the killed process. */
typedef struct progress {
    _Alignas(64) unsigned long done;
} progress;

static progress *reached;
static nl_log *log_;
static char folder[] = "/tmp/netlogger-XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    setenv("NETLOGGER_SHM", folder, 1);
    setenv("NETLOGGER_HOST", "here", 1);
    reached = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return reached == MAP_FAILED;
}

static int tear_down(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void *log_all_the_time(void *argument)
{
    long thread = (long)argument;
    for (unsigned long i = 0;; i++) {
        if (i % 16 == 0)
            nl_write(log_, NL_USAGE, "Written", "T=%ld I=%lu", thread, i);
        else
            NL_EVENT(log_, NL_USAGE, "Typed", "T", thread, "I", i, "TEXT", "some text");
        __atomic_store_n(&reached[thread].done, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Starts a process that logs to the destination until it is killed. */
static pid_t start_logging_to(const char *url)
{
    memset(reached, 0, THREADS * sizeof *reached);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        /* A test that fails does not kill this process. The kernel must then kill it, before it fills the disk. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(1);
        log_ = nl_open("killed", url);
        pthread_t thread;
        pthread_create(&thread, NULL, log_all_the_time, (void *)1);
        log_all_the_time((void *)0);
    }
    assert_true(child > 0);
    return child;
}

static pid_t start_logging(const char *options)
{
    unlink(path);
    char url[128];
    snprintf(url, sizeof url, "file:%s?%s", path, options);
    return start_logging_to(url);
}

static void kill_after(pid_t child, unsigned microseconds)
{
    usleep(microseconds);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

/*
 * Kills the process when a thread has reached a random number, so that unsent events always exist: sometimes the first
 * events, sometimes many batches.
 */
static void kill_at_random(pid_t child)
{
    unsigned long wanted = 1 + (unsigned long)rand() % (1UL << (rand() % 15));
    while (__atomic_load_n(&reached[rand() % THREADS].done, __ATOMIC_ACQUIRE) < wanted)
        usleep((unsigned)rand() % 100);
    kill_after(child, 0);
}

static void expect_sent(void *user, const nl_recovered *what)
{
    (void)user;
    if (what->status != NL_OK)
        fail_msg("%s", what->message);
    assert_string_equal(what->prog, "killed");
}

static void recover_on_malformed(void *user, const nl_malformed *what)
{
    (void)user;
    fail_msg("malformed: %s: %.*s", what->reason, (int)what->text.size, what->text.data);
}

/*
 * Asserts that the numbers of each thread begin at 0, have no gap, and occur once each. The last number is the number
 * that the thread had reached, or the next number.
 */
static void expect_all(void)
{
    nl_reader *reader = nl_reader_open(path, &(nl_reader_options){.on_malformed = recover_on_malformed});
    assert_non_null(reader);
    uint64_t next[THREADS] = {0};
    const nl_record *record;
    while (nl_reader_next(reader, &record) == NL_OK) {
        nl_field field;
        int64_t thread = -1, i = -1;
        assert_int_equal(record->flags & NL_RECORD_UNTERMINATED, 0);
        assert_true(nl_record_find(record, "T", &field) && nl_field_int(&field, &thread));
        assert_true(nl_record_find(record, "I", &field) && nl_field_int(&field, &i));
        assert_in_range(thread, 0, THREADS - 1);
        assert_int_equal(i, next[thread]);
        next[thread]++;
    }
    assert_int_equal(nl_reader_get_stats(reader)->lost, 0);
    nl_reader_close(reader);
    for (int i = 0; i < THREADS; i++) {
        assert_true(next[i] >= reached[i].done);
        assert_true(next[i] <= reached[i].done + 1);
    }
}

static void kill_often(const char *options, unsigned times)
{
    for (unsigned i = 0; i < times_here(times); i++) {
        kill_at_random(start_logging(options));
        assert_int_equal(nl_recover(NULL, expect_sent, NULL), NL_OK);
        assert_int_equal(count_log_folders(folder), 0);
        expect_all();
    }
}

static void test_killed_while_writing_text(void **state)
{
    (void)state;
    kill_often("ring=64k", 400);
}

static void test_killed_while_writing_text_with_large_rings(void **state)
{
    (void)state;
    kill_often("ring=1m", 100);
}

static void test_killed_while_writing_blocks(void **state)
{
    (void)state;
    kill_often("format=nlb&ring=64k", 400);
}

static void test_killed_while_writing_compressed_blocks(void **state)
{
    (void)state;
    kill_often("format=nlb&zstd=1", 100);
}

/* ---- destinations that are not files: records may arrive twice, but none is missing or torn ---- */

/* Reads the data of a pipe or of connections to a socket. */
typedef struct gatherer {
    pthread_t thread;
    int fd;
    bool listens;
    int stop[2]; /* a pipe: closed at the end */
    nl_buffer all;
} gatherer;

/* Removes a partial record from the end of the bytes of a connection, which begin at `from`. */
static void drop_part(nl_buffer *all, size_t from)
{
    while (all->size > from && all->data[all->size - 1] != '\n')
        all->size--;
}

static bool read_some(gatherer *g, int fd)
{
    char bytes[8192];
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got > 0)
        nl_buffer_append(&g->all, bytes, (size_t)got);
    return got > 0;
}

/* Serves one client after the other: the killed process and the recovering process. */
static void take_connection(gatherer *g)
{
    /* The reply to the time question that begins a connection. */
    static const char acknowledgement[16] = "NLA1\x08\0\0\0\x01";
    int fd = accept(g->fd, NULL, NULL);
    if (write(fd, acknowledgement, sizeof acknowledgement) != sizeof acknowledgement)
        perror("acknowledge");
    size_t from = g->all.size;
    while (read_some(g, fd))
        continue;
    close(fd);
    drop_part(&g->all, from);
}

static void *gather(void *user)
{
    gatherer *g = user;
    struct pollfd wait[2] = {{.fd = g->fd, .events = POLLIN}, {.fd = g->stop[0]}};
    for (;;) {
        poll(wait, 2, -1);
        if ((wait[0].revents & POLLIN) != 0) {
            if (g->listens)
                take_connection(g);
            else
                read_some(g, g->fd);
        } else if (wait[1].revents != 0) {
            return NULL;
        }
    }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void expect_gathered(const nl_buffer *all)
{
    int64_t *numbers[THREADS];
    size_t counts[THREADS] = {0};
    for (int t = 0; t < THREADS; t++)
        assert_non_null(numbers[t] = malloc((all->size / 40 + 1) * sizeof(int64_t)));
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.on_malformed = recover_on_malformed});
    const nl_record *record;
    nl_decoder_feed(decoder, all->data, all->size);
    while (nl_decoder_next(decoder, &record) == NL_OK) {
        nl_field field;
        int64_t thread = -1, i = -1;
        if (!nl_record_find(record, "T", &field) || !nl_field_int(&field, &thread) ||
            !nl_record_find(record, "I", &field) || !nl_field_int(&field, &i))
            fail_msg("not logged by this test: %.*s", (int)record->raw.size, record->raw.data);
        assert_in_range(thread, 0, THREADS - 1);
        numbers[thread][counts[thread]++] = i;
    }
    nl_decoder_free(decoder);
    for (int t = 0; t < THREADS; t++) {
        int64_t next = 0;
        qsort(numbers[t], counts[t], sizeof(int64_t), by_number);
        for (size_t i = 0; i < counts[t]; i++) {
            assert_true(numbers[t][i] <= next); /* repetitions, but no gap */
            next += numbers[t][i] == next;
        }
        assert_true(next >= (int64_t)reached[t].done && next <= (int64_t)reached[t].done + 1);
        free(numbers[t]);
    }
}

static void kill_often_to(const char *url, bool listens, unsigned times)
{
    for (unsigned i = 0; i < times_here(times); i++) {
        gatherer g = {.listens = listens};
        unlink(path);
        if (listens) {
            struct sockaddr_un address = {.sun_family = AF_UNIX};
            snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
            g.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            assert_int_equal(bind(g.fd, (struct sockaddr *)&address, sizeof address), 0);
            assert_int_equal(listen(g.fd, 5), 0);
        } else {
            assert_int_equal(mkfifo(path, 0600), 0);
            g.fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC); /* so that it never ends */
        }
        assert_true(g.fd >= 0 && pipe(g.stop) == 0);
        pid_t child = start_logging_to(url);
        assert_int_equal(pthread_create(&g.thread, NULL, gather, &g), 0);
        kill_at_random(child);
        assert_int_equal(nl_recover(NULL, expect_sent, NULL), NL_OK);
        assert_int_equal(count_log_folders(folder), 0);
        close(g.stop[1]);
        pthread_join(g.thread, NULL);
        expect_gathered(&g.all);
        nl_buffer_free(&g.all);
        close(g.fd);
        close(g.stop[0]);
    }
    unlink(path);
}

static void test_killed_while_writing_to_a_pipe(void **state)
{
    (void)state;
    char url[128];
    snprintf(url, sizeof url, "file:%s?ring=64k", path);
    kill_often_to(url, false, 100);
}

static void test_killed_while_sending(void **state)
{
    (void)state;
    char url[128];
    snprintf(url, sizeof url, "unix:%s?format=ulm&clock=no&ring=64k&policy=block", path);
    kill_often_to(url, true, 100);
}

static void count_records(void *user, const nl_recovered *what)
{
    *(uint64_t *)user += what->records;
}

/* Kills a process in the middle of its work; repeats if all logged events had just been sent. */
static void kill_at_work(void)
{
    for (int tries = 0; tries < 100; tries++) {
        pid_t child = start_logging("ring=64k");
        while (__atomic_load_n(&reached[0].done, __ATOMIC_ACQUIRE) < 1000)
            usleep(100);
        uint64_t living = 0, killed = 0;
        assert_int_equal(nl_recover(NULL, count_records, &living), NL_OK);
        assert_int_equal(living, 0);
        kill_after(child, 0);
        assert_int_equal(nl_recover(&(nl_recover_options){.list_only = true}, count_records, &killed), NL_OK);
        if (killed > 0)
            return;
        assert_int_equal(nl_recover(NULL, expect_sent, NULL), NL_OK);
        expect_all();
    }
    fail_msg("nothing was ever left");
}

static void test_a_living_process_is_left_alone(void **state)
{
    (void)state;
    kill_at_work();
    assert_int_equal(count_log_folders(folder), 1);
    assert_int_equal(nl_recover(NULL, expect_sent, NULL), NL_OK);
    expect_all();
    unlink(path);
}

static void test_to_another_destination(void **state)
{
    (void)state;
    kill_at_work();
    char other[80], command[512];
    snprintf(other, sizeof other, "%s/other", folder);
    assert_int_equal(nl_recover(&(nl_recover_options){.destination = other}, expect_sent, NULL), NL_OK);
    /* The events in the file and the recovered events are together complete. */
    snprintf(command, sizeof command, "touch %s %s; cat %s >> %s; rm %s", path, other, other, path, other);
    assert_int_equal(system(command), 0);
    expect_all();
    unlink(path);
}

/* Sets the limit of this process's descriptors. Returns the previous limit. */
static rlim_t limit_descriptors(rlim_t count)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = count;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

static void on_recovered(void *user, const nl_recovered *what)
{
    (void)what;
    ++*(unsigned *)user;
}

/*
 * For each number of free descriptors, recovery fails and reports the failure, until the number is sufficient. No event
 * is lost or duplicated. The required number does not depend on the number of rings.
 */
static void recover_with_few_descriptors(const char *options)
{
    kill_at_random(start_logging(options));
    int first = dup(0);
    assert_true(first >= 0);
    close(first);
    nl_status status = NL_FAILED;
    rlim_t count = (rlim_t)first;
    for (; status != NL_OK; count++) {
        unsigned reports = 0;
        rlim_t before = limit_descriptors(count);
        status = nl_recover(NULL, on_recovered, &reports);
        limit_descriptors(before);
        assert_int_equal(count_log_folders(folder), status == NL_OK ? 0 : 1);
        assert_true(count == (rlim_t)first || status == NL_OK || reports > 0);
    }
    assert_in_range(count - (rlim_t)first, 5, 16);
    expect_all();
}

static void test_few_descriptors(void **state)
{
    (void)state;
    for (unsigned i = 0; i < times_here(10); i++) {
        recover_with_few_descriptors("ring=64k");
        recover_with_few_descriptors("format=nlb");
    }
    unlink(path);
}

static void expect_failure(void *user, const nl_recovered *what)
{
    assert_int_equal(what->status, NL_FAILED);
    *(int *)user += 1;
}

static void test_a_destination_that_is_away_can_be_tried_again(void **state)
{
    (void)state;
    kill_at_work();
    char moved[sizeof folder + 8];
    snprintf(moved, sizeof moved, "%s-moved", folder);
    assert_int_equal(rename(folder, moved), 0);
    setenv("NETLOGGER_SHM", moved, 1);
    int failures = 0;
    assert_int_equal(nl_recover(NULL, expect_failure, &failures), NL_FAILED);
    assert_int_equal(failures, 1);
    assert_int_equal(rename(moved, folder), 0);
    setenv("NETLOGGER_SHM", folder, 1);
    assert_int_equal(nl_recover(NULL, expect_sent, NULL), NL_OK);
    expect_all();
}

/* A killed program may leave any bytes in the shared memory. Recovery neither crashes nor loops forever. */
static void scribble(const char *name)
{
    FILE *file = fopen(name, "r+");
    assert_non_null(file);
    struct stat status;
    assert_int_equal(fstat(fileno(file), &status), 0);
    for (int i = 0; i < 20; i++) {
        long size = rand() % 2 ? 4096 + 512 : (long)status.st_size;
        fseek(file, 16 + rand() % (size - 16), SEEK_SET);
        fputc(rand() % 4 ? rand() : 0xff, file);
    }
    fclose(file);
}

static void test_damaged_memory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < times_here(100); i++) {
        kill_after(start_logging(i % 2 ? "ring=64k" : "ring=64k&format=nlb"), (unsigned)rand() % 3000);
        char command[256], name[512];
        snprintf(command, sizeof command, "ls -d %s/netlogger-*/[rsl]* 2>/dev/null", folder);
        FILE *files = popen(command, "r");
        while (fgets(name, sizeof name, files) != NULL) {
            name[strcspn(name, "\n")] = '\0';
            if (strstr(name, "/lock") == NULL)
                scribble(name);
        }
        pclose(files);
        nl_recover(&(nl_recover_options){.destination = "/dev/null"}, NULL, NULL);
        snprintf(command, sizeof command, "rm -rf %s/netlogger-*", folder);
        assert_int_equal(system(command), 0);
    }
    unlink(path);
}

static void note_failure(void *user, const nl_recovered *what)
{
    if (what->status == NL_OK)
        return;
    assert_non_null(strstr(what->message, "remove the file"));
    snprintf(user, 512, "%s", what->url);
}

/*
 * A file with a damaged head stays as it is. The first byte of each file is part of its head's magic. A head of zeros
 * is damaged if the file or a ring has data.
 */
static void test_files_with_damaged_heads_are_kept(void **state)
{
    (void)state;
    static const char *const kinds[] = {"ring-0-", "log-0"};
    static const size_t sizes[] = {1, 4096};
    for (size_t i = 0; i < 4; i++) {
        const size_t kind = i / 2, size = sizes[i % 2];
        char command[256], name[512], failed[512] = "", head[4096], damage[4096] = "";
        kill_at_work();
        snprintf(command, sizeof command, "ls -d %s/netlogger-*/%s*", folder, kinds[kind]);
        FILE *files = popen(command, "r");
        assert_non_null(fgets(name, sizeof name, files));
        pclose(files);
        name[strcspn(name, "\n")] = '\0';
        int fd = open(name, O_RDWR);
        assert_int_equal(pread(fd, head, size, 0), size);
        damage[0] = size == 1 ? '?' : '\0';
        assert_int_equal(pwrite(fd, damage, size, 0), size);
        for (int k = 0; k < 2; k++) { /* the second recovery reports the file again */
            *failed = '\0';
            assert_int_equal(nl_recover(NULL, note_failure, failed), NL_FAILED);
            assert_string_equal(failed, name);
        }
        assert_int_equal(pwrite(fd, head, size, 0), size);
        close(fd);
        assert_int_equal(nl_recover(NULL, expect_sent, NULL), NL_OK);
        expect_all();
        assert_int_equal(count_log_folders(folder), 0);
    }
    unlink(path);
}

static void expect_nothing(void *user, const nl_recovered *what)
{
    (void)user;
    fail_msg("%s was recovered", what->prog);
}

/* A process that is killed while it removes its directory leaves an empty directory without a lock. */
static void test_empty_folders(void **state)
{
    (void)state;
    char empty[80], used[80], own[80], file[96];
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    snprintf(empty, sizeof empty, "%s/netlogger-%u-%d-0000000a", folder, (unsigned)geteuid(), gone);
    snprintf(used, sizeof used, "%s/netlogger-%u-%d-0000000b", folder, (unsigned)geteuid(), gone);
    snprintf(own, sizeof own, "%s/netlogger-%u-%d-0000000c", folder, (unsigned)geteuid(), getpid());
    snprintf(file, sizeof file, "%s/something", used);
    assert_true(mkdir(empty, 0700) == 0 && mkdir(used, 0700) == 0 && mkdir(own, 0700) == 0);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(nl_recover(&(nl_recover_options){.list_only = true}, expect_nothing, NULL), NL_OK);
    assert_int_equal(count_log_folders(folder), 3);
    assert_int_equal(nl_recover(NULL, expect_nothing, NULL), NL_OK);
    assert_int_equal(access(empty, F_OK), -1);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(access(own, F_OK), 0);
    unlink(file);
    assert_true(rmdir(used) == 0 && rmdir(own) == 0);
}

/* ---- signals caused by writing must not reach the program ---- */

static int limited_to(const char *destination)
{
    return setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000}) == 0 &&
                   nl_recover(&(nl_recover_options){.destination = destination}, NULL, NULL) == NL_FAILED
               ? 0
               : 1;
}

/* Standard output has a closed peer while a signal for the program is pending. The program must receive the signal. */
static int broken_output(const char *destination)
{
    int ends[2];
    sigset_t pipe_signal, before, after, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0 || close(ends[0]) != 0 || close(ends[1]) != 0)
        return 1;
    nl_recover_options options = {.destination = destination};
    if (pthread_sigmask(SIG_SETMASK, NULL, &before) != 0 || nl_recover(&options, NULL, NULL) != NL_FAILED ||
        pthread_sigmask(SIG_SETMASK, NULL, &after) != 0 || sigismember(&after, SIGPIPE) != 0 ||
        sigismember(&after, SIGXFSZ) != sigismember(&before, SIGXFSZ))
        return 2;
    sigprocmask(SIG_BLOCK, &pipe_signal, NULL);
    raise(SIGPIPE);
    return nl_recover(&options, NULL, NULL) == NL_FAILED && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE)
               ? 0
               : 3;
}

/* Closes a log that has no writer thread, so that this thread writes to a pipe without a reader. */
static int close_without_thread(const char *destination)
{
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0 || close(ends[0]) != 0 || close(ends[1]) != 0 ||
        (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) ||
        setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}) != 0)
        return 1;
    nl_log *log = nl_open("killed", destination);
    NL_EVENT(log, NL_USAGE, "Event");
    return log != NULL && nl_close(log) == NL_FAILED ? 0 : 2;
}

/* Runs `work` in a separate process. Asserts that no signal ends the process. */
static void expect_no_signal(int (*work)(const char *destination), const char *destination)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        _exit(work(destination));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_no_signal_reaches_the_program(void **state)
{
    (void)state;
    char other[80];
    snprintf(other, sizeof other, "%s/limited", folder);
    kill_at_work();
    expect_no_signal(limited_to, other);
    expect_no_signal(broken_output, "-");
    expect_no_signal(close_without_thread, "-");
    assert_int_equal(nl_recover(&(nl_recover_options){.destination = other}, expect_sent, NULL), NL_OK);
    unlink(other);
    unlink(path);
}

/* ---- another user's directory, which only root reads ---- */

/* Runs a function as the user nobody, in a separate directory, and waits until the process is killed. */
static void run_as_stranger(void (*work)(void))
{
    assert_int_equal(chmod(folder, 01777), 0);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(1);
        work();
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

/* Returns the path of that file in the other user's directory. */
static const char *strangers(const char *file)
{
    static char name[300];
    *name = '\0';
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        if (strncmp(entry->d_name, "netlogger-65534", 15) == 0)
            snprintf(name, sizeof name, "%s/%s/%s", folder, entry->d_name, file);
    closedir(d);
    assert_true(*name != '\0');
    return name;
}

static void log_one_event(void)
{
    nl_log *log = nl_open("stranger", "memory:stranger");
    NL_EVENT(log, NL_USAGE, "Event");
    nl_flush(log);
}

/* A user who links root's file into his directory cannot make root's recovery truncate that file. */
static void test_a_stranger_names_no_file_of_ours(void **state)
{
    (void)state;
    static const char text[] = "root's own\nfile";
    char victim[80], other[80], url[100];
    snprintf(victim, sizeof victim, "%s/victim", folder);
    snprintf(other, sizeof other, "file:%s/recovered", folder);
    snprintf(url, sizeof url, "file:%s", victim);
    if (geteuid() != 0)
        return;
    FILE *file = fopen(victim, "w");
    assert_true(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    run_as_stranger(log_one_event);
    size_t size = NL_SHARED_HEADER + NL_SHARED_BATCH_SIZE;
    int fd = open(strangers("log-0"), O_RDWR);
    nl_shared_log *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    snprintf(shared->url, sizeof shared->url, "%s", url);
    shared->format = NL_FORMAT_NLB;
    shared->file_offset = 0;
    shared->batch_size = shared->next_size = sizeof text - 1;
    memcpy((char *)shared + NL_SHARED_HEADER, text, sizeof text - 1);
    munmap(shared, size);
    close(fd);
    nl_recover(&(nl_recover_options){.destination = other, .everyone = true}, NULL, NULL);
    struct stat status;
    assert_int_equal(stat(victim, &status), 0);
    assert_int_equal(status.st_size, sizeof text - 1);
}

/* Returns the number of records of that program in a file. */
static unsigned count_in(const char *file, const char *prog)
{
    nl_reader *reader = nl_reader_open(file, NULL);
    assert_non_null(reader);
    const nl_record *record;
    unsigned count = 0;
    while (nl_reader_next(reader, &record) == NL_OK)
        count += record->prog.size == strlen(prog) && memcmp(record->prog.data, prog, strlen(prog)) == 0;
    nl_reader_close(reader);
    return count;
}

/* Two logs without a writer thread: all events are left. */
static void log_much_in_vain(void)
{
    setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0});
    for (int number = 0; number < 2; number++) {
        nl_log *log = nl_open("stranger", "memory:stranger?ring=1m");
        for (int i = 0; i < 5000; i++)
            NL_EVENT(log, NL_USAGE, "Event", "I", i, "TEXT", "of which there is a little more than nothing");
    }
}

static void cut_off(void *user, const nl_recovered *what)
{
    const char *const *files = user;
    assert_int_equal(what->status, NL_OK);
    for (; *files != NULL; files++)
        assert_int_equal(truncate(strangers(*files), 0), 0);
}

/* Another user truncates files while root has them open. Root's process gets no signal, and recovers earlier events. */
static void test_a_stranger_cuts_files_off(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return;
    char other[80];
    snprintf(other, sizeof other, "%s/cut", folder);
    run_as_stranger(log_much_in_vain);
    /* While the first log is recovered, its files and the sites are open. */
    nl_recover_options options = {.destination = other, .everyone = true};
    const char *open_files[] = {"sites", "log-0", "ring-0-0", NULL};
    assert_int_equal(nl_recover(&options, cut_off, open_files), NL_OK);
    assert_int_equal(count_in(other, "stranger"), 10000);
    assert_int_equal(count_log_folders(folder), 0);
    unlink(other);

    run_as_stranger(log_much_in_vain);
    const char *coming_files[] = {"log-1", "ring-1-0", NULL};
    nl_recover(&options, cut_off, coming_files);
    assert_int_equal(count_in(other, "stranger"), 5000);
    unlink(other);
}

/* Reads some bytes and closes. */
static pid_t start_short_reader(const char *fifo, size_t size)
{
    assert_int_equal(mkfifo(fifo, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        char some[4096];
        int fd = open(fifo, O_RDONLY);
        while (size > 0) {
            ssize_t got = read(fd, some, sizeof some < size ? sizeof some : size);
            if (got <= 0)
                break;
            size -= (size_t)got;
        }
        _exit(0);
    }
    return child;
}

/*
 * Another user's events that were sent before the destination failed are not sent again, because recovery copies the
 * files and writes them back.
 */
static void test_a_strangers_progress_is_kept(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return;
    char other[80], fifo[80];
    snprintf(other, sizeof other, "%s/rest", folder);
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    run_as_stranger(log_much_in_vain);
    pid_t reader = start_short_reader(fifo, 600000); /* a log is larger, a batch much smaller */
    assert_int_equal(nl_recover(&(nl_recover_options){.destination = fifo, .everyone = true}, NULL, NULL), NL_FAILED);
    waitpid(reader, NULL, 0);
    unlink(fifo);
    assert_int_equal(nl_recover(&(nl_recover_options){.destination = other, .everyone = true}, NULL, NULL), NL_OK);
    assert_in_range(count_in(other, "stranger"), 5000, 8000);
    unlink(other);
}

static void count_recovered(void *user, const nl_recovered *what)
{
    if (what->status != NL_OK)
        fail_msg("%s", what->message);
    *(uint64_t *)user += what->records;
}

/* Events that nl_close could not deliver can be recovered as after a kill, when no log of the process is open. */
static void what_a_close_could_not_deliver(void **state)
{
    (void)state;
    enum { EVENTS = 1000 };
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char url[sizeof address.sun_path + 32];
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    snprintf(url, sizeof url, "unix:%s?format=ulm&clock=no", address.sun_path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    nl_log *other = nl_open("other", "memory:other"), *log = nl_open("closed", url);
    assert_non_null(log);
    close(listener);
    memset(reached, 0, THREADS * sizeof *reached);
    for (unsigned long i = 0; i < EVENTS; i++)
        NL_EVENT(log, NL_USAGE, "Typed", "T", 0, "I", i);
    assert_int_equal(nl_close(log), NL_FAILED);
    assert_non_null(strstr(nl_error_message(), "1000 events not delivered; nlrecover delivers them from /"));
    NL_EVENT(other, NL_USAGE, "Other", "I", 0);
    uint64_t records = 0;
    unlink(path);
    nl_recover_options options = {.destination = path};
    assert_int_equal(nl_recover(&options, count_recovered, &records), NL_OK);
    assert_int_equal(records, 0); /* the process may still log to that directory */
    assert_int_equal(nl_close(other), NL_OK);
    assert_int_equal(count_log_folders(folder), 1);
    assert_int_equal(nl_recover(&options, count_recovered, &records), NL_OK);
    assert_int_equal(records, EVENTS);
    assert_int_equal(count_log_folders(folder), 0);
    reached[0].done = EVENTS;
    expect_all();
}

/* ---- a text file to which several programs append ---- */

enum { BATCH_EVENTS = 40, OTHERS_LINES = 3, PARTS_MAX = 3 };

/* Appends line number i of the killed program, or of another program. */
static void add_line(nl_buffer *text, const char *prog, int i)
{
    char line[200];
    int size = snprintf(line, sizeof line,
                        "DATE=20260101000000.%06d HOST=here PROG=%s LVL=Usage NL.EVNT=Typed T=0 I=%d TEXT=\"a text\"\n",
                        i, prog, i);
    assert_true(nl_buffer_append(text, line, (size_t)size));
}

/* Leaves the shared memory of a process that was killed while it wrote its batch into the file, after the first offset
 * bytes. */
static void leave_batch(const nl_buffer *batch, size_t offset)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        nl_log *log = nl_open("killed", "memory:killed");
        NL_EVENT(log, NL_USAGE, "Event");
        nl_flush(log);
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill_after(child, 0);
    close(ready[0]);
    close(ready[1]);

    char pattern[80];
    glob_t logs;
    snprintf(pattern, sizeof pattern, "%s/netlogger-*/log-*", folder);
    assert_int_equal(glob(pattern, 0, NULL, &logs), 0);
    assert_int_equal(logs.gl_pathc, 1);
    int fd = open(logs.gl_pathv[0], O_RDWR);
    globfree(&logs);
    size_t size = NL_SHARED_HEADER + NL_SHARED_BATCH_SIZE;
    nl_shared_log *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    assert_int_equal(shared->batch_size, 0);
    snprintf(shared->url, sizeof shared->url, "file:%s", path);
    shared->file_offset = offset;
    shared->batch_size = shared->next_size = batch->size;
    shared->batch_records = shared->next_records = BATCH_EVENTS;
    memcpy((char *)shared + NL_SHARED_HEADER, batch->data, batch->size);
    munmap(shared, size);
    close(fd);
}

static unsigned count_text(const char *text, const char *wanted, size_t size)
{
    unsigned count = 0;
    const char *end = text + strlen(text);
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), wanted, size)) != NULL; at += size)
        count++;
    return count;
}

/* Asserts that the file has every line of text that many times. */
static void expect_lines(const char *file, const nl_buffer *text, unsigned times)
{
    for (const char *line = text->data, *end = text->data + text->size; line < end;) {
        size_t size = (size_t)((const char *)memchr(line, '\n', (size_t)(end - line)) + 1 - line);
        if (count_text(file, line, size) != times)
            fail_msg("not %u times in the file, but %u times: %.*s", times, count_text(file, line, size), (int)size,
                     line);
        line += size;
    }
}

static void append_to(int fd, const char *data, size_t size)
{
    assert_int_equal(write(fd, data, size), size);
}

static bool reads_fail;

/* Replaces the C library's function, for the library too. */
ssize_t pread(int fd, void *data, size_t size, off_t at)
{
    if (!reads_fail)
        return syscall(SYS_pread64, fd, data, size, at);
    errno = EIO;
    return -1;
}

/*
 * The killed program's batch is in the file in parts, which end at these bytes of the batch. Another program wrote
 * before the first part and, optionally, after each part. Recovery writes the rest.
 */
static void recover_parts(const nl_buffer *batch, const size_t *ends, unsigned parts, bool other_is_last)
{
    nl_buffer others = {0};
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (unsigned part = 0, line = 0; part <= parts; part++) {
        size_t from = others.size;
        for (unsigned i = 0; i < OTHERS_LINES; i++)
            add_line(&others, "other", (int)line++);
        if (part == parts && !other_is_last) {
            others.size = from;
            break;
        }
        append_to(fd, others.data + from, others.size - from);
        if (part == 0)
            leave_batch(batch, others.size);
        if (part < parts)
            append_to(fd, batch->data + (part > 0 ? ends[part - 1] : 0), ends[part] - (part > 0 ? ends[part - 1] : 0));
    }
    close(fd);
    /* The file may contain unreadable data: nothing is written, and the next call tries again. */
    int failures = 0;
    reads_fail = true;
    assert_int_equal(nl_recover(NULL, expect_failure, &failures), NL_FAILED);
    reads_fail = false;
    assert_int_equal(failures, 1);
    assert_int_equal(nl_recover(NULL, expect_sent, NULL), NL_OK);
    assert_int_equal(count_log_folders(folder), 0);

    FILE *file = fopen(path, "r");
    static char all[64 << 10];
    assert_non_null(file);
    all[fread(all, 1, sizeof all - 1, file)] = '\0';
    fclose(file);
    expect_lines(all, batch, 1);
    expect_lines(all, &others, 1);
    nl_buffer_free(&others);
}

/* Recovery finds the part of the batch that is in the file, and writes each other event once. */
static void test_a_file_that_another_program_appends_to(void **state)
{
    (void)state;
    nl_buffer batch = {0};
    for (int i = 0; i < BATCH_EVENTS; i++)
        add_line(&batch, "killed", i);
    size_t line = batch.size / 2;
    while (batch.data[line - 1] != '\n')
        line++;
    const size_t cuts[] = {1, 10, 40, 70, line, line + 1, line + 40, batch.size - 1, batch.size};
    const unsigned cut_count = sizeof cuts / sizeof *cuts;
    for (unsigned i = 0; i < cut_count; i++) {
        recover_parts(&batch, &cuts[i], 1, true);
        recover_parts(&batch, &cuts[i], 1, false);
    }
    /* If the program has not been killed, it continues after the other program's text. */
    const size_t whole_lines[PARTS_MAX] = {line, batch.size - (batch.size - line) / 2, batch.size};
    size_t parts[PARTS_MAX];
    memcpy(parts, whole_lines, sizeof parts);
    while (batch.data[parts[1] - 1] != '\n')
        parts[1]++;
    recover_parts(&batch, parts, 2, true);
    recover_parts(&batch, parts, 3, true);
    recover_parts(&batch, parts, 3, false);
    nl_buffer_free(&batch);
    unlink(path);
}

/* The state of a batch, in memory shared with the process that changes it. */
typedef struct settled_batch {
    nl_shared_log shared;
    char text[200];
} settled_batch;

static void settle_in_child(settled_batch *b)
{
    int fd = open(path, O_RDWR);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(2);
    raise(SIGSTOP);
    _exit(nl_remains_settle_batch(&b->shared, b->text, fd, true) != NL_OK);
}

/*
 * Executes the recovery of a batch that is in the file, one instruction at a time. After each instruction, a kill must
 * leave a state from which the next recovery does not write the batch again.
 */
static void test_a_kill_while_a_batch_is_settled(void **state)
{
    (void)state;
#ifdef RUNNING_ON_VALGRIND
    if (RUNNING_ON_VALGRIND) /* each instruction would be thousands of instructions */
        skip();
#endif
    settled_batch *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(b, MAP_FAILED);
    snprintf(b->text, sizeof b->text, "DATE=20000330112320 HOST=h PROG=p LVL=Usage NL.EVNT=e\n");
    b->shared.format = NL_FORMAT_ULM;
    b->shared.batch_size = strlen(b->text);
    b->shared.batch_records = 1;
    FILE *file = fopen(path, "w");
    assert_true(file != NULL && fputs(b->text, file) >= 0 && fclose(file) == 0);
    int status;
    pid_t child = fork();
    if (child == 0)
        settle_in_child(b);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) { /* this system does not allow tracing */
        munmap(b, sizeof *b);
        skip();
    }
    bool is_settled = false;
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_EXITKILL), 0);
    while (WIFSTOPPED(status)) {
        const uint64_t size = __atomic_load_n(&b->shared.batch_size, __ATOMIC_ACQUIRE);
        is_settled = is_settled || size == 0;
        assert_int_equal(size, is_settled ? 0 : strlen(b->text));
        assert_true(is_settled || b->shared.batch_start == 0);
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(is_settled);
    munmap(b, sizeof *b);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_while_writing_text),
        cmocka_unit_test(test_killed_while_writing_text_with_large_rings),
        cmocka_unit_test(test_killed_while_writing_blocks),
        cmocka_unit_test(test_killed_while_writing_compressed_blocks),
        cmocka_unit_test(test_killed_while_writing_to_a_pipe),
        cmocka_unit_test(test_killed_while_sending),
        cmocka_unit_test(test_few_descriptors),
        cmocka_unit_test(test_a_living_process_is_left_alone),
        cmocka_unit_test(test_to_another_destination),
        cmocka_unit_test(test_a_destination_that_is_away_can_be_tried_again),
        cmocka_unit_test(test_damaged_memory),
        cmocka_unit_test(test_files_with_damaged_heads_are_kept),
        cmocka_unit_test(test_empty_folders),
        cmocka_unit_test(test_no_signal_reaches_the_program),
        cmocka_unit_test(test_a_stranger_names_no_file_of_ours),
        cmocka_unit_test(test_a_stranger_cuts_files_off),
        cmocka_unit_test(test_a_strangers_progress_is_kept),
        cmocka_unit_test(test_a_kill_while_a_batch_is_settled),
        cmocka_unit_test(what_a_close_could_not_deliver),
        cmocka_unit_test(test_a_file_that_another_program_appends_to),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    leave_out_under_valgrind("*stranger*");
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
