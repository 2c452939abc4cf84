/* The spool's limit: the size stays within it, and dropped records are counted. */
#include <netlogger.h>

#include "reader/decoder.h"
#include "record/block_write.h"
#include "record/encoder.h"
#include "transport/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "under_valgrind.h"

enum { LIMIT = 1 << 20 };

static char folder[] = "/tmp/netlogger-XXXXXX";
static nl_url *url;

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("NETLOGGER_SHM", folder, 1);
    url = nl_url_parse("x-netlog://nowhere");
    return url == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    char command[64];
    nl_url_free(url);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static nl_spool *open_spool(bool oldest)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s/x*", folder);
    assert_int_equal(system(command), 0);
    nl_spool *spool = nl_spool_open(folder, url, LIMIT, oldest);
    assert_non_null(spool);
    return spool;
}

/* Formats the path of the directory that nl_spool_open creates for this user. */
static void format_directory(char *path, size_t size)
{
    snprintf(path, size, "%s/x-netlog___nowhere+%u", folder, (unsigned)geteuid());
}

static nl_status put_line(nl_spool *spool, size_t size)
{
    char *line = malloc(size);
    assert_non_null(line);
    memset(line, 'x', size);
    line[size - 1] = '\n';
    nl_status status = nl_spool_put(spool, line, size);
    free(line);
    return status;
}

/* Returns the total size of all files there. */
static uint64_t on_disk(unsigned *files)
{
    char path[600];
    format_directory(path, sizeof path);
    uint64_t sum = 0;
    *files = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        struct stat status;
        char name[900];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (stat(name, &status) == 0 && S_ISREG(status.st_mode)) {
            sum += (uint64_t)status.st_size;
            ++*files;
        }
    }
    closedir(d);
    return sum;
}

/* Delivers everything. Returns the delivered lines, and in *lost the dropped lines. */
static unsigned deliver(nl_spool *spool, uint64_t *lost)
{
    nl_buffer out = {0};
    unsigned lines = 0;
    *lost = 0;
    while (nl_spool_peek(spool, &out) == NL_OK) {
        *lost += nl_spool_lost(spool);
        if (nl_spool_lost(spool) > 0)
            nl_spool_loss_reported(spool, nl_spool_lost(spool));
        for (size_t i = 0; i < out.size; i++)
            lines += out.data[i] == '\n';
        nl_spool_delivered(spool, out.size);
    }
    assert_true(nl_spool_is_empty(spool));
    nl_buffer_free(&out);
    return lines;
}

static void the_oldest_give_way(void **state)
{
    (void)state;
    static const size_t sizes[] = {100, 70000, LIMIT / 2, LIMIT - 100, LIMIT - 28, LIMIT - 27, LIMIT, 3 * LIMIT};
    enum { SIZES = sizeof sizes / sizeof *sizes, PUTS = 200 };
    nl_spool *spool = open_spool(true);
    unsigned files;
    srand(7);
    for (unsigned i = 0; i < PUTS; i++) {
        assert_int_equal(put_line(spool, sizes[(unsigned)rand() % SIZES]), NL_OK);
        assert_true(on_disk(&files) <= LIMIT + 4096);
        assert_true(files < 100);
    }
    uint64_t lost;
    unsigned lines = deliver(spool, &lost);
    assert_int_equal(lines + lost, PUTS);
    nl_spool_close(spool);
}

static void what_is_larger_than_all_of_it_is_counted(void **state)
{
    (void)state;
    nl_spool *spool = open_spool(true);
    uint64_t lost;
    unsigned files;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(put_line(spool, 100), NL_OK);
    assert_int_equal(put_line(spool, 2 * LIMIT), NL_OK);
    on_disk(&files);
    assert_true(files <= 3);
    /* A later process also delivers the records. */
    nl_spool_close(spool);
    spool = nl_spool_open(folder, url, LIMIT, true);
    assert_non_null(spool);
    assert_int_equal(deliver(spool, &lost), 10);
    assert_int_equal(lost, 1);
    nl_spool_close(spool);
}

