/*
 * netlogd's seals: keys and tags compared with independent results, key files, and crashes between the steps of a seal.
 * tests/program/test_seal.py tests the tampering that --verify detects.
 */
#include "output/seal.h"

#include "base/monotonic.h"
#include "base/error.h"
#include "output/file.h"
#include "output/seal_key.h"
#include "output/verify_seal.h"

#include <openssl/sha.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "under_valgrind.h"

static char folder[] = "/tmp/netlogger-seal-XXXXXX";
static char key_path[sizeof folder + 20], seal_path[sizeof folder + 30], archive[sizeof folder + 20];
static output_options options;

static void seal_run(const char *format, ...) NL_PRINTF(1, 2);
static void seal_run(const char *format, ...)
{
    char command[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    assert_int_equal(system(command), 0);
}

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(key_path, sizeof key_path, "%s/key", folder);
    snprintf(archive, sizeof archive, "%s/archive", folder);
    snprintf(seal_path, sizeof seal_path, "%s/a.seal", archive);
    options = (output_options){.numbered = true, .seal_key = key_path, .seal_ns = INT64_MAX / 2};
    return asprintf(&options.path, "%s/a-{N}.log", archive) > 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    free(options.path);
    seal_run("rm -r %s", folder);
    return 0;
}

static int empty_folder(void **state)
{
    (void)state;
    seal_run("rm -rf %s/* && mkdir %s", folder, archive);
    return 0;
}

static void expect_hex(const unsigned char *data, size_t size, const char *expected)
{
    char text[200] = "";
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", data[i]);
    assert_string_equal(text, expected);
}

/* ---- keys and tags: the answers are those of Python's hmac and hashlib ---- */

static seal_key known_key(void)
{
    seal_key key = {0};
    for (size_t i = 0; i < sizeof key.bytes; i++)
        key.bytes[i] = (unsigned char)i;
    return key;
}

static void test_keys(void **state)
{
    (void)state;
    seal_key key = known_key();
    seal_key_evolve(&key);
    assert_int_equal(key.index, 1);
    expect_hex(key.bytes, sizeof key.bytes, "d8fd5cb8632896753eab1bbebcaae45a33b2f04aace227a7ea23df3308be0f07");
    while (key.index < 1000)
        seal_key_evolve(&key);
    expect_hex(key.bytes, sizeof key.bytes, "748a14be48d57f2d4dae29f32d5abebcb764fe13da70d0d3b6c3baee7ba611c7");
    key = known_key();
    int64_t began_ns = nl_monotonic_ns();
    while (key.index < 35040)
        seal_key_evolve(&key);
    print_message("35040 keys, a year of 15 minutes: %.1f ms\n", (double)(nl_monotonic_ns() - began_ns) / 1e6);
}

static void test_seals(void **state)
{
    (void)state;
    seal_key key = known_key();
    unsigned char previous[SEAL_HASH_SIZE], all[SHA256_DIGEST_LENGTH];
    seal_record record = {.time_ns = -5, .number = 7, .from = 3, .to = 8, .ended = true, .pattern = "a-{N}.log"}, got;
    seal_bytes bytes, read;
    char mark[SEAL_MARK_SIZE];
    memset(previous, 9, sizeof previous);
    seal_key_evolve(&key);
    SHA256((const unsigned char *)"hello", 5, record.digest);
    seal_encode(&record, &key, previous, &bytes);
    assert_int_equal(bytes.size, 129);
    expect_hex(record.tag, sizeof record.tag, "d12dacf6cd5614d72b308f99ba2c06f5d2bd410f7fb38a2006f87f18e5bf3e2e");
    SHA256((const unsigned char *)bytes.data, bytes.size, all);
    expect_hex(all, sizeof all, "15281a8db073e38def39a8e4f5bbd9befbe66a2e6b728db77c9875f1b178ca09");
    seal_mark_encode(&key, mark);
    expect_hex((unsigned char *)mark, sizeof mark,
               "0100000000000000a097b6daef615f90464c2324e4c7251cf3a6f7fe6aedcdd64d2783e39c8a4581");

    assert_true(seal_is_genuine(&bytes, &key, previous));
    for (size_t i = 0; i < bytes.size; i++) {
        seal_bytes altered = bytes;
        altered.data[i] ^= 1;
        assert_false(seal_is_genuine(&altered, &key, previous));
    }
    for (size_t size = 0; size <= bytes.size; size++) {
        FILE *file = fmemopen(bytes.data, size == 0 ? 1 : size, "r");
        assert_int_equal(seal_read(file, &got, &read), size == bytes.size);
        fclose(file);
    }
    assert_memory_equal(&got, &record, sizeof got);
    previous[0] ^= 1;
    assert_false(seal_is_genuine(&bytes, &key, previous));
    seal_key_evolve(&key);
    previous[0] ^= 1;
    assert_false(seal_is_genuine(&bytes, &key, previous));
}

/* ---- key files ---- */

