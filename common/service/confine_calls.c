#include "config.h"

#include "service/confine_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41 /* libc uses this operation to name memory */
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Calls that are allowed with any arguments. libseccomp omits calls that the processor lacks. */
static const char allowed[] =
    /* files */
    "access chmod close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fadvise64_64 "
    "arm_fadvise64_64 fallocate fchmod fchmodat fchown fchown32 fdatasync flock fstat fstat64 fstatat64 fstatfs "
    "fstatfs64 fsync ftruncate ftruncate64 getcwd getdents getdents64 inotify_add_watch inotify_init inotify_init1 "
    "inotify_rm_watch link linkat _llseek lseek lstat lstat64 mkdir mkdirat newfstatat open openat openat2 pipe pipe2 "
    "pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv rename renameat "
    "renameat2 rmdir sendfile sendfile64 splice stat stat64 statfs statfs64 statx sync_file_range sync_file_range2 "
    "truncate truncate64 umask unlink unlinkat utimensat write writev "
    /* memory */
    "brk madvise membarrier mincore mremap msync munmap "
    /* the process and its threads */
    "arch_prctl exit exit_group futex futex_time64 get_robust_list getcpu getegid getegid32 geteuid geteuid32 getgid "
    "getgid32 getgroups getgroups32 getpgid getpgrp getpid getppid getrandom getresgid getresgid32 getresuid "
    "getresuid32 getrlimit getrusage getsid gettid getuid getuid32 rseq sched_getaffinity sched_getparam "
    "sched_getscheduler sched_yield set_robust_list set_thread_area set_tid_address set_tls setrlimit sysinfo times "
    "ugetrlimit uname wait4 waitid "
    /* signals */
    "pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait "
    "rt_sigtimedwait_time64 sigaltstack sigreturn "
    /* time. adjtimex reports the clock's quality; setting the clock needs a privilege */
    "adjtimex clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 "
    "clock_nanosleep clock_nanosleep_time64 gettimeofday nanosleep time timerfd_create timerfd_gettime "
    "timerfd_gettime64 timerfd_settime timerfd_settime64 "
    /* waiting */
    "epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd eventfd2 _newselect poll ppoll ppoll_time64 "
    "pselect6 pselect6_time64 select "
    /* sockets; the table "restricted" limits the address families */
    "accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg recvmmsg_time64 "
    "recvmsg send sendmmsg sendmsg sendto setsockopt shutdown ";

/* Further allowed calls, whose names the oldest supported libseccomp does not have. */
static const char allowed_if_known[] = "epoll_pwait2 fchmodat2 futex_waitv map_shadow_stack mseal utimensat_time64";

#ifdef HAS_SANITIZER
/* More allowed calls, for the leak detector, which traces this process from another process. */
static const char allowed_to_sanitizer[] =
    "clone kill mprotect personality prctl ptrace process_vm_readv sched_setaffinity tgkill tkill";
#else
static const char allowed_to_sanitizer[] = "";
#endif

/*
 * Calls that are allowed only with certain arguments. The filter compares the arguments as 32-bit values under masks.
 */
typedef struct argument {
    unsigned index;
    uint32_t mask, value;
} argument;

typedef struct restricted_call {
    int call;
    argument arguments[3]; /* the last element has a mask of 0 */
} restricted_call;

#define EXACT(index, value)                                                                                            \
    {                                                                                                                  \
        index, 0xffffffff, (uint32_t)(value)                                                                           \
    }
#ifdef __s390__
enum { CLONE_FLAGS_INDEX = 1 };
#else
enum { CLONE_FLAGS_INDEX = 0 };
#endif
enum { SOCKET_TYPE = 0xff /* mask that excludes SOCK_CLOEXEC and SOCK_NONBLOCK */ };

#define INTERNET_SOCKETS(family)                                                                                       \
    {SCMP_SYS(socket), {EXACT(0, family), {1, SOCKET_TYPE, SOCK_STREAM}, EXACT(2, 0)}},                                \
        {SCMP_SYS(socket), {EXACT(0, family), {1, SOCKET_TYPE, SOCK_STREAM}, EXACT(2, IPPROTO_TCP)}},                  \
        {SCMP_SYS(socket), {EXACT(0, family), {1, SOCKET_TYPE, SOCK_DGRAM}, EXACT(2, 0)}},                             \
    {                                                                                                                  \
        SCMP_SYS(socket),                                                                                              \
        {                                                                                                              \
            EXACT(0, family), {1, SOCKET_TYPE, SOCK_DGRAM}, EXACT(2, IPPROTO_UDP)                                      \
        }                                                                                                              \
    }