static void what_is_there_is_kept(void **state)
{
    (void)state;
    nl_spool *spool = open_spool(false);
    uint64_t lost;
    unsigned files;
    assert_int_equal(put_line(spool, 100), NL_OK);
    assert_int_equal(put_line(spool, LIMIT), NL_FAILED);
    assert_int_equal(put_line(spool, LIMIT - 100), NL_FAILED);
    assert_int_equal(put_line(spool, LIMIT / 2), NL_OK);
    assert_true(on_disk(&files) <= LIMIT);
    assert_int_equal(deliver(spool, &lost), 2);
    assert_int_equal(lost, 0);
    nl_spool_close(spool);
}

/* Puts a block of that many records of different sizes into the spool. Newlines in values do not end records. */
static void put_block(nl_spool *spool, unsigned records)
{
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB});
    nl_record *record = nl_record_new();
    nl_buffer block = {0};
    char text[600];
    assert_true(encoder != NULL && record != NULL);
    for (unsigned i = 0; i < records; i++) {
        nl_record_clear(record);
        nl_record_set_time(record, 1 + i);
        nl_record_set_level(record, NL_USAGE);
        nl_record_set_event(record, "Event", 5);
        size_t size = 100 + (size_t)rand() % 400;
        for (size_t at = 0; at < size; at++)
            text[at] = (char)(rand() % 3 == 0 ? '\n' : 'a' + rand() % 26);
        nl_record_add_string(record, "TEXT", text, size);
        assert_int_equal(nl_encoder_put(encoder, record), NL_OK);
    }
    assert_int_equal(nl_encoder_finish(encoder, &block), NL_OK);
    assert_int_equal(nl_spool_put(spool, block.data, block.size), NL_OK);
    nl_buffer_free(&block);
    nl_record_free(record);
    nl_encoder_free(encoder);
}

static void records_in_dropped_blocks_are_counted(void **state)
{
    (void)state;
    nl_spool *spool = open_spool(true);
    uint64_t put = 0, delivered = 0, lost = 0;
    nl_buffer out = {0};
    srand(11);
    for (unsigned i = 0; i < 400; i++) {
        unsigned records = 1 + (unsigned)rand() % 60;
        put_block(spool, records);
        put += records;
    }
    while (nl_spool_peek(spool, &out) == NL_OK) {
        lost += nl_spool_lost(spool);
        if (nl_spool_lost(spool) > 0)
            nl_spool_loss_reported(spool, nl_spool_lost(spool));
        nl_decoder *decoder = nl_decoder_new(NULL);
        const nl_record *record;
        nl_decoder_feed(decoder, out.data, out.size);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            delivered++;
        nl_decoder_free(decoder);
        nl_spool_delivered(spool, out.size);
    }
    assert_true(lost > 0 && delivered > 0);
    assert_int_equal(delivered + lost, put);
    nl_buffer_free(&out);
    nl_spool_close(spool);
}

/* Returns the number of files in the spool whose names end so. */
static unsigned count_files(const char *suffix)
{
    char pattern[600];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/x-netlog___nowhere+*/*%s", folder, suffix);
    unsigned count = glob(pattern, 0, NULL, &found) == 0 ? (unsigned)found.gl_pathc : 0;
    if (count > 0)
        globfree(&found);
    return count;
}

/* ---- fsync ---- */

static unsigned data_syncs, directory_syncs, losses_syncs;
static bool syncs_fail;

static bool is_losses_file(int fd)
{
    char link[32], path[600] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".lost") != NULL;
}

/* This function replaces the C library's function, even in calls of the library. */
int fdatasync(int fd)
{
    __atomic_add_fetch(&data_syncs, 1, __ATOMIC_SEQ_CST);
    losses_syncs += is_losses_file(fd);
    if (!syncs_fail)
        return (int)syscall(SYS_fdatasync, fd);
    errno = EIO;
    return -1;
}

int fsync(int fd)
{
    __atomic_add_fetch(&directory_syncs, 1, __ATOMIC_SEQ_CST);
    return (int)syscall(SYS_fsync, fd);
}

