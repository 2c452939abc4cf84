/* Records from files, pipes, memory, and logs that grow, are compressed, renamed or damaged. */
#include "text_support.h"
#include "reader/reader.h"
#include "record/encoder.h"
#include "base/buffer.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#define LINE "DATE=20000330112320.957943 HOST=h N=%d\n"

static char folder[64];
static char path[96], other_path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/netlogger-reader-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/a.log", folder);
    snprintf(other_path, sizeof other_path, "%s/a.log.1", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(other_path);
    return rmdir(folder);
}

/* Returns the records numbered from first to last - 1. */
static nl_buffer lines(int first, int last)
{
    nl_buffer text = {0};
    for (int i = first; i < last; i++) {
        char line[100];
        nl_buffer_append(&text, line, (size_t)snprintf(line, sizeof line, LINE, i));
    }
    return text;
}

static void reader_put(const char *name, int flags, const void *data, size_t size)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

static void put_lines(const char *name, int flags, int first, int last)
{
    nl_buffer text = lines(first, last);
    reader_put(name, flags, text.data, text.size);
    nl_buffer_free(&text);
}

static nl_reader *reader_open_log(const char *url, bool follow, bool nonblocking)
{
    nl_reader_options options = {.follow = follow, .nonblocking = nonblocking};
    nl_reader *reader = nl_reader_open(url, &options);
    if (reader == NULL)
        fail_msg("%s", nl_error_message());
    return reader;
}

/* Asserts that the next records are those numbered from first to last - 1. */
static void expect_lines(nl_reader *reader, int first, int last)
{
    for (int i = first; i < last; i++) {
        const nl_record *record;
        nl_status status;
        for (int tries = 0; (status = nl_reader_next(reader, &record)) == NL_AGAIN && tries < 500; tries++)
            usleep(1000);
        if (status != NL_OK)
            fail_msg("record %d: status %d %s", i, status, nl_error_message());
        nl_field field;
        int64_t number;
        assert_true(nl_record_find(record, "N", &field));
        assert_true(nl_field_int(&field, &number));
        assert_int_equal(number, i);
    }
}

