/* Files that replace others when they are complete; with temporary names where /proc has none. */
#include "base/replacement.h"

#include "text_support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/netlogger-test-XXXXXX";
static bool is_named; /* pretend that /proc does not exist, so that temporary files need names */

int access(const char *path, int mode)
{
    if (is_named) {
        errno = ENOENT;
        return -1;
    }
    return faccessat(AT_FDCWD, path, mode, 0);
}

static const char *path_of(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int files(void)
{
    int count = 0;
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (struct dirent *entry; (entry = readdir(all)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

static void put_file(const char *name, const char *text, mode_t mode)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && fchmod(fd, mode) == 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void expect_file(const char *name, const char *text, mode_t mode)
{
    char got[16] = "";
    struct stat status;
    int fd = open(path_of(name), O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    assert_true(read(fd, got, sizeof got - 1) >= 0);
    assert_string_equal(got, text);
    assert_int_equal(status.st_mode & 07777, mode);
    close(fd);
}

static void replace(const char *name, bool keep)
{
    nl_replacement file;
    assert_true(nl_replacement_open(&file, path_of(name)));
    assert_int_equal(write(file.fd, "new", 3), 3);
    if (keep)
        assert_true(nl_replacement_keep(&file));
    nl_replacement_free(&file);
    close(file.fd);
}

static void takes_its_place_when_it_is_whole(void **state)
{
    (void)state;
    umask(022);
    for (int i = 0; i < 2; i++) {
        is_named = i == 1;
        replace("a", false);
        assert_int_equal(files(), 0);
        replace("a", true);
        expect_file("a", "new", 0644);
        static const mode_t modes[] = {0600, 0640, 0664, 0444};
        for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
            put_file("a", "old", modes[m]);
            replace("a", false);
            expect_file("a", "old", modes[m]);
            replace("a", true);
            expect_file("a", "new", modes[m]);
            assert_int_equal(files(), 1);
        }
        unlink(path_of("a"));
        umask(027);
        replace("a", true);
        expect_file("a", "new", 0640);
        umask(022);
        unlink(path_of("a"));
    }
}

static void another_of_its_name_beside_it_stays(void **state)
{
    (void)state;
    char beside[32];
    snprintf(beside, sizeof beside, "a.%ld-0", (long)getpid());
    for (int i = 0; i < 2; i++) {
        is_named = i == 1;
        put_file("a", "old", 0644);
        put_file(beside, "theirs", 0644);
        replace("a", false);
        replace("a", true);
        expect_file("a", "new", 0644);
        expect_file(beside, "theirs", 0644);
        assert_int_equal(files(), 2);
        unlink(path_of(beside));
        unlink(path_of("a"));
    }
}

static void links_and_pipes_stay(void **state)
{
    (void)state;
    is_named = false;
    struct stat status;
    put_file("a", "old", 0600);
    assert_int_equal(symlink("a", path_of("link")), 0);
    replace("link", true);
    assert_true(lstat(path_of("link"), &status) == 0 && S_ISLNK(status.st_mode));
    expect_file("a", "new", 0600);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    int reader = open(path_of("pipe"), O_RDONLY | O_NONBLOCK);
    char got[4] = "";
    replace("pipe", true);
    assert_int_equal(read(reader, got, sizeof got), 3);
    assert_string_equal(got, "new");
    close(reader);
    assert_true(lstat(path_of("pipe"), &status) == 0 && S_ISFIFO(status.st_mode));
    unlink(path_of("pipe"));
    unlink(path_of("link"));
    unlink(path_of("a"));
}

static void what_cannot_be_is_said(void **state)
{
    (void)state;
    nl_replacement file;
    for (int i = 0; i < 2; i++) {
        is_named = i == 1;
        assert_false(nl_replacement_open(&file, path_of("none/a")));
        assert_int_equal(errno, ENOENT);
        assert_null(file.path);
        assert_false(nl_replacement_open(&file, folder));
        assert_int_equal(errno, EISDIR);
    }
}

static void nothing_is_left_when_its_place_is_taken(void **state)
{
    (void)state;
    nl_replacement file;
    for (int i = 0; i < 2; i++) {
        is_named = i == 1;
        assert_true(nl_replacement_open(&file, path_of("a")));
        assert_int_equal(mkdir(path_of("a"), 0700), 0);
        assert_false(nl_replacement_keep(&file));
        assert_int_equal(errno, EISDIR);
        nl_replacement_free(&file);
        close(file.fd);
        assert_int_equal(files(), 1);
        assert_int_equal(rmdir(path_of("a")), 0);
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_its_place_when_it_is_whole),
        cmocka_unit_test(another_of_its_name_beside_it_stays),
        cmocka_unit_test(links_and_pipes_stay),
        cmocka_unit_test(what_cannot_be_is_said),
        cmocka_unit_test(nothing_is_left_when_its_place_is_taken),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