/* Opens a log whose collector is away, and logs one event into its spool. */
static nl_log *open_away(const char *options)
{
    char destination[200];
    snprintf(destination, sizeof destination, "unix:%s/nobody?format=nlb&spool=%s/away%s", folder, folder, options);
    data_syncs = directory_syncs = 0;
    nl_log *log = nl_open("away", destination);
    assert_non_null(log);
    NL_EVENT(log, NL_USAGE, "Event");
    return log;
}

static void expect_flush_syncs(const char *options, bool syncs)
{
    nl_log *log = open_away(options);
    assert_int_equal(nl_flush(log), NL_OK);
    assert_int_equal(data_syncs > 0, syncs);
    assert_int_equal(directory_syncs > 0, syncs);
    nl_close(log);
}

/* Records that nl_flush reports as safe are on disk, unless the URL disables this. */
static void a_flush_syncs_the_spool(void **state)
{
    (void)state;
    expect_flush_syncs("", true);
    expect_flush_syncs("&fsync=flush", true);
    expect_flush_syncs("&fsync=1000", true);
    expect_flush_syncs("&fsync=never", false);
}

static void the_spool_is_synced_in_time(void **state)
{
    (void)state;
    nl_log *log = open_away("&fsync=0.05");
    for (int i = 0; i < 6000 && __atomic_load_n(&directory_syncs, __ATOMIC_SEQ_CST) < 2; i++)
        usleep(10000);
    assert_true(data_syncs > 0 && directory_syncs >= 2);
    nl_close(log);
    log = open_away("&fsync=1000");
    nl_close(log);
    assert_true(data_syncs > 0);
}

static unsigned late_wakes;

/*
 * Replaces the C library's function, for the library too. While late_wakes is set, the caller gets the mutex only after
 * other threads had it for a while, as on a busy machine.
 */
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    struct timespec never = {.tv_sec = INT32_MAX};
    int result = pthread_cond_timedwait(condition, mutex, &never);
    if (__atomic_load_n(&late_wakes, __ATOMIC_SEQ_CST) > 0) {
        __atomic_sub_fetch(&late_wakes, 1, __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(mutex);
        usleep(100000);
        pthread_mutex_lock(mutex);
    }
    return result;
}

static void a_failed_sync_fails_the_flush(void **state)
{
    (void)state;
    nl_log *log = open_away("&fsync=flush"); /* only the flush syncs */
    syncs_fail = true;
    late_wakes = 1; /* the writer thread runs again before nl_flush returns */
    assert_int_equal(nl_flush(log), NL_FAILED);
    assert_int_equal(late_wakes, 0);
    assert_non_null(strstr(nl_error_message(), "fsync the spool "));
    syncs_fail = false;
    assert_int_equal(nl_flush(log), NL_FAILED); /* a later sync does not restore data that the kernel discarded */
    assert_int_equal(nl_close(log), NL_FAILED);
}

/* The kernel reports a failed fsync once: unsynced records stay unsafe until they are delivered. */
static void a_failed_sync_is_not_forgotten(void **state)
{
    (void)state;
    nl_spool *spool = open_spool(false);
    uint64_t lost;
    assert_int_equal(put_line(spool, 100), NL_OK);
    syncs_fail = true;
    assert_int_equal(nl_spool_sync(spool), NL_FAILED);
    syncs_fail = false;
    assert_int_equal(nl_spool_sync(spool), NL_FAILED);
    assert_int_equal(put_line(spool, 100), NL_OK);
    data_syncs = 0;
    assert_int_equal(nl_spool_sync(spool), NL_FAILED);
    assert_true(data_syncs > 0);
    assert_true(nl_spool_unsafe_since_ns(spool) > 0);
    assert_int_equal(deliver(spool, &lost), 2);
    assert_int_equal(nl_spool_sync(spool), NL_OK);
    assert_int_equal(put_line(spool, 100), NL_OK);
    assert_int_equal(nl_spool_sync(spool), NL_OK);
    nl_spool_close(spool);
}