static const restricted_call restricted[] = {
    {SCMP_SYS(socket), {EXACT(0, AF_UNIX)}},
    {SCMP_SYS(socketpair), {EXACT(0, AF_UNIX)}},
    {SCMP_SYS(socket), {EXACT(0, AF_NETLINK), EXACT(2, NETLINK_ROUTE)}}, /* getaddrinfo reads this host's addresses */
    INTERNET_SOCKETS(AF_INET),
    INTERNET_SOCKETS(AF_INET6),
    {SCMP_SYS(ioctl), {EXACT(1, FIONREAD)}},
    {SCMP_SYS(ioctl), {EXACT(1, FIONBIO)}},
    {SCMP_SYS(ioctl), {EXACT(1, TCGETS)}},
    {SCMP_SYS(ioctl), {EXACT(1, TIOCGWINSZ)}},
    {SCMP_SYS(ioctl), {EXACT(1, SIOCGIFINDEX)}},
    {SCMP_SYS(ioctl), {EXACT(1, SIOCGIFNAME)}},
#define FCNTL(command)                                                                                                 \
    {SCMP_SYS(fcntl), {EXACT(1, command)}},                                                                            \
    {                                                                                                                  \
        SCMP_SYS(fcntl64),                                                                                             \
        {                                                                                                              \
            EXACT(1, command)                                                                                          \
        }                                                                                                              \
    }
    FCNTL(F_DUPFD),
    FCNTL(F_DUPFD_CLOEXEC),
    FCNTL(F_GETFD),
    FCNTL(F_SETFD),
    FCNTL(F_GETFL),
    FCNTL(F_SETFL),
    FCNTL(5),
    FCNTL(6),
    FCNTL(7), /* F_GETLK, F_SETLK and F_SETLKW */
    FCNTL(12),
    FCNTL(13),
    FCNTL(14), /* F_GETLK64, F_SETLK64 and F_SETLKW64 of 32-bit processors */
    FCNTL(F_OFD_GETLK),
    FCNTL(F_OFD_SETLK),
    FCNTL(F_OFD_SETLKW),
#ifndef HAS_SANITIZER
    {SCMP_SYS(prctl), {EXACT(0, PR_SET_NAME)}},
    {SCMP_SYS(prctl), {EXACT(0, PR_GET_NAME)}},
    {SCMP_SYS(prctl), {EXACT(0, PR_SET_TIMERSLACK)}},
    {SCMP_SYS(prctl), {EXACT(0, PR_SET_VMA)}},
    {SCMP_SYS(clone), {{CLONE_FLAGS_INDEX, CLONE_THREAD, CLONE_THREAD}}},
    {SCMP_SYS(mprotect), {{2, PROT_EXEC, 0}}},
#endif
    /* The process may map resolver modules as executable memory, but no memory may be both writable and executable. */
    {SCMP_SYS(mmap), {{2, PROT_EXEC, 0}}},
    {SCMP_SYS(mmap), {{2, PROT_WRITE, 0}}},
    {SCMP_SYS(mmap2), {{2, PROT_EXEC, 0}}},
    {SCMP_SYS(mmap2), {{2, PROT_WRITE, 0}}},
    {SCMP_SYS(prlimit64), {EXACT(0, 0)}},
    {SCMP_SYS(sched_setscheduler), {EXACT(0, 0), EXACT(1, SCHED_IDLE)}},
    {SCMP_SYS(setpriority), {EXACT(0, PRIO_PROCESS), EXACT(1, 0)}}, /* without a privilege, only to lower it */
};

/* Calls that even programs started by a daemon may not make. */
static const char never[] =
    "acct add_key chroot clock_settime create_module delete_module finit_module fsconfig fsmount fsopen fspick "
    "get_kernel_syms init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kexec_file_load "
    "kexec_load keyctl lookup_dcookie mount_setattr move_mount nfsservctl open_by_handle_at open_tree pivot_root "
    "quotactl reboot request_key setdomainname sethostname settimeofday stime swapoff swapon umount umount2 "
    "userfaultfd vhangup ";

/* ---- refused calls ---- */

enum { REFUSED_MAX = 32 };

/* The number of each denied call, plus 1; 0 in unused elements. */
static atomic_int refused[REFUSED_MAX];
static int reported; /* number of reported calls */

/* The register for the result of the denied call, on processors for which this register is known. */
#if defined(__x86_64__)
#define RESULT_OF(context) (context)->uc_mcontext.gregs[REG_RAX]
#elif defined(__i386__)
#define RESULT_OF(context) (context)->uc_mcontext.gregs[REG_EAX]
#elif defined(__aarch64__)
#define RESULT_OF(context) (context)->uc_mcontext.regs[0]
#elif defined(__arm__)
#define RESULT_OF(context) (context)->uc_mcontext.arm_r0
#elif defined(__riscv)
#define RESULT_OF(context) (context)->uc_mcontext.__gregs[REG_A0]
#endif

#ifdef RESULT_OF