static void expect_status(nl_reader *reader, nl_status status)
{
    const nl_record *record;
    assert_int_equal(nl_reader_next(reader, &record), status);
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1000; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void reads_a_file_and_says_how_far(void **state)
{
    (void)state;
    put_lines(path, 0, 0, 50000);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    nl_reader *reader = reader_open_log(path, false, false);
    assert_int_equal(nl_reader_size(reader), status.st_size);
    assert_int_equal(nl_reader_position(reader), 0);
    expect_lines(reader, 0, 1);
    assert_true(nl_reader_position(reader) > 0 && nl_reader_position(reader) < nl_reader_size(reader));
    expect_lines(reader, 1, 50000);
    expect_status(reader, NL_END);
    expect_status(reader, NL_END);
    assert_int_equal(nl_reader_position(reader), status.st_size);
    assert_int_equal(nl_reader_get_stats(reader)->records, 50000);
    assert_int_equal(nl_reader_get_stats(reader)->bytes, status.st_size);
    nl_reader_close(reader);
    nl_reader_close(NULL);
}

static void says_why_it_cannot_open(void **state)
{
    (void)state;
    int before = open_descriptors();
    char expected[200];
    assert_null(nl_reader_open(path, NULL));
    snprintf(expected, sizeof expected, "%s: No such file or directory", path);
    assert_string_equal(nl_error_message(), expected);
    assert_null(nl_reader_open(folder, NULL));
    snprintf(expected, sizeof expected, "%s: Is a directory", folder);
    assert_string_equal(nl_error_message(), expected);
    assert_null(nl_reader_open("memory:nothing", NULL));
    assert_null(nl_reader_open("x-netlog://127.0.0.1", NULL));
    assert_true(strstr(nl_error_message(), "x-netlog://127.0.0.1") != NULL);
    if (geteuid() != 0) {
        reader_put(path, 0, "", 0);
        assert_int_equal(chmod(path, 0), 0);
        assert_null(nl_reader_open(path, NULL));
        snprintf(expected, sizeof expected, "%s: Permission denied", path);
        assert_string_equal(nl_error_message(), expected);
    }
    assert_int_equal(open_descriptors(), before);
}

static void reads_memory(void **state)
{
    (void)state;
    nl_log *log = nl_open("test", "memory:reader-test");
    assert_non_null(log);
    for (int i = 0; i < 100; i++)
        assert_int_equal(nl_write(log, NL_USAGE, "e", "N=%d", i), NL_OK);
    assert_int_equal(nl_close(log), NL_OK);
    nl_reader *reader = reader_open_log("memory:reader-test", false, false);
    expect_lines(reader, 0, 100);
    expect_status(reader, NL_END);
    nl_reader_close(reader);
    nl_memory_free("reader-test");
}

/* Compresses the records numbered from first to last - 1 into a frame, and appends it to out. */
static void compress(int first, int last, nl_buffer *out)
{
    nl_buffer text = lines(first, last);
    size_t bound = ZSTD_compressBound(text.size);
    nl_buffer_reserve(out, bound);
    size_t size = ZSTD_compress(out->data + out->size, bound, text.data, text.size, 1);
    assert_false(ZSTD_isError(size));
    out->size += size;
    nl_buffer_free(&text);
}

static void reads_compressed_frames(void **state)
{
    (void)state;
    nl_buffer packed = {0};
    static const unsigned char skippable[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    nl_buffer_append(&packed, skippable, sizeof skippable);
    compress(0, 40000, &packed);
    compress(40000, 40000, &packed);
    compress(40000, 40001, &packed);
    nl_buffer_append(&packed, skippable, sizeof skippable);
    reader_put(path, 0, packed.data, packed.size);
    nl_reader *reader = reader_open_log(path, false, false);
    expect_lines(reader, 0, 40001);
    expect_status(reader, NL_END);
    assert_int_equal(nl_reader_position(reader), packed.size);
    nl_reader_close(reader);
    nl_buffer_free(&packed);
}

/* Returns the number of records before an error. Asserts that the error's message contains `words`. */
static int count_until_failure(const char *words)
{
    nl_reader *reader = reader_open_log(path, false, false);
    const nl_record *record;
    nl_status status;
    int count = 0;
    while ((status = nl_reader_next(reader, &record)) == NL_OK)
        count++;
    assert_int_equal(status, NL_FAILED);
    if (strstr(nl_error_message(), words) == NULL)
        fail_msg("%s", nl_error_message());
    expect_status(reader, NL_FAILED);
    nl_reader_close(reader);
    return count;
}

static void keeps_what_came_before_damage(void **state)
{
    (void)state;
    nl_buffer packed = {0};
    compress(0, 40000, &packed);
    reader_put(path, 0, packed.data, packed.size - 1);
    int count = count_until_failure("truncated");
    assert_true(count > 30000 && count <= 40000);
    reader_put(path, O_TRUNC, packed.data, packed.size / 2);
    count = count_until_failure("truncated");
    assert_true(count > 10000 && count < 30000);
    packed.data[packed.size / 2] ^= 0x55;
    packed.data[packed.size / 2 + 1] ^= 0x55;
    memset(packed.data + packed.size * 3 / 4, 0xff, 200);
    reader_put(path, O_TRUNC, packed.data, packed.size);
    count = count_until_failure("damaged");
    assert_true(count < 40000);
    /* Other bytes after a frame. */
    packed.size = 0;
    compress(0, 10, &packed);
    nl_buffer_append(&packed, "DATE=2000", 9);
    reader_put(path, O_TRUNC, packed.data, packed.size);
    assert_int_equal(count_until_failure("damaged"), 10);
    nl_buffer_free(&packed);
}

static void short_files_are_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "(", "\x28\xb5", "PQ", "\x28\xb5\x2f"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        reader_put(path, O_TRUNC, texts[i], strlen(texts[i]));
        nl_reader *reader = reader_open_log(path, false, false);
        expect_status(reader, NL_END);
        assert_int_equal(nl_reader_get_stats(reader)->bytes, strlen(texts[i]));
        assert_int_equal(nl_reader_get_stats(reader)->malformed, i >= 2);
        nl_reader_close(reader);
    }
}

