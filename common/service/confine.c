#include "config.h"

#include "service/confine.h"

#include "transport/log_options.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"
#include "service/confine_calls.h"
#include "transport/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Definitions from linux/landlock.h of Linux 6.12, because the installed headers may be older. */
enum { FS_REFER = 1 << 13, FS_TRUNCATE = 1 << 14, FS_IOCTL_DEV = 1 << 15 };
enum { NET_BIND_TCP = 1 << 0, NET_CONNECT_TCP = 1 << 1, RULE_NET_PORT = 2, SCOPE_SIGNAL = 1 << 1 };

typedef struct ruleset_rights {
    uint64_t files, network, scoped;
} ruleset_rights;

typedef struct port_rule {
    uint64_t allowed, port;
} port_rule;

enum {
    FILE_READ = LANDLOCK_ACCESS_FS_READ_FILE,
    FILE_WRITE = FILE_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE,
    DIRECTORY_READ = FILE_READ | LANDLOCK_ACCESS_FS_READ_DIR,
    DIRECTORY_WRITE = DIRECTORY_READ | FILE_WRITE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                      LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                      LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | FS_REFER,
    EVERYTHING = DIRECTORY_WRITE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                 LANDLOCK_ACCESS_FS_MAKE_BLOCK | FS_IOCTL_DEV
};

typedef struct kept_path {
    char *path; /* the real path, after confine() */
    confine_right right;
} kept_path;

static kept_path *paths;
static size_t path_count;
static uint64_t ports[64];
static size_t port_count;
static bool keeps_any_port;
static bool holds, limits_ports; /* holds: Landlock is in effect; limits_ports: it also limits ports */

/* ---- rights to keep ---- */

static void add_path(const char *path, confine_right right)
{
    paths = nl_memory_check(realloc(paths, (path_count + 1) * sizeof *paths));
    paths[path_count++] = (kept_path){program_copy(path), right};
}

/*
 * Sets `real` to the path, or to the nearest existing directory above it, without symbolic links. Returns false if the
 * path is too long, or in a directory that was removed.
 */
static bool find_existing(const char *path, char real[PATH_MAX])
{
    char parent[PATH_MAX];
    if (strlen(path) >= sizeof parent)
        return false;
    strcpy(parent, path);
    while (realpath(*parent != '\0' ? parent : ".", real) == NULL) {
        char *slash = strrchr(parent, '/');
        if (*parent == '\0' || strcmp(parent, "/") == 0)
            return false;
        if (slash == NULL)
            *parent = '\0';
        else
            slash[slash == parent] = '\0';
    }
    return true;
}

static bool is_permitted(const char *path, confine_right right)
{
    char real[PATH_MAX];
    if (!find_existing(path, real))
        return false;
    for (size_t i = 0; i < path_count; i++) {
        size_t size = paths[i].path != NULL ? strlen(paths[i].path) : 0;
        if (size > 0 && paths[i].right >= right && strncmp(real, paths[i].path, size) == 0 &&
            (real[size] == '\0' || real[size] == '/' || size == 1))
            return true;
    }
    return false;
}

static bool confine_refuse(const char *what)
{
    return nl_error_false(NL_ERROR_PERMISSION,
                          "%s: a running daemon can use only the directories and ports that its configuration named at "
                          "the start; restart the daemon (see --confine)",
                          what);
}

bool confine_keep_directory(const char *path, confine_right right)
{
    if (holds)
        return is_permitted(path, right) || confine_refuse(path);
    add_path(path, right);
    return true;
}

/*
 * Keeps access to the directory of a path. If the path is a device or pipe, keeps access only to the device or pipe
 * itself.
 */
static void add_place(const char *path, confine_right right)
{
    struct stat status;
    char copy[PATH_MAX];
    if (stat(path, &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode) || S_ISFIFO(status.st_mode)))
        add_path(path, right);
    else if (snprintf(copy, sizeof copy, "%s", path) < (int)sizeof copy)
        add_path(dirname(copy), right);
}

bool confine_keep_file(const char *path, confine_right right)
{
    char real[PATH_MAX];
    if (nl_path_descriptor(path) >= 0) /* the path names an open descriptor */
        return true;
    if (holds)
        return is_permitted(path, right) || confine_refuse(path);
    add_place(path, right);
    if (realpath(path, real) != NULL)
        add_place(real, right);
    return true;
}

bool confine_keep_port(uint16_t port)
{
    for (size_t i = 0; i < port_count; i++)
        if (ports[i] == port)
            return true;
    if (holds)
        return keeps_any_port || !limits_ports || confine_refuse("TCP port");
    keeps_any_port = keeps_any_port || port_count == sizeof ports / sizeof ports[0];
    if (!keeps_any_port)
        ports[port_count++] = port;
    return true;
}

bool confine_keep_any_port(void)
{
    if (holds)
        return keeps_any_port || !limits_ports || confine_refuse("TCP port");
    return keeps_any_port = true;
}

bool confine_keep_resolver(void)
{
    enum { DNS_PORT = 53 };
    return confine_keep_port(DNS_PORT) && confine_keep_file("/etc/resolv.conf", CONFINE_READ) &&
           (holds || confine_keep_directory("/var/lib/sss", CONFINE_READ));
}

