/*
 * nlrecover delivers the events of killed processes, and the blocks that logs wrote to backup files.
 *
 * The shared memory of a user's processes contains the names of files and collectors. The user can change these names.
 * With --everyone and without --dest, a child process therefore takes the identity of a user before it recovers the
 * events of this user. The only capabilities that nlrecover needs permit the change of a process's identity.
 */
#include "config.h"

#include "base/text.h"
#include "program/program.h"
#include "transport/log_options.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "record/block_read.h"
#include "transport/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    USER_TIME_S = 60, /* time limit in seconds for one user, so that other users need not wait */
    POLL_US = 10000,
    PIECE_SIZE = 64 << 10, /* number of bytes to read from a backup file at once, and to send at once */
};

typedef struct arguments {
    nl_recover_options recover;
    bool quiet;
    uint64_t logs, records;
} arguments;

static const nl_option options[] = {
    {.name = "list",
     .letter = 'l',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, recover.list_only),
     .help = "List the events that can be recovered, and change nothing"},
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     NL_OPTION_MEMBER(arguments, recover.destination),
     .help = "Send events to URL instead of to each log's own destination: a file, x-netlog://HOST, or - for standard "
             "output"},
    {.name = "everyone",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, recover.everyone),
     .help = "Recover the events of the processes of all users, with the rights of each user; requires root"},
    {.name = "quiet",
     .letter = 'q',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, quiet),
     .help = "Print only errors and warnings"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .operands = "[FILE...]",
    .summary = "Deliver the events that killed or crashed processes had logged but not yet sent. With FILE, a file "
               "that the URL option backup= names, send its blocks to the collector of --dest, which stores only the "
               "records that it does not have yet.",
    .notes = "The events wait in shared memory (/dev/shm, or $NETLOGGER_SHM) and in the spools of these processes. The "
             "next program with the same URL delivers the spool of a process that ended normally; nlrecover does not "
             "list it. If a collector is unreachable, nlrecover keeps the events and exits with status 1; run "
             "nlrecover again later. Events that were logged to standard output or error, to a terminal or to memory "
             "require --dest. "
             "netlogd recovers the events of its own user; nlrecover.timer runs nlrecover --everyone for all users.",
};

/* Prints a line about one recovered log. The names in the line may be hostile, because another user may have written
 * them into shared memory. */
static void nlrecover_report(void *user, const nl_recovered *what)
{
    arguments *a = user;
    a->logs++;
    a->records += what->records;
    const char *url = *what->url != '\0' ? what->url : "a destination with a long name";
    const char *destination = a->recover.destination, *plural = nl_plural(what->records);
    bool failed = what->status != NL_OK;
    if (!failed && a->quiet)
        return;
    char *line = failed
                     ? program_format("%s (process %d), %" PRIu64 " event%s for %s: %s", what->prog, what->process,
                                      what->records, plural, url, what->message)
                     : program_format("%s (process %d): %" PRIu64 " event%s %s %s%s%s", what->prog, what->process,
                                      what->records, plural, a->recover.list_only ? "waiting for" : "recovered, for",
                                      url, destination != NULL ? ", to " : "", destination != NULL ? destination : "");
    program_replace_controls(line, strlen(line));
    for (char *at = line; (at = strpbrk(at, "\n\t")) != NULL;)
        *at = '?';
    if (failed)
        program_error("%s", line);
    else
        fprintf(a->recover.list_only ? stdout : stderr, "%s\n", line);
    free(line);
}

static nl_status recover(arguments *a)
{
    nl_status status = nl_recover(&a->recover, nlrecover_report, a);
    if (status != NL_OK && a->logs == 0)
        program_print_error();
    return status;
}

/* ---- all users ---- */

static const char *shared_memory(void)
{
    nl_environment environment;
    nl_environment_read(&environment);
    return environment.shm;
}

/* Lists the users whose processes have directories in shared memory. Returns the number of users. The caller frees
 * *users. */
static size_t list_users(uid_t **users)
{
    size_t count = 0;
    DIR *parent = opendir(shared_memory());
    if (parent == NULL)
        program_fail(PROGRAM_PROBLEM, "open %s: %s", shared_memory(), strerror(errno));
    const struct dirent *entry;
    *users = NULL;
    while ((errno = 0, entry = readdir(parent)) != NULL) {
        unsigned user, process;
        struct stat status;
        if (sscanf(entry->d_name, "netlogger-%u-%u-", &user, &process) != 2 ||
            fstatat(dirfd(parent), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode))
            continue;
        size_t i = 0;
        while (i < count && (*users)[i] != status.st_uid)
            i++;
        if (i < count)
            continue;
        *users = nl_memory_check(reallocarray(*users, count + 1, sizeof **users));
        (*users)[count++] = status.st_uid;
    }
    if (errno != 0)
        program_fail(PROGRAM_PROBLEM, "read %s: %s", shared_memory(), strerror(errno));
    closedir(parent);
    return count;
}

