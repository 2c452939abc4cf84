/* What a confined process cannot do any more, tried in a child, and in a child of that. */
#include "config.h"

#include "service/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char inside[] = "/tmp/netlogger-confine-XXXXXX", outside[] = "/tmp/netlogger-elsewhere-XXXXXX";

/* Whether it fails with that error. */
static bool fails(long result, int error)
{
    return result == -1 && errno == error;
}

static int create(const char *directory, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
}

static bool is_filtered(void)
{
    char line[200];
    bool found = false;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        found = found || strcmp(line, "Seccomp:\t2\n") == 0;
    if (status != NULL)
        fclose(status);
    return found;
}

static bool lacks_system_calls(void)
{
    char *const arguments[] = {(char *)"true", NULL};
    return is_filtered() && fails(execv("/bin/true", arguments), EPERM) && fails(setuid(getuid()), EPERM) &&
           fails(syscall(SYS_unshare, 0), EPERM) && fails(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM) &&
           fails(syscall(SYS_userfaultfd, 0), EPERM) && fails(syscall(SYS_bpf, 0, NULL, 0), EPERM) &&
           fails(syscall(SYS_init_module, NULL, 0, NULL), EPERM) &&
           fails(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), EPERM);
}

static bool writes_inside_only(void)
{
    char from[200], to[200];
    snprintf(from, sizeof from, "%s/a", inside);
    snprintf(to, sizeof to, "%s/b", inside);
    return create(inside, "a") >= 0 && rename(from, to) == 0 && fails(create(outside, "a"), EACCES) &&
           fails(create(outside, "there"), EACCES) && truncate(to, 0) == 0 &&
           open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0;
}

/* In a child; the number of the first thing that is not as it should be. */
static int try_all(bool executes)
{
    char message[CONFINE_MESSAGE], path[200];
    const char *const writable[] = {inside};
    const confine_options options = {executes, writable, 1};
    if (!confine(&options, message))
        return 1;
    if (executes)
        return is_filtered() && syscall(SYS_unshare, 0) == 0 && fails(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM) ? 0
                                                                                                                 : 2;
    if (!lacks_system_calls() || !writes_inside_only())
        return 3;
#ifndef __SANITIZE_ADDRESS__
    if (!fails(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM))
        return 4;
#endif
    snprintf(path, sizeof path, "%s/new/file", inside);
    if (!confine_permits(path) || !confine_permits(inside) || confine_permits(outside) || confine_permits("/etc/x"))
        return 5;
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(lacks_system_calls() && writes_inside_only() ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 6;
}

static void run(bool executes)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(try_all(executes));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_daemon(void **state)
{
    (void)state;
    run(false);
}

static void test_daemon_that_starts_programs(void **state)
{
    (void)state;
    run(true);
}

static int make_directories(void **state)
{
    (void)state;
    return mkdtemp(inside) == NULL || mkdtemp(outside) == NULL || close(create(outside, "there")) != 0 ? -1 : 0;
}

static int remove_directories(void **state)
{
    (void)state;
    char path[200];
    snprintf(path, sizeof path, "%s/b", inside);
    unlink(path);
    snprintf(path, sizeof path, "%s/there", outside);
    unlink(path);
    return rmdir(inside) | rmdir(outside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_daemon),
                                       cmocka_unit_test(test_daemon_that_starts_programs)};
    return cmocka_run_group_tests(tests, make_directories, remove_directories);
}