bool confine_keep_files_of(const nl_url *url)
{
    static const char *const files[] = {"ca", "cert", "key", "crl", "creds", "password_file", "activation"};
    const char *spool = nl_url_option_value(url, "spool"), *backup = nl_url_option_value(url, "backup");
    bool good = spool == NULL || confine_keep_directory(spool, CONFINE_WRITE);
    for (size_t i = 0; i < sizeof files / sizeof files[0] && good; i++) {
        const char *path = nl_url_option_value(url, files[i]);
        good = path == NULL || confine_keep_file(path, CONFINE_READ);
    }
    nl_url *second = backup != NULL ? nl_url_parse(backup) : NULL;
    good = good && (second == NULL || confine_keep_url(second));
    nl_url_free(second);
    return good;
}

bool confine_keep_url(const nl_url *url)
{
    bool good = confine_keep_files_of(url);
    if (url->scheme == NL_SCHEME_FILE && !nl_url_is_of_process(url))
        good = good && confine_keep_file(url->path, CONFINE_WRITE);
    if (url->scheme == NL_SCHEME_NETLOG || url->scheme == NL_SCHEME_NETLOGS || url->scheme == NL_SCHEME_UDP)
        good = good && confine_keep_resolver() && confine_keep_port(url->port);
    if (url->scheme == NL_SCHEME_NATS) /* a NATS server may name other servers */
        good = good && confine_keep_resolver() && confine_keep_any_port();
    return good;
}

/* Keeps the rights that libc and all daemons need. */
static void add_system(void)
{
    static const char *const readable[] = {"/usr", "/lib", "/lib32", "/lib64", "/proc", "/sys/devices/system"};
    static const char *const writable[] = {"/dev/null", "/dev/shm", "/run/chrony"};
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++)
        add_path(readable[i], CONFINE_READ);
    for (size_t i = 0; i < sizeof writable / sizeof writable[0]; i++)
        add_path(writable[i], CONFINE_WRITE);
    add_path("/dev/urandom", CONFINE_READ);
    nl_environment environment;
    nl_environment_read(&environment);
    add_path(environment.shm, CONFINE_WRITE);
}

/* ---- Landlock ---- */

/* Returns the rights that a version of the kernel's Landlock interface supports. */
static ruleset_rights rights_of(int version)
{
    return (ruleset_rights){
        .files = EVERYTHING & ~(uint64_t)((version < 2 ? FS_REFER : 0) | (version < 3 ? FS_TRUNCATE : 0) |
                                          (version < 5 ? FS_IOCTL_DEV : 0)),
        .network = version < 4      ? 0
                   : keeps_any_port ? NET_BIND_TCP
                                    : NET_BIND_TCP | NET_CONNECT_TCP,
        .scoped = version < 6 ? 0 : SCOPE_SIGNAL,
    };
}

/* Permits access to a path with Landlock. Ignores a path that does not exist. Returns false on failure. */
static bool permit_path(int ruleset, kept_path *kept, uint64_t handled)
{
    char real[PATH_MAX];
    struct stat status;
    struct landlock_path_beneath_attr rule = {.parent_fd = open(kept->path, O_PATH | O_CLOEXEC)};
    char *copy = rule.parent_fd >= 0 && realpath(kept->path, real) != NULL ? strdup(real) : NULL;
    free(kept->path);
    kept->path = copy;
    if (rule.parent_fd < 0)
        return true;
    bool is_directory = fstat(rule.parent_fd, &status) == 0 && S_ISDIR(status.st_mode);
    rule.allowed_access =
        handled & (uint64_t)(kept->right == CONFINE_WRITE ? is_directory ? DIRECTORY_WRITE : FILE_WRITE
                             : is_directory               ? DIRECTORY_READ
                                                          : FILE_READ);
    bool good = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 ||
                errno == EBADFD; /* the descriptor is a pipe, to which Landlock does not limit access */
    close(rule.parent_fd);
    return good;
}

static bool limit_files_and_ports(void)
{
    int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return false;
    add_system();
    ruleset_rights rights = rights_of(version);
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rights, sizeof rights, 0);
    bool good = ruleset >= 0;
    for (size_t i = 0; i < path_count && good; i++)
        good = permit_path(ruleset, &paths[i], rights.files);
    for (size_t i = 0; i < port_count && good && (rights.network & NET_CONNECT_TCP) != 0; i++)
        good = syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &(port_rule){NET_CONNECT_TCP, ports[i]}, 0) == 0;
    holds = good && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    limits_ports = (rights.network & NET_CONNECT_TCP) != 0;
    if (ruleset >= 0)
        close(ruleset);
    return holds;
}

/* ---- both ---- */

static bool confine_begin(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        return true;
    nl_error_set_errno("not confined");
    return false;
}

bool confine(void)
{
    if (!confine_begin())
        return false;
    bool files = limit_files_and_ports(), calls = confine_calls();
    return (files && calls) || nl_error_false(NL_ERROR_UNSUPPORTED, "not fully confined: %s",
                                              files   ? "seccomp cannot limit system calls"
                                              : calls ? "this kernel has no Landlock to limit access to files"
                                                      : "Landlock and seccomp cannot be used");
}

bool confine_programs(void)
{
    return confine_begin() && (confine_calls_of_programs() ||
                               nl_error_false(NL_ERROR_UNSUPPORTED, "not confined: seccomp cannot limit system calls"));
}

bool confine_report_refused(char name[CONFINE_CALL_SIZE])
{
    if (!confine_next_refused(name))
        return false;
    program_error("system call %s was denied by the confinement of %s; report this defect, and use --confine=no until "
                  "it is fixed",
                  name, program_get_name());
    return true;
}