static void reads_a_pipe_without_waiting(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    nl_reader *reader = reader_open_log(path, false, true); /* no process has opened it for writing */
    expect_status(reader, NL_AGAIN);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    expect_status(reader, NL_AGAIN);
    nl_buffer text = lines(0, 3);
    assert_int_equal(write(fd, text.data, text.size - 5), text.size - 5);
    expect_lines(reader, 0, 2);
    expect_status(reader, NL_AGAIN);
    assert_int_equal(write(fd, text.data + text.size - 5, 5), 5);
    expect_lines(reader, 2, 3);
    expect_status(reader, NL_AGAIN);
    close(fd);
    expect_status(reader, NL_END);
    nl_reader_close(reader);
    nl_buffer_free(&text);
}

static void reads_standard_input(void **state)
{
    (void)state;
    put_lines(path, 0, 0, 10);
    int saved = dup(STDIN_FILENO), fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    nl_reader *reader = reader_open_log("-", false, false);
    assert_true(nl_reader_size(reader) > 0);
    expect_lines(reader, 0, 10);
    expect_status(reader, NL_END);
    nl_reader_close(reader);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* the reader does not close it */
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
    close(fd);
}

static void follows_a_file_through_its_life(void **state)
{
    (void)state;
    int before = open_descriptors();
    nl_reader *reader = reader_open_log(path, true, true); /* it does not exist yet */
    expect_status(reader, NL_AGAIN);
    put_lines(path, 0, 0, 3);
    expect_lines(reader, 0, 3);
    expect_status(reader, NL_AGAIN);
    /* Half a record is not returned until the rest arrives. */
    reader_put(path, O_APPEND, "DATE=20000330112320 N=", 22);
    expect_status(reader, NL_AGAIN);
    reader_put(path, O_APPEND, "3\n", 2);
    expect_lines(reader, 3, 4);
    /* The file is renamed, extended a little, and replaced: all records arrive, in order. */
    assert_int_equal(rename(path, other_path), 0);
    expect_status(reader, NL_AGAIN);
    put_lines(other_path, O_APPEND, 4, 6);
    put_lines(path, 0, 6, 8);
    expect_lines(reader, 4, 8);
    expect_status(reader, NL_AGAIN);
    /* Truncated. */
    put_lines(path, O_TRUNC, 8, 9);
    expect_lines(reader, 8, 9);
    /* The old file ends without a newline: its last record is returned, and marked. */
    reader_put(path, O_APPEND, "DATE=20000330112320 N=9", 23);
    expect_status(reader, NL_AGAIN);
    assert_int_equal(unlink(path), 0);
    expect_status(reader, NL_AGAIN);
    put_lines(path, 0, 10, 11);
    expect_lines(reader, 9, 11);
    assert_int_equal(nl_reader_get_stats(reader)->unterminated, 1);
    assert_int_equal(nl_reader_get_stats(reader)->malformed, 0);
    nl_reader_close(reader);
    assert_int_equal(open_descriptors(), before);
}

