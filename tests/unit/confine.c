/* Tests what a confined process can no longer do. Each test runs in a child. */
#include "config.h"

#include "service/confine.h"
#include "service/confine_calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char inside[] = "/tmp/netlogger-confine-XXXXXX", outside[] = "/tmp/netlogger-elsewhere-XXXXXX";

/* Ends the child with the line's number as the status. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, strerror(errno));                       \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Returns whether the call fails with that error. */
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
    FILE *status = fopen("/proc/thread-self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        found = found || strcmp(line, "Seccomp:\t2\n") == 0;
    if (status != NULL)
        fclose(status);
    return found;
}

static void check_calls_that_no_daemon_makes(void)
{
    char *const arguments[] = {(char *)"true", NULL};
    CHECK(fails(execv("/bin/true", arguments), ENOSYS));
    CHECK(fails(setuid(getuid()), ENOSYS));
    CHECK(fails(syscall(SYS_unshare, 0), ENOSYS));
    CHECK(fails(syscall(SYS_keyctl, 0, 0, 0, 0, 0), ENOSYS));
    CHECK(fails(syscall(SYS_userfaultfd, 0), ENOSYS));
    CHECK(fails(syscall(SYS_bpf, 0, NULL, 0), ENOSYS));
    CHECK(fails(syscall(SYS_init_module, NULL, 0, NULL), ENOSYS));
    CHECK(fails(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), ENOSYS));
    CHECK(fails(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS));
    CHECK(fails(syscall(SYS_memfd_create, "x", 0), ENOSYS));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(fails(ptrace(PTRACE_TRACEME, 0, NULL, NULL), ENOSYS));
    CHECK(fails(fork(), EPERM));
#endif
}

static void check_arguments(void)
{
    CHECK(fails(socket(AF_PACKET, SOCK_RAW, 0), EPERM));
    CHECK(fails(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM));
    CHECK(fails(socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT), EPERM));
    CHECK(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP) >= 0);
    CHECK(socket(AF_INET6, SOCK_DGRAM, 0) >= 0);
    CHECK(socket(AF_UNIX, SOCK_SEQPACKET, 0) >= 0);
    CHECK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) >= 0);
    CHECK(fails(fcntl(0, F_SETOWN, getpid()), EPERM));
    CHECK(fcntl(0, F_GETFD) >= 0);
    CHECK(fails((long)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EPERM));
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && mprotect(page, 4096, PROT_READ) == 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(fails(mprotect(page, 4096, PROT_READ | PROT_EXEC), EPERM));
    CHECK(fails(kill(getppid(), 0), EPERM));
    CHECK(fails(prctl(PR_SET_DUMPABLE, 1), EPERM));
#endif
    CHECK(kill(getpid(), 0) == 0);
}

static void *run_thread(void *found)
{
    *(bool *)found = is_filtered() && fails(socket(AF_PACKET, SOCK_RAW, 0), EPERM) &&
                     fails(open("/etc/shadow", O_WRONLY | O_CLOEXEC), EACCES);
    return NULL;
}