static void what_another_process_left_is_synced(void **state)
{
    (void)state;
    for (unsigned puts = 1; puts < 40; puts += 38) { /* few records fit in one file; many records need several files */
        nl_spool *spool = open_spool(false);
        for (unsigned i = 0; i < puts; i++)
            assert_int_equal(put_line(spool, LIMIT / 50), NL_OK);
        nl_spool_close(spool);
        spool = nl_spool_open(folder, url, LIMIT, false);
        assert_true(nl_spool_unsafe_since_ns(spool) > 0);
        data_syncs = 0;
        assert_int_equal(nl_spool_sync(spool), NL_OK);
        assert_true(data_syncs >= 1 + puts / 4);
        assert_int_equal(nl_spool_unsafe_since_ns(spool), 0);
        nl_spool_close(spool);
    }
}

/* The numbers that the full spool dropped are on disk when nl_spool_sync returns, in every process. */
static void the_losses_file_is_synced(void **state)
{
    (void)state;
    nl_spool *spool = open_spool(true);
    nl_block_writer writer = {0};
    nl_record *record = nl_record_new();
    nl_buffer block = {0};
    static char value[LIMIT / 10];
    nl_record_add_string(record, "VALUE", value, sizeof value);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(nl_block_put(&writer, record));
        block.size = 0;
        assert_true(nl_block_finish(&writer, &(nl_block_identity){.stream = {1}, .first_sequence = i}, 0, &block));
        assert_int_equal(nl_spool_put(spool, block.data, block.size), NL_OK);
    }
    nl_block_writer_free(&writer);
    nl_record_free(record);
    nl_buffer_free(&block);
    assert_int_equal(count_files(".lost"), 1);
    for (int other = 0; other < 2; other++) {
        losses_syncs = 0;
        assert_int_equal(nl_spool_sync(spool), NL_OK);
        assert_int_equal(losses_syncs, 1);
        nl_spool_close(spool);
        spool = nl_spool_open(folder, url, LIMIT, true);
    }
    nl_spool_close(spool);
}

/* ---- unreadable files ---- */

static unsigned reads_fail; /* number of reads that will fail */

/* This function replaces the C library's function, even in calls of the library. */
ssize_t pread(int fd, void *data, size_t size, off_t at)
{
    if (reads_fail == 0)
        return syscall(SYS_pread64, fd, data, size, at);
    reads_fail--;
    errno = EIO;
    return -1;
}

static void what_cannot_be_read_is_kept_or_counted(void **state)
{
    (void)state;
    nl_buffer out = {0};
    uint64_t lost;
    for (int adopted = 0; adopted < 2; adopted++) {
        nl_spool *spool = open_spool(false);
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(put_line(spool, 100), NL_OK);
        if (adopted) {
            nl_spool_close(spool);
            spool = nl_spool_open(folder, url, LIMIT, false);
            assert_int_equal(nl_spool_peek(spool, &out), NL_OK);
        }
        reads_fail = 1;
        assert_int_equal(nl_spool_peek(spool, &out), NL_FAILED);
        assert_non_null(strstr(nl_error_message(), "Input/output error"));
        assert_int_equal(reads_fail, 0);
        assert_int_equal(deliver(spool, &lost), 10);
        assert_int_equal(lost, 0);
        assert_int_equal(count_files(""), 0);

        /*
         * A file is truncated. Its whole records are delivered, the other records are counted as lost, and the file is
         * kept.
         */
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(put_line(spool, 100), NL_OK);
        if (adopted) {
            nl_spool_close(spool);
            spool = nl_spool_open(folder, url, LIMIT, false);
            assert_int_equal(nl_spool_peek(spool, &out), NL_OK);
        }
        char command[200];
        snprintf(command, sizeof command, "truncate -s 500 %s/x-netlog___nowhere+*/*-000001.spool", folder);
        assert_int_equal(system(command), 0);
        unsigned failures = 0;
        nl_status status;
        unsigned lines = 0;
        while ((status = nl_spool_peek(spool, &out)) != NL_END) {
            assert_true(++failures < 10);
            if (status != NL_OK)
                continue;
            lines += (unsigned)(out.size / 100);
            lost += nl_spool_lost(spool);
            nl_spool_loss_reported(spool, nl_spool_lost(spool));
            nl_spool_delivered(spool, out.size);
        }
        assert_int_equal(lines, 4);
        if (adopted)
            assert_in_range(lost, 1, 6); /* some lost records may be unknown */
        else
            assert_int_equal(lost, 6);
        assert_int_equal(count_files(".damaged"), 1);
        nl_spool_close(spool);
    }
    nl_buffer_free(&out);
}