/* Permanently gives this process the rights of a user, and no others. */
static void become(uid_t user)
{
    enum {
        NO_GROUP = 65534
    }; /* group of users without a passwd entry, because a group with the user's ID may belong to other users */
    errno = 0;
    const struct passwd *known = getpwuid(user);
    if (known == NULL && errno != 0 && errno != ENOENT && errno != ESRCH)
        program_fail(PROGRAM_PROBLEM, "cannot look up user %u: %s", (unsigned)user, strerror(errno));
    gid_t group = known != NULL ? known->pw_gid : NO_GROUP;
    char *shared = program_copy(shared_memory()), *home = program_copy(known != NULL ? known->pw_dir : "/");
    bool ok = known != NULL ? initgroups(known->pw_name, group) == 0 : setgroups(0, NULL) == 0;
    if (!ok || setresgid(group, group, group) != 0 || setresuid(user, user, user) != 0 || (user != 0 && setuid(0) == 0))
        program_fail(PROGRAM_PROBLEM, "cannot become user %u: %s", (unsigned)user, strerror(errno));
    clearenv(); /* the child must not use root's settings */
    setenv("NETLOGGER_SHM", shared, 1);
    setenv("HOME", home, 1);
    free(shared);
    free(home);
    if (chdir("/") != 0)
        program_fail(PROGRAM_PROBLEM, "cannot enter /: %s", strerror(errno));
    umask(077);
}

/* Waits for the process that recovers a user's events, and returns whether the process succeeded. Kills the process
 * after USER_TIME_S, because the user may have stopped it with a signal. */
static bool await_user(pid_t child, uid_t user)
{
    int64_t until_ns = nl_monotonic_ns() + USER_TIME_S * NL_NS_PER_SECOND;
    int result;
    pid_t ended;
    while ((ended = waitpid(child, &result, WNOHANG)) == 0 && nl_monotonic_ns() < until_ns)
        usleep(POLL_US);
    if (ended == child)
        return WIFEXITED(result) && WEXITSTATUS(result) == PROGRAM_DONE;
    kill(child, SIGKILL); /* if kill fails, the child ends when the service ends */
    program_error("user %u: stopped the recovery after %d s; the next run tries again", (unsigned)user, USER_TIME_S);
    return false;
}

static nl_status recover_users(arguments *a)
{
    uid_t *users;
    size_t count = list_users(&users);
    nl_status status = NL_OK;
    a->recover.everyone = false;
    for (size_t i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0)
            program_fail(PROGRAM_PROBLEM, "fork: %s", strerror(errno));
        if (child == 0) {
            become(users[i]);
            _exit(recover(a) == NL_OK ? PROGRAM_DONE : PROGRAM_PROBLEM);
        }
        if (!await_user(child, users[i]))
            status = NL_FAILED;
    }
    free(users);
    return status;
}

/* ---- backup files ---- */

/* The unread part of a backup file. */
typedef struct backup_file {
    const char *path;
    int fd;
    nl_buffer bytes;
    bool ended;       /* the whole file was read */
    uint64_t records; /* number of records that were sent */
    uint64_t skipped; /* number of bytes that are not in a block */
} backup_file;

/* Reads more bytes. On failure, prints the error and returns false. */
static bool backup_read(backup_file *f)
{
    ssize_t got = -1;
    if (nl_buffer_reserve(&f->bytes, PIECE_SIZE))
        got = read(f->fd, f->bytes.data + f->bytes.size, PIECE_SIZE);
    if (got < 0)
        program_error("read %s: %s", f->path, strerror(errno));
    f->bytes.size += got > 0 ? (size_t)got : 0;
    f->ended = got == 0;
    return got >= 0;
}

static void backup_remove_bytes(backup_file *f, size_t size)
{
    f->bytes.size -= size;
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): after backup_read, the buffer has memory */
    memmove(f->bytes.data, f->bytes.data + size, f->bytes.size);
}

/* Returns the size of the valid blocks at the start of the unread bytes: up to about PIECE_SIZE bytes, or one larger
 * block. Sets *records to the number of their records. Sets *invalid if no valid block begins after these blocks. */