static void expect_no_key(const char *reason)
{
    seal_key key;
    assert_int_equal(seal_key_load(key_path, &key), NL_FAILED);
    if (strstr(nl_error_message(), reason) == NULL)
        fail_msg("%s", nl_error_message());
}

static void test_key_files(void **state)
{
    (void)state;
    char text[SEAL_KEY_TEXT_SIZE + 1], old[SEAL_KEY_TEXT_SIZE];
    static const char zeros[SEAL_KEY_TEXT_SIZE];
    seal_key key, again;
    struct stat status;
    umask(0);
    assert_int_equal(seal_key_create(key_path, text), NL_OK);
    assert_int_equal(seal_key_create(key_path, text), NL_FAILED);
    assert_int_equal(seal_key_load(key_path, &key), NL_OK);
    assert_int_equal(stat(key_path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);

    /* The old key is overwritten, even if a kill has left a new key. */
    seal_run("cp %s %s.new", key_path, key_path);
    snprintf(old, sizeof old, "%s.new", key_path);
    int fd = open(key_path, O_RDONLY), stale = open(old, O_RDONLY);
    assert_true(fd >= 0 && stale >= 0);
    seal_key_evolve(&key);
    assert_int_equal(seal_key_store(key_path, &key), NL_OK);
    assert_int_equal(pread(fd, old, sizeof old, 0), (int)sizeof old);
    assert_memory_equal(old, zeros, sizeof zeros);
    assert_int_equal(pread(stale, old, sizeof old, 0), (int)sizeof old);
    assert_memory_equal(old, zeros, sizeof zeros);
    close(fd);
    close(stale);
    assert_int_equal(seal_key_load(key_path, &again), NL_OK);
    assert_memory_equal(&again, &key, sizeof key);
    assert_int_equal(stat(key_path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    snprintf(old, sizeof old, "%s.new", key_path);
    assert_int_not_equal(access(old, F_OK), 0);

    seal_run("chmod 640 %s", key_path);
    expect_no_key("other users can access the key; run chmod 600");
    if (geteuid() == 0) {
        seal_run("chmod 600 %s; chown 12345 %s", key_path, key_path);
        expect_no_key("belongs to another user");
        seal_run("chown 0 %s", key_path);
    }
    seal_run("chmod 600 %s; mv %s %s.moved; ln -s key.moved %s", key_path, key_path, key_path, key_path);
    expect_no_key("Too many levels of symbolic links");
    seal_run("rm %s; mkfifo -m 600 %s", key_path, key_path);
    expect_no_key("not a regular file");
    for (size_t size = 0; size < SEAL_KEY_TEXT_SIZE - 1; size += 13) {
        seal_run("rm -f %s; head -c %zu %s.moved >%s; chmod 600 %s", key_path, size, key_path, key_path, key_path);
        expect_no_key("not a seal key");
    }
    seal_run("rm %s", key_path);
    expect_no_key("No such file");
}

/* ---- sealing, and crashes between its steps ---- */

static void write_log(seal *s, uint64_t number, const char *text)
{
    char *name = output_file_name(&options, number);
    assert_int_equal(seal_begin_file(s, number), NL_OK);
    FILE *file = fopen(name, "a");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    seal_wrote(s, text, strlen(text));
    free(name);
}

static seal *open_seals(void)
{
    seal *s = seal_open(&options);
    if (s == NULL)
        fail_msg("%s", nl_error_message());
    return s;
}

static seal_key begin_archive(void)
{
    char text[SEAL_KEY_TEXT_SIZE + 1];
    seal_key first;
    assert_int_equal(seal_key_create(key_path, text), NL_OK);
    assert_int_equal(seal_key_load(key_path, &first), NL_OK);
    return first;
}

static void test_archive(void **state)
{
    (void)state;
    seal_key first = begin_archive(), key;
    seal *s = open_seals();
    assert_true(verify_seals(archive, &first, 0));
    write_log(s, 1, "one ");
    assert_int_equal(seal_write(s, false), NL_OK);
    assert_int_equal(seal_write(s, false), NL_OK);
    write_log(s, 1, "two");
    assert_true(verify_seals(archive, &first, 0));
    assert_int_equal(seal_write(s, true), NL_OK);
    assert_int_equal(seal_write(s, true), NL_OK);
    write_log(s, 2, "three");
    assert_int_equal(seal_write(s, true), NL_OK);
    assert_true(verify_seals(archive, &first, 0));
    seal_close(s);
    assert_int_equal(seal_key_load(key_path, &key), NL_OK);
    assert_int_equal(key.index, 6); /* the first seal, seals that name two files, and seals of three ranges */

    /* Another archive cannot use the key, and this archive cannot use an older key. */
    output_options other = options;
    assert_true(asprintf(&other.path, "%s/b-{N}.log", archive) > 0);
    assert_null(seal_open(&other));
    free(other.path);
    assert_non_null(strstr(nl_error_message(), "seal 1 of 6 is missing or damaged"));
    seal_run("rm %s/b.seal", archive);
    assert_int_equal(seal_key_store(key_path, &first), NL_OK);
    assert_null(seal_open(&options));
    assert_non_null(strstr(nl_error_message(), "is older than these seals"));
}

/*
 * A kill leaves the seal file and the key in the state between two steps. The next netlogd continues from each of these
 * states. The archive never looks as if it was altered.
 */
static void test_crashes(void **state)
{
    (void)state;
    seal_key first = begin_archive();
    seal *s = open_seals();
    write_log(s, 1, "one ");
    assert_int_equal(seal_write(s, false), NL_OK);
    write_log(s, 1, "two");
    seal_run("cp %s %s/before; cp %s %s/key.before", seal_path, folder, key_path, folder);
    assert_int_equal(seal_write(s, false), NL_OK);
    seal_close(s);
    seal_run("cp %s %s/after; cp %s %s/key.after", seal_path, folder, key_path, folder);
    struct stat before, after;
    char path[sizeof folder + 20];
    snprintf(path, sizeof path, "%s/before", folder);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(stat(seal_path, &after), 0);

    /* A part of the second seal was written, but not its mark. */
    const long step = times_here(10) < 10 ? 7 : 1;
    for (long cut = after.st_size; cut >= before.st_size; cut -= step) {
        seal_run("cp %s/before %s; tail -c +%ld %s/after | head -c %ld >>%s; cp %s/key.before %s", folder, seal_path,
                 (long)before.st_size + 1, folder, cut - (long)before.st_size, seal_path, folder, key_path);
        assert_true(verify_seals(archive, &first, 0));
        seal_close(open_seals());
        assert_true(verify_seals(archive, &first, 0));
    }
    /* The seal was written, but the key was not replaced. */
    seal_run("cp %s/after %s; cp %s/key.before %s", folder, seal_path, folder, key_path);
    assert_true(verify_seals(archive, &first, 0));
    s = open_seals();
    write_log(s, 2, "three");
    assert_int_equal(seal_write(s, true), NL_OK);
    seal_close(s);
    assert_true(verify_seals(archive, &first, 0));

    /* A kill leaves a part of the seal file while netlogd creates the file and uses the first key. */
    for (long size = SEAL_HEAD_SIZE + 2 * 7; size >= 0; size -= step) {
        empty_folder(NULL);
        first = begin_archive();
        seal_run("cp %s %s.first", key_path, key_path);
        seal_close(open_seals());
        seal_run("truncate -s %ld %s; cp %s.first %s", size, seal_path, key_path, key_path);
        seal_close(open_seals());
        assert_true(verify_seals(archive, &first, 0));
    }
}

/* Limits file sizes to the seal file and some bytes more; a part of a write succeeds. */
static void fill_disk(rlim_t more)
{
    struct stat status;
    assert_int_equal(stat(seal_path, &status), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)status.st_size + more, RLIM_INFINITY}), 0);
}

