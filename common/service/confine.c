#include "config.h"

#include "service/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_SECCOMP
#include <seccomp.h>
#endif

/* What headers of before Linux 6.2 lack. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TRACES_ITSELF = 1 }; /* a sanitizer looks for leaks by ptrace */
#else
enum { TRACES_ITSELF = 0 };
#endif

/* The directories that may be written, by their real paths; NULL: Landlock does not hold. */
static char **permitted;
static size_t permitted_count;

/* ---- system calls ---- */

#ifdef HAVE_SECCOMP

/* Nobody here needs these, nor does a program that a daemon starts in the ordinary course of things. */
static const int never[] = {
    SCMP_SYS(acct),
    SCMP_SYS(add_key),
    SCMP_SYS(chroot),
    SCMP_SYS(clock_settime),
    SCMP_SYS(create_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fspick),
    SCMP_SYS(get_kernel_syms),
    SCMP_SYS(init_module),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(ioperm),
    SCMP_SYS(iopl),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(kexec_load),
    SCMP_SYS(keyctl),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(move_mount),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(open_tree),
    SCMP_SYS(pivot_root),
    SCMP_SYS(quotactl),
    SCMP_SYS(reboot),
    SCMP_SYS(request_key),
    SCMP_SYS(setdomainname),
    SCMP_SYS(sethostname),
    SCMP_SYS(settimeofday),
    SCMP_SYS(stime),
    SCMP_SYS(swapoff),
    SCMP_SYS(swapon),
    SCMP_SYS(umount),
    SCMP_SYS(umount2),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(vhangup),
};

/* A daemon that starts no programs does not need these either. */
static const int not_itself[] = {
    SCMP_SYS(bpf),
    SCMP_SYS(capset),
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(kcmp),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
    SCMP_SYS(mount),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(personality),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(setfsgid),
    SCMP_SYS(setfsuid),
    SCMP_SYS(setgid),
    SCMP_SYS(setgroups),
    SCMP_SYS(setns),
    SCMP_SYS(setregid),
    SCMP_SYS(setresgid),
    SCMP_SYS(setresuid),
    SCMP_SYS(setreuid),
    SCMP_SYS(setuid),
    SCMP_SYS(unshare),
};

static bool deny(scmp_filter_ctx filter, const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
        if (result != 0 && result != -EDOM) /* this processor has no such call */
            return false;
    }
    return true;
}

static bool filter_calls(const confine_options *options)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    bool good = filter != NULL && seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
                deny(filter, never, sizeof never / sizeof never[0]);
    if (good && !options->executes)
        good = deny(filter, not_itself, sizeof not_itself / sizeof not_itself[0]) &&
               (TRACES_ITSELF || deny(filter, &(int){SCMP_SYS(ptrace)}, 1));
    good = good && seccomp_load(filter) == 0;
    seccomp_release(filter);
    return good;
}

#else

static bool filter_calls(const confine_options *options)
{
    (void)options;
    return false;
}

#endif

/* ---- files ---- */

static uint64_t writing_rights(int version)
{
    uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                      LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                      LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                      LANDLOCK_ACCESS_FS_MAKE_SYM;
    if (version >= 2)
        rights |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= 3)
        rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
    return rights;
}

/* A directory that is not there cannot be written anyway. */
static bool permit(int rules, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights,
                                              .parent_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (rule.parent_fd < 0)
        return true;
    bool good = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(rule.parent_fd);
    char *real = realpath(path, NULL);
    char **more = realloc(permitted, (permitted_count + 1) * sizeof *more);
    if (more != NULL)
        permitted = more;
    if (more != NULL && real != NULL)
        permitted[permitted_count++] = real;
    else
        free(real);
    return good;
}

static bool limit_files(const confine_options *options)
{
    int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return false;
    uint64_t rights = writing_rights(version);
    struct landlock_ruleset_attr handled = {.handled_access_fs = rights | LANDLOCK_ACCESS_FS_EXECUTE};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    bool good = rules >= 0;
    for (size_t i = 0; i < options->writable_count && good; i++)
        good = permit(rules, options->writable[i], rights);
    good = good && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    if (rules >= 0)
        close(rules);
    if (!good)
        permitted_count = 0;
    return good;
}

bool confine_permits(const char *path)
{
    char parent[PATH_MAX], real[PATH_MAX];
    if (permitted_count == 0 || strlen(path) >= sizeof parent)
        return true;
    strcpy(parent, path);
    /* The nearest directory that is there. */
    while (realpath(*parent != '\0' ? parent : ".", real) == NULL) {
        char *slash = strrchr(parent, '/');
        if (slash == NULL)
            *parent = '\0';
        else
            slash[slash == parent] = '\0';
    }
    for (size_t i = 0; i < permitted_count; i++) {
        size_t size = strlen(permitted[i]);
        if (strncmp(real, permitted[i], size) == 0 && (real[size] == '\0' || real[size] == '/' || size == 1))
            return true;
    }
    return false;
}

/* ---- both ---- */

bool confine(const confine_options *options, char message[CONFINE_MESSAGE])
{
    const char *missing = "";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        snprintf(message, CONFINE_MESSAGE, "not confined: %s", strerror(errno));
        return false;
    }
    if (options->writable != NULL && !limit_files(options))
        missing = "files: this kernel has no Landlock";
    if (!filter_calls(options))
        missing = *missing != '\0' ? "files or system calls: Landlock and seccomp cannot be used"
                                   : "system calls: seccomp cannot be used";
    snprintf(message, CONFINE_MESSAGE, "not confined in its %s", missing);
    return *missing == '\0';
}