static size_t backup_find_blocks(const backup_file *f, uint64_t *records, bool *invalid)
{
    size_t at = 0, size = 0;
    nl_block_header header;
    nl_status parsed = NL_OK;
    *records = 0;
    while (at < PIECE_SIZE &&
           (parsed = nl_block_parse_header(f->bytes.data + at, f->bytes.size - at, &header)) == NL_OK) {
        size = nl_block_total_size(&header);
        if (size > f->bytes.size - at || nl_block_verify(&header, f->bytes.data + at) != NL_OK)
            break;
        *records += header.record_count;
        at += size;
    }
    *invalid = at < f->bytes.size && at < PIECE_SIZE &&
               (f->ended || parsed == NL_MALFORMED || (parsed == NL_OK && size <= f->bytes.size - at));
    return at;
}

/* Skips bytes up to the next place at which a block may begin. */
static void backup_skip(backup_file *f)
{
    const char *next =
        f->bytes.size > 1 ? memmem(f->bytes.data + 1, f->bytes.size - 1, NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE) : NULL;
    size_t size = next != NULL ? (size_t)(next - f->bytes.data) : f->bytes.size;
    if (next == NULL && !f->ended && size > NL_BLOCK_MAGIC_SIZE) /* the next bytes may complete the magic number */
        size -= NL_BLOCK_MAGIC_SIZE - 1;
    f->skipped += size;
    backup_remove_bytes(f, size);
}

/* Sends all blocks of the file. On failure, prints the error and returns false. */
static bool backup_send(backup_file *f, nl_writer *writer)
{
    while (!f->ended || f->bytes.size > 0) {
        uint64_t records;
        bool invalid;
        size_t taken, size = backup_find_blocks(f, &records, &invalid);
        if (size > 0) {
            if (nl_writer_put_blocks(writer, f->bytes.data, size, &taken) != NL_OK ||
                nl_writer_flush(writer) != NL_OK) {
                program_print_error();
                return false;
            }
            f->records += records;
            backup_remove_bytes(f, size);
        } else if (invalid) {
            backup_skip(f);
        } else if (!backup_read(f)) {
            return false;
        }
    }
    return true;
}

/* Sends the blocks of a backup file. Returns false if reading the file failed, or if the file contains bytes that are
 * not in whole blocks. */
static bool recover_file(const arguments *a, nl_writer *writer, const char *path)
{
    backup_file f = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (f.fd < 0) {
        program_error("open %s: %s", path, strerror(errno));
        return false;
    }
    bool good = backup_send(&f, writer);
    if (good && f.records == 0) {
        program_error("%s: no blocks; to send text, use nlwrite --dest %s - %s", path, a->recover.destination, path);
        good = false;
    } else if (good && f.skipped > 0) {
        program_error("%s: skipped %" PRIu64 " byte%s outside of whole blocks", path, f.skipped, nl_plural(f.skipped));
        good = false;
    }
    if (f.records > 0 && !a->quiet)
        fprintf(stderr, "%s: %" PRIu64 " event%s sent to %s\n", path, f.records, nl_plural(f.records),
                a->recover.destination);
    nl_buffer_free(&f.bytes);
    close(f.fd);
    return good;
}

static bool recover_files(const arguments *a, char **paths, int count)
{
    nl_url *url = a->recover.destination != NULL ? nl_url_parse(a->recover.destination) : NULL;
    nl_log_options log_options;
    if (url == NULL || !nl_url_is_collector(url))
        options_fail("FILE requires --dest with the URL of a collector");
    if (nl_log_options_read(&log_options, url, false) != NL_OK)
        options_fail("%s", nl_error_message());
    if (log_options.writer.format != NL_FORMAT_NLB)
        options_fail("FILE requires the format nlb; remove format= from the URL");
    nl_url_free(url);
    nl_writer *writer = nl_writer_open(a->recover.destination, &log_options.writer);
    if (writer == NULL)
        program_fail_with_error(PROGRAM_PROBLEM);
    bool good = true;
    for (int i = 0; i < count; i++)
        good = recover_file(a, writer, paths[i]) && good;
    nl_writer_discard(writer); /* backup_send has flushed all blocks or reported the failure */
    return good;
}

int main(int argc, char **argv)
{
    program_start("nlrecover");
    arguments a = {.quiet = false};
    int first = options_parse(&usage, argc, argv, &a);
    if (first < argc && (a.recover.list_only || a.recover.everyone))
        options_fail("FILE cannot be combined with --%s", a.recover.list_only ? "list" : "everyone");
    if (first < argc)
        return program_finish(recover_files(&a, argv + first, argc - first) ? PROGRAM_DONE : PROGRAM_PROBLEM);
    if (a.recover.everyone && geteuid() != 0)
        options_fail("--everyone: only root can recover the processes of other users");
    bool each = a.recover.everyone && a.recover.destination == NULL && !a.recover.list_only;
    nl_status status = each ? recover_users(&a) : recover(&a);
    if (!a.quiet && a.logs == 0 && status == NL_OK && !each)
        fprintf(stderr, "nothing to recover\n");
    return program_finish(status == NL_OK ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