static void empty_disk(void)
{
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
}

/* On a full disk, the seal fails, but the file's data stays: the next attempt succeeds. */
static void test_full_disk(void **state)
{
    (void)state;
    seal_key first = begin_archive();
    seal *s = open_seals();
    write_log(s, 1, "one ");
    seal_run("mv %s/key %s/elsewhere; mkdir -p %s/key.new/in", folder, folder,
             folder); /* the new key cannot be written */
    assert_int_equal(seal_write(s, false), NL_FAILED);
    assert_true(seal_is_due(s));
    assert_true(verify_seals(archive, &first, 0));
    write_log(s, 1, "two");
    assert_int_equal(seal_write(s, false), NL_FAILED);
    seal_run("rm -r %s/key.new; mv %s/elsewhere %s/key", folder, folder, folder);
    assert_int_equal(seal_write(s, true), NL_OK);
    assert_false(seal_is_due(s));
    seal_close(s);
    assert_true(verify_seals(archive, &first, 0));
    seal_close(open_seals());

    /* Like above, but netlogd starts after a kill, and either the seal or the key did not fit on the disk. */
    for (unsigned file = 2; file < 6; file++) {
        s = open_seals();
        write_log(s, file, "three");
        if (file < 5)
            fill_disk(file % 2 == 0 ? 50 : 0);
        else
            seal_run("mkdir -p %s/key.new/in", folder);
        assert_int_equal(seal_write(s, file > 3), NL_FAILED);
        seal_close(s);
        s = open_seals();
        assert_true(seal_is_due(s));
        assert_int_equal(seal_write(s, false), NL_FAILED);
        assert_int_equal(seal_begin_file(s, 9), NL_FAILED);
        assert_true(verify_seals(archive, &first, 0));
        empty_disk();
        seal_run("rm -rf %s/key.new", folder);
        assert_int_equal(seal_write(s, false), NL_OK);
        assert_false(seal_is_due(s));
        seal_close(s);
        assert_true(verify_seals(archive, &first, 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_seals),
        cmocka_unit_test_setup(test_key_files, empty_folder),
        cmocka_unit_test_setup(test_archive, empty_folder),
        cmocka_unit_test_setup(test_crashes, empty_folder),
        cmocka_unit_test_setup(test_full_disk, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