static int error_of(int call)
{
    for (size_t i = 0; i < COUNT_OF(restricted); i++)
        if (restricted[i].call == call)
            return EPERM;
    return call == SCMP_SYS(kill) || call == SCMP_SYS(tgkill) ? EPERM : ENOSYS;
}

static void on_refused(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    for (size_t i = 0; i < REFUSED_MAX; i++) {
        int expected = 0;
        if (atomic_compare_exchange_strong(&refused[i], &expected, info->si_syscall + 1) ||
            expected == info->si_syscall + 1)
            break;
    }
    RESULT_OF((ucontext_t *)context) = (unsigned long)-error_of(info->si_syscall);
}

static bool handle_refused(void)
{
    struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    return sigaction(SIGSYS, &action, NULL) == 0;
}

enum { REFUSES = SCMP_ACT_TRAP };

#else

/* On other processors, only the kernel's log reports denied calls. */
static bool handle_refused(void)
{
    return true;
}

enum { REFUSES = SCMP_ACT_ERRNO(ENOSYS) };

#endif

bool confine_next_refused(char name[CONFINE_CALL_SIZE])
{
    int number = reported < REFUSED_MAX ? atomic_load(&refused[reported]) - 1 : -1;
    if (number < 0)
        return false;
    reported++;
    char *found = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    if (found != NULL)
        snprintf(name, CONFINE_CALL_SIZE, "%s", found);
    else
        snprintf(name, CONFINE_CALL_SIZE, "%d", number);
    free(found);
    return true;
}

/* ---- filters ---- */

/* Returns whether a rule was added, or was not necessary because the processor lacks the call. */
static bool is_added(int result)
{
    return result == 0 || result == -EDOM;
}

/*
 * Adds the named calls. If all_known is set, a name that libseccomp does not have is an error. Returns false on
 * failure.
 */
static bool add_calls(scmp_filter_ctx filter, uint32_t action, const char *names, bool all_known)
{
    char name[CONFINE_CALL_SIZE];
    int length;
    bool good = true;
    for (; good && sscanf(names, "%39s%n", name, &length) == 1; names += length) {
        int call = seccomp_syscall_resolve_name(name);
        good = call == __NR_SCMP_ERROR ? !all_known : is_added(seccomp_rule_add(filter, action, call, 0));
    }
    return good;
}

static bool add_restricted(scmp_filter_ctx filter, const restricted_call *r)
{
    struct scmp_arg_cmp comparisons[3];
    unsigned count = 0;
    for (; count < 3 && r->arguments[count].mask != 0; count++) {
        const argument *a = &r->arguments[count];
        comparisons[count] = SCMP_CMP64(a->index, SCMP_CMP_MASKED_EQ, a->mask, a->value);
    }
    return is_added(seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, r->call, count, comparisons));
}

/* Allows signals only to this process. Returns false on failure. */
static bool add_signals(scmp_filter_ctx filter)
{
    return add_restricted(filter, &(restricted_call){SCMP_SYS(kill), {EXACT(0, getpid())}}) &&
           add_restricted(filter, &(restricted_call){SCMP_SYS(tgkill), {EXACT(0, getpid())}});
}

static bool add_all(scmp_filter_ctx filter)
{
    bool good = add_calls(filter, SCMP_ACT_ALLOW, allowed, true) &&
                add_calls(filter, SCMP_ACT_ALLOW, allowed_if_known, false) &&
                add_calls(filter, SCMP_ACT_ALLOW, allowed_to_sanitizer, true) && add_signals(filter);
    for (size_t i = 0; i < COUNT_OF(restricted) && good; i++)
        good = add_restricted(filter, &restricted[i]);
    /*
     * A filter cannot check the flags of clone3, because they are in memory. If clone3 fails with ENOSYS, libc uses
     * clone.
     */
    return good && is_added(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0));
}

bool confine_calls(void)
{
    scmp_filter_ctx filter = seccomp_init((uint32_t)REFUSES);
    bool good = filter != NULL && seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
                seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2) == 0 && add_all(filter) && handle_refused() &&
                seccomp_load(filter) == 0;
    seccomp_release(filter);
    return good;
}

bool confine_calls_of_programs(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    bool good = filter != NULL && add_calls(filter, SCMP_ACT_ERRNO(EPERM), never, true) && seccomp_load(filter) == 0;
    seccomp_release(filter);
    return good;
}

bool confine_calls_are_valid(uint32_t architecture)
{
    scmp_filter_ctx filter = seccomp_init((uint32_t)REFUSES);
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool good = filter != NULL && nothing >= 0;
    if (good && architecture != seccomp_arch_native())
        good = seccomp_arch_remove(filter, SCMP_ARCH_NATIVE) == 0 && seccomp_arch_add(filter, architecture) == 0;
    good = good && add_all(filter) && seccomp_export_bpf(filter, nothing) == 0;
    if (nothing >= 0)
        close(nothing);
    seccomp_release(filter);
    return good;
}