static void follows_what_is_compressed(void **state)
{
    (void)state;
    nl_buffer packed = {0};
    compress(0, 100, &packed);
    size_t first = packed.size;
    compress(100, 200, &packed);
    reader_put(path, 0, packed.data, 2); /* less than the magic number of the frame */
    nl_reader *reader = reader_open_log(path, true, true);
    expect_status(reader, NL_AGAIN);
    reader_put(path, O_APPEND, packed.data + 2, first - 2 + 7);
    expect_lines(reader, 0, 100);
    expect_status(reader, NL_AGAIN);
    reader_put(path, O_APPEND, packed.data + first + 7, packed.size - first - 7);
    expect_lines(reader, 100, 200);
    expect_status(reader, NL_AGAIN);
    /* Replaced by an uncompressed file. */
    assert_int_equal(unlink(path), 0);
    put_lines(path, 0, 200, 201);
    expect_lines(reader, 200, 201);
    nl_reader_close(reader);
    nl_buffer_free(&packed);
}

/* Writes blocks of ten records each. The blocks are a second apart. */
static void put_blocks(int count)
{
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB});
    nl_record *record = nl_record_new();
    nl_buffer out = {0};
    for (int i = 0; i < count; i++) {
        nl_record_set_time(record, i * NL_NS_PER_SECOND);
        assert_int_equal(nl_encoder_put(encoder, record), NL_OK);
        if (i % 10 == 9)
            nl_encoder_finish(encoder, &out);
    }
    reader_put(path, O_TRUNC, out.data, out.size);
    nl_buffer_free(&out);
    nl_record_free(record);
    nl_encoder_free(encoder);
}

static void seeks_a_time_by_headers(void **state)
{
    (void)state;
    put_blocks(100);
    for (int from = -5; from < 110; from++) {
        nl_reader *reader = nl_reader_open(path, NULL);
        assert_int_equal(nl_reader_seek(reader, from * NL_NS_PER_SECOND), NL_OK);
        const nl_record *record;
        nl_status status = nl_reader_next(reader, &record);
        assert_int_equal(status, from < 100 ? NL_OK : NL_END);
        if (status == NL_OK)
            assert_int_equal(record->time_ns / NL_NS_PER_SECOND, from < 0 ? 0 : from / 10 * 10);
        while (nl_reader_next(reader, &record) == NL_OK)
            ;
        assert_int_equal(nl_reader_position(reader), nl_reader_size(reader));
        nl_reader_close(reader);
    }
    put_lines(path, O_TRUNC, 0, 3);
    nl_reader *reader = nl_reader_open(path, NULL);
    assert_int_equal(nl_reader_seek(reader, INT64_MAX), NL_OK);
    expect_lines(reader, 0, 3);
    nl_reader_close(reader);
}

/* A non-blocking reader processes some of many blocks per call, with the same result. */
static void seeks_step_by_step(void **state)
{
    (void)state;
    enum { RECORDS = 20000 };
    put_blocks(RECORDS);
    nl_reader *reader = reader_open_log(path, true, true);
    const int64_t from_ns = (RECORDS - 15) * NL_NS_PER_SECOND;
    nl_status status;
    unsigned steps = 1;
    for (; (status = nl_reader_seek(reader, from_ns)) == NL_AGAIN; steps++)
        assert_int_equal(nl_reader_position(reader), 0);
    assert_int_equal(status, NL_OK);
    assert_in_range(steps, 3, 100);
    const nl_record *record;
    assert_int_equal(nl_reader_next(reader, &record), NL_OK);
    assert_int_equal(record->time_ns / NL_NS_PER_SECOND, RECORDS - 20);
    nl_reader_close(reader);
}

enum { APPENDED = 2000 };

static atomic_int had; /* records that the reader has returned */

/*
 * Appends records, and sometimes renames the file, as log rotation does. Waits until the reader has opened the new
 * file, because a reader does not notice a file that exists only for a moment.
 */
static void *append_and_rotate(void *unused)
{
    for (int i = 0; i < APPENDED; i++) {
        char line[100];
        int size = snprintf(line, sizeof line, LINE, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, line, (size_t)size) != size)
            return "could not write";
        close(fd);
        if (i % 20 == 0)
            usleep(1000);
        if (i % 500 != 450)
            continue;
        for (int tries = 0; atomic_load(&had) <= i - 100; tries++, usleep(10000))
            if (tries == 1000)
                return "the reader does not follow";
        rename(path, other_path);
    }
    return unused;
}