static void check_files(void)
{
    char from[200], to[200];
    snprintf(from, sizeof from, "%s/a", inside);
    snprintf(to, sizeof to, "%s/b", inside);
    CHECK(create(inside, "a") >= 0 && rename(from, to) == 0 && truncate(to, 0) == 0);
    CHECK(fails(create(outside, "a"), EACCES) && fails(create(outside, "there"), EACCES));
    snprintf(to, sizeof to, "%s/there", outside);
    CHECK(fails(open(to, O_RDONLY | O_CLOEXEC), EACCES));
    CHECK(fails(open("/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES));
    CHECK(fails(create("/dev", "netlogger-confine"), EACCES));
    CHECK(open("/dev/null", O_RDWR | O_CLOEXEC) >= 0);
    CHECK(open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0);
}

static long confine_connect_to(int port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return connect(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (const struct sockaddr *)&address, sizeof address);
}

static bool limits_ports; /* the kernel has this restriction since Linux 6.7 */

static void check_ports(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    CHECK(fails(confine_connect_to(7), EACCES));
    CHECK(confine_connect_to(14830) == 0 || errno == ECONNREFUSED);
    CHECK(fails(bind(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&any, sizeof any), EACCES));
}

/* Each call is reported once, for all arguments. */
static void check_reports(void)
{
    char name[CONFINE_CALL_SIZE];
    bool unshared = false;
    size_t count = 0, sockets = 0;
    for (; confine_next_refused(name); count++) {
        unshared = unshared || strcmp(name, "unshare") == 0;
        sockets += strcmp(name, "socket") == 0;
    }
    CHECK(unshared && sockets == 1 && count > 10 && !confine_next_refused(name));
    CHECK(fails(syscall(SYS_chroot, "/"), ENOSYS) && confine_next_refused(name) && strcmp(name, "chroot") == 0);
}

static void confine_run(void (*function)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        function();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void keep_inside(void)
{
    CHECK(dup2(create(inside, "out"), STDOUT_FILENO) >= 0);
    confine_keep_file("/dev/stdout", CONFINE_WRITE); /* not all of /dev */
    limits_ports = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 4;
    nl_url *url = nl_url_parse("x-netlog://127.0.0.1:14830");
    confine_keep_directory(inside, CONFINE_WRITE);
    /* Resolves a URL as for a collector, but without the rights for resolving host names. */
    CHECK(url != NULL && url->port == 14830 && confine_keep_port(url->port));
    nl_url_free(url);
    CHECK(confine());
}

static void daemon_body(void)
{
    bool alike = false;
    pthread_t thread;
    keep_inside();
    CHECK(is_filtered());
    check_calls_that_no_daemon_makes();
    check_arguments();
    check_files();
    if (limits_ports)
        check_ports();
    CHECK(pthread_create(&thread, NULL, run_thread, &alike) == 0 && pthread_join(thread, NULL) == 0 && alike);
    check_reports();
}

static void test_daemon(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* setuid interrupts all threads, and the filter then ends the sanitizer's thread */
#endif
    (void)state;
    confine_run(daemon_body);
}

static void later_body(void)
{
    char path[200];
    CHECK(chdir(inside) == 0);
    keep_inside();
    snprintf(path, sizeof path, "%s/new/file", inside);
    CHECK(confine_keep_file(path, CONFINE_WRITE) && confine_keep_directory(inside, CONFINE_READ));
    CHECK(!confine_keep_directory(outside, CONFINE_READ) && !confine_keep_file("/etc/x", CONFINE_WRITE));
    CHECK(confine_keep_file("/usr/share/x", CONFINE_READ) && !confine_keep_file("/usr/share/x", CONFINE_WRITE));
    CHECK(confine_keep_port(14830) == true && confine_keep_port(7) == !limits_ports);
    CHECK(!confine_keep_resolver());
    CHECK(confine_keep_file("file", CONFINE_WRITE));
}

static void test_what_is_named_later(void **state)
{
    (void)state;
    confine_run(later_body);
}

static void removed_body(void)
{
    char gone[200];
    snprintf(gone, sizeof gone, "%s/gone", inside);
    CHECK(mkdir(gone, 0700) == 0 && chdir(gone) == 0);
    alarm(20); /* the search for an existing directory ends; afterwards, this call is rejected */
    keep_inside();
    CHECK(rmdir(gone) == 0);
    CHECK(!confine_keep_file("file", CONFINE_WRITE) && !confine_keep_directory("below/it", CONFINE_READ));
}

static void test_removed_current_directory(void **state)
{
    (void)state;
    confine_run(removed_body);
}

static void resolver_body(void)
{
    struct addrinfo *found = NULL;
    CHECK(confine_keep_resolver() && confine());
    CHECK(getaddrinfo("localhost", "80", NULL, &found) == 0 && found != NULL);
    freeaddrinfo(found);
    getaddrinfo("name.invalid", "80", NULL, &found);
    char name[CONFINE_CALL_SIZE];
    bool refused = confine_next_refused(name);
    if (refused)
        fprintf(stderr, "looking up a name needs %s\n", name);
    CHECK(!refused);
}

static void test_names_can_be_looked_up(void **state)
{
    (void)state;
    confine_run(resolver_body);
}

static void programs_body(void)
{
    CHECK(confine_programs() && is_filtered());
    CHECK(syscall(SYS_unshare, 0) == 0 && fails(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM));
    CHECK(system("exit 7") == 7 << 8);
    CHECK(create(outside, "there") >= 0);
}

static void test_process_that_starts_programs(void **state)
{
    (void)state;
    confine_run(programs_body);
}

/* libseccomp has the names of the calls of every processor type. */
static void test_other_processors(void **state)
{
    (void)state;
    static const uint32_t architectures[] = {SCMP_ARCH_X86,   SCMP_ARCH_X86_64,  SCMP_ARCH_ARM,    SCMP_ARCH_AARCH64,
                                             SCMP_ARCH_S390X, SCMP_ARCH_PPC64LE, SCMP_ARCH_RISCV64};
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++)
        assert_true(confine_calls_are_valid(architectures[i]));
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
    snprintf(path, sizeof path, "%s/out", inside);
    unlink(path);
    snprintf(path, sizeof path, "%s/there", outside);
    unlink(path);
    return rmdir(inside) | rmdir(outside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_daemon),
        cmocka_unit_test(test_what_is_named_later),
        cmocka_unit_test(test_removed_current_directory),
        cmocka_unit_test(test_names_can_be_looked_up),
        cmocka_unit_test(test_process_that_starts_programs),
        cmocka_unit_test(test_other_processors),
    };
    return cmocka_run_group_tests(tests, make_directories, remove_directories);
}