/* ---- kills at each step ---- */

static int calls_left = INT_MAX;

static void count_call(void)
{
    if (--calls_left == 0)
        _exit(0);
}

static unsigned opens_fail, writes_fail; /* the number of calls to fail */
static bool next_write_fails;            /* after a failed open */

static int fail_full(unsigned *count)
{
    --*count;
    errno = ENOSPC;
    return -1;
}

/* These functions replace the C library's functions, even in calls of the library. */
int openat(int fd, const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (opens_fail == 0 || !(flags & O_CREAT))
        return (int)syscall(SYS_openat, fd, name, flags, mode);
    writes_fail = next_write_fails;
    return fail_full(&opens_fail);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    count_call();
    if (writes_fail > 0)
        return fail_full(&writes_fail);
    return syscall(SYS_pwrite64, fd, data, size, at);
}

int unlinkat(int fd, const char *name, int flags)
{
    count_call();
    return (int)syscall(SYS_unlinkat, fd, name, flags);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    count_call();
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

/* Puts lines with the numbers from *number on, until it is killed. */
static void put_numbers(unsigned *number, int kill_after)
{
    enum { PUTS = 60, SIZE = LIMIT / 24 };
    static char line[SIZE];
    nl_spool *spool = nl_spool_open(folder, url, LIMIT, true);
    calls_left = kill_after;
    memset(line, 'x', sizeof line);
    for (; *number < PUTS; ++*number) {
        snprintf(line, 16, "%u ", *number);
        line[strlen(line)] = 'x';
        line[sizeof line - 1] = '\n';
        if (nl_spool_put(spool, line, sizeof line) != NL_OK)
            _exit(1);
    }
    calls_left = INT_MAX;
    _exit(2);
}

/* A kill at any step of a full spool neither loses nor duplicates a record or a count of losses. */
static void a_kill_keeps_records_and_counts(void **state)
{
    (void)state;
    unsigned *number = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(number != MAP_FAILED);
    nl_buffer out = {0};
    int result = 0;
    /* In ./check, at each seventh call: the numbers of calls of the puts differ, so each kind of call occurs. */
    const int step = times_here(10) < 10 ? 7 : 1;
    for (int kill_after = 1; result != 2; kill_after += step) {
        nl_spool_close(open_spool(true)); /* empties the directory */
        *number = 0;
        pid_t child = fork();
        if (child == 0)
            put_numbers(number, kill_after);
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        result = WEXITSTATUS(result);
        assert_int_not_equal(result, 1);
        nl_spool *spool = nl_spool_open(folder, url, LIMIT, true);
        unsigned next = 0;
        while (nl_spool_peek(spool, &out) == NL_OK) {
            next += (unsigned)nl_spool_lost(spool);
            nl_spool_loss_reported(spool, nl_spool_lost(spool));
            for (const char *at = out.data; at < out.data + out.size; at = strchr(at, '\n') + 1)
                assert_int_equal(atoi(at), next++);
            nl_spool_delivered(spool, out.size);
        }
        nl_spool_close(spool);
        assert_in_range(next, *number, *number + 1);
        assert_int_equal(count_files(""), 0);
    }
    assert_int_equal(*number, 60);
    nl_buffer_free(&out);
    munmap(number, 4096);
}

/* ---- a full disk ---- */

/* Puts lines until a call fails, then that many more. Returns the number of lines. */
static unsigned put_until_failure(nl_spool *spool, unsigned more)
{
    unsigned count = 0;
    while (put_line(spool, LIMIT / 40) == NL_OK)
        assert_true(++count < 40);
    opens_fail = writes_fail = 0;
    for (unsigned i = 0; i < more; i++)
        assert_int_equal(put_line(spool, LIMIT / 40), NL_OK);
    return count + more;
}

/* If a segment cannot be created, no record is delivered or counted as lost twice. */
static void a_segment_that_cannot_be_made_changes_nothing(void **state)
{
    (void)state;
    enum { STATE_FAILS, OPEN_FAILS, BOTH_FAIL, CASES };
    for (int i = 0; i < 2 * CASES; i++) {
        bool oldest = i >= CASES;
        nl_spool *spool = open_spool(oldest);
        uint64_t lost;
        assert_int_equal(put_line(spool, LIMIT / 16), NL_OK); /* a whole segment */
        opens_fail = i % CASES != STATE_FAILS;
        writes_fail = !opens_fail;
        next_write_fails = i % CASES == BOTH_FAIL;
        unsigned put = 1 + put_until_failure(spool, oldest ? 60 : 20);
        assert_int_equal(deliver(spool, &lost) + lost, put);
        assert_int_equal(lost > 0, oldest);
        assert_int_equal(count_files(""), 0);
        nl_spool_close(spool);
    }
}

/* ---- spools of other processes ---- */

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

static void what_others_left_takes_no_space_or_descriptors(void **state)
{
    (void)state;
    enum { ROWS = 40 };
    nl_spool *spools[ROWS];
    nl_buffer out = {0};
    uint64_t lost;
    nl_spool_close(open_spool(false));
    for (unsigned i = 0; i < ROWS; i++) {
        spools[i] = nl_spool_open(folder, url, LIMIT, false);
        assert_int_equal(put_line(spools[i], LIMIT * 3 / 4), NL_OK);
    }
    for (unsigned i = 0; i < ROWS; i++)
        nl_spool_close(spools[i]);
    for (int oldest = 0; oldest < 2; oldest++) {
        unsigned before = count_descriptors();
        nl_spool *spool = nl_spool_open(folder, url, LIMIT, oldest);
        assert_int_equal(put_line(spool, LIMIT * 3 / 4), NL_OK);
        assert_int_equal(nl_spool_peek(spool, &out), NL_OK);
        assert_in_range(count_descriptors(), before + 1, before + 5);
        assert_int_equal(deliver(spool, &lost), oldest ? 1 : ROWS + 1);
        assert_int_equal(lost, 0);
        nl_spool_close(spool);
    }
    nl_buffer_free(&out);
}

static void a_wrong_fsync_is_refused(void **state)
{
    (void)state;
    assert_null(nl_open("away", "unix:/nowhere?fsync=often"));
    assert_non_null(strstr(nl_error_message(), "fsync"));
}

/* Asserts that the spool cannot be opened, because of the directory at path. */
static void expect_refused(const char *path, const char *problem)
{
    assert_null(nl_spool_open(folder, url, LIMIT, false));
    if (strstr(nl_error_message(), path) == NULL || strstr(nl_error_message(), problem) == NULL)
        fail_msg("%s", nl_error_message());
}

static void a_directory_of_another_user_is_refused(void **state)
{
    (void)state;
    char path[600];
    format_directory(path, sizeof path);
    nl_spool_close(open_spool(false));
    const char *const paths[] = {path, folder};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(chmod(paths[i], 0777), 0);
        expect_refused(paths[i], "other users can write to");
        assert_int_equal(chmod(paths[i], 0720), 0);
        expect_refused(paths[i], "other users can write to");
        assert_int_equal(chmod(paths[i], 0700), 0);
    }
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        expect_refused(folder, "belongs to user ID 65534, not to user ID 0");
        assert_int_equal(chown(folder, 0, 0), 0);
    }
    assert_int_equal(chmod(folder, 01777), 0); /* as /tmp */
    nl_spool *spool = nl_spool_open(folder, url, LIMIT, false);
    assert_non_null(spool);
    nl_spool_close(spool);
    assert_int_equal(chmod(folder, 0700), 0);

    char elsewhere[80];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_null(nl_spool_open(folder, url, LIMIT, false));
}