static void waits_for_a_log_that_grows(void **state)
{
    (void)state;
    pthread_t writer;
    nl_reader *reader = reader_open_log(path, true, false);
    assert_int_equal(pthread_create(&writer, NULL, append_and_rotate, NULL), 0);
    for (int i = 0; i < APPENDED; i++) {
        expect_lines(reader, i, i + 1);
        atomic_store(&had, i + 1);
    }
    void *problem;
    pthread_join(writer, &problem);
    assert_null(problem);
    nl_reader_close(reader);
}

static void *append_late(void *unused)
{
    usleep(300000);
    put_lines(path, O_APPEND, 1, 2);
    return unused;
}

static int64_t thread_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * NL_NS_PER_SECOND + used.tv_nsec;
}

static void waits_without_spinning(void **state)
{
    (void)state;
    put_lines(path, 0, 0, 1);
    nl_reader *reader = reader_open_log(path, true, false);
    expect_lines(reader, 0, 1);
    pthread_t writer;
    int64_t before_ns = thread_cpu_ns();
    assert_int_equal(pthread_create(&writer, NULL, append_late, NULL), 0);
    expect_lines(reader, 1, 2);
    assert_true(thread_cpu_ns() - before_ns < 100000000);
    pthread_join(writer, NULL);
    nl_reader_close(reader);
}

/* Programs decide by the error code how to treat an unreadable log. */
static void failures_have_codes(void **state)
{
    (void)state;
    char cut[120], socket_url[120], option[120];
    snprintf(cut, sizeof cut, "%s.zst", path);
    snprintf(socket_url, sizeof socket_url, "unix:%s", path);
    snprintf(option, sizeof option, "file:%s?colour=red", path);
    put_lines(path, 0, 0, 10);
    reader_put(cut, 0, "\x28\xb5\x2f\xfd", 4);
    const struct {
        const char *url;
        nl_error_code code;
    } cases[] = {
        {"/tmp/no/such/file", NL_ERROR_NOT_FOUND},
        {"memory:nothing-was-written-there", NL_ERROR_NOT_FOUND},
        {"x-netlog://127.0.0.1:1", NL_ERROR_UNREACHABLE},
        {socket_url, NL_ERROR_UNREACHABLE},
        {"x-syslog://", NL_ERROR_UNSUPPORTED},
        {"gopher://host", NL_ERROR_UNSUPPORTED},
        {"x-netlog://host:port", NL_ERROR_INVALID},
        {option, NL_ERROR_INVALID},
        {cut, NL_ERROR_INVALID},
        {folder, NL_ERROR_SYSTEM},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const nl_record *record;
        nl_error_clear();
        nl_reader *reader = nl_reader_open(cases[i].url, NULL);
        nl_status status = reader != NULL ? nl_reader_next(reader, &record) : NL_FAILED;
        if (status != NL_FAILED || nl_error_get_code() != cases[i].code)
            fail_msg("%s: status %d, code %d: %s", cases[i].url, status, nl_error_get_code(), nl_error_message());
        nl_reader_close(reader);
    }
    unlink(cut);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(failures_have_codes),        IN_FOLDER(seeks_a_time_by_headers),
        IN_FOLDER(seeks_step_by_step),         IN_FOLDER(reads_a_file_and_says_how_far),
        IN_FOLDER(says_why_it_cannot_open),    IN_FOLDER(reads_memory),
        IN_FOLDER(reads_compressed_frames),    IN_FOLDER(keeps_what_came_before_damage),
        IN_FOLDER(short_files_are_text),       IN_FOLDER(reads_a_pipe_without_waiting),
        IN_FOLDER(reads_standard_input),       IN_FOLDER(follows_a_file_through_its_life),
        IN_FOLDER(follows_what_is_compressed), IN_FOLDER(waits_for_a_log_that_grows),
        IN_FOLDER(waits_without_spinning),
    };
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