/* In a shared directory, a user's spool does not prevent other users from having their own spools. */
static void each_user_has_a_spool(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* cannot become another user */
    nl_spool *spool = open_spool(false);
    assert_int_equal(chmod(folder, 01777), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(setgid(65534) != 0 || setuid(65534) != 0 || nl_spool_open(folder, url, LIMIT, false) == NULL);
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    nl_spool_close(spool);
    assert_int_equal(chmod(folder, 0700), 0);
}

/* Another user has created a directory with the name of this user's spool. The spool gets a name that other users
 * cannot guess, and later programs find it, even after the other user has removed the directory. */
static void a_name_that_another_user_has_taken(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* cannot give a directory to another user */
    char path[600], link[620];
    uint64_t lost;
    format_directory(path, sizeof path);
    nl_spool_close(open_spool(false));
    assert_int_equal(chmod(folder, 01777), 0);
    assert_int_equal(chown(path, 65534, 65534), 0);
    snprintf(link, sizeof link, "%s.000000", path); /* sorts before the random names */
    assert_int_equal(symlink("/", link), 0);
    for (int i = 0; i < 2; i++) {
        nl_spool *spool = nl_spool_open(folder, url, LIMIT, false);
        assert_non_null(spool);
        assert_int_equal(put_line(spool, 100), NL_OK);
        nl_spool_close(spool);
    }
    assert_int_equal(rmdir(path), 0); /* fails if the spool has used this directory */
    nl_spool *spool = nl_spool_open(folder, url, LIMIT, false);
    assert_non_null(spool);
    assert_int_equal(deliver(spool, &lost), 2);
    nl_spool_close(spool);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(chmod(folder, 0700), 0);
}

/* Earlier releases created directories without a user ID. */
static void a_spool_of_an_earlier_release_is_used(void **state)
{
    (void)state;
    char now[600], earlier[600];
    nl_spool *spool = open_spool(false);
    assert_int_equal(put_line(spool, 100), NL_OK);
    nl_spool_close(spool);
    format_directory(now, sizeof now);
    snprintf(earlier, sizeof earlier, "%s/x-netlog___nowhere", folder);
    assert_int_equal(rename(now, earlier), 0);
    spool = nl_spool_open(folder, url, LIMIT, false);
    assert_non_null(spool);
    uint64_t lost;
    assert_int_equal(deliver(spool, &lost), 1);
    nl_spool_close(spool);
    assert_int_equal(access(now, F_OK), -1);
}

/* No destination's directory is the directory of an earlier release for another destination. */
static void destinations_do_not_share_a_directory(void **state)
{
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "x-netlog://nowhere-%u", (unsigned)geteuid());
    nl_url *other_url = nl_url_parse(text);
    nl_spool *spool = open_spool(false);
    assert_int_equal(put_line(spool, 100), NL_OK);
    nl_spool_close(spool);
    spool = nl_spool_open(folder, other_url, LIMIT, false);
    assert_non_null(spool);
    assert_true(nl_spool_is_empty(spool));
    nl_spool_close(spool);
    nl_url_free(other_url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_give_way),
        cmocka_unit_test(what_is_larger_than_all_of_it_is_counted),
        cmocka_unit_test(what_is_there_is_kept),
        cmocka_unit_test(records_in_dropped_blocks_are_counted),
        cmocka_unit_test(a_flush_syncs_the_spool),
        cmocka_unit_test(the_spool_is_synced_in_time),
        cmocka_unit_test(a_failed_sync_fails_the_flush),
        cmocka_unit_test(a_failed_sync_is_not_forgotten),
        cmocka_unit_test(what_another_process_left_is_synced),
        cmocka_unit_test(the_losses_file_is_synced),
        cmocka_unit_test(what_cannot_be_read_is_kept_or_counted),
        cmocka_unit_test(a_kill_keeps_records_and_counts),
        cmocka_unit_test(a_segment_that_cannot_be_made_changes_nothing),
        cmocka_unit_test(what_others_left_takes_no_space_or_descriptors),
        cmocka_unit_test(a_wrong_fsync_is_refused),
        cmocka_unit_test(each_user_has_a_spool),
        cmocka_unit_test(a_name_that_another_user_has_taken),
        cmocka_unit_test(a_spool_of_an_earlier_release_is_used),
        cmocka_unit_test(destinations_do_not_share_a_directory),
        cmocka_unit_test(a_directory_of_another_user_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
