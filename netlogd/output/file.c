#include "config.h"

#include "file.h"

#include "base/memory.h"
#include "base/monotonic.h"
#include "base/write_some.h"
#include "base/error.h"
#include "program/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PATIENCE_MS = 250 }; /* maximum time to wait for readers of pipes and terminals */

/* ---- names ---- */

/* Returns the length of the part of the pattern before the number. Sets *behind to the part after the number. */
static size_t before_number(const char *pattern, const char **behind)
{
    const char *at = strstr(pattern, OUTPUT_NUMBER);
    *behind = at + strlen(OUTPUT_NUMBER);
    return (size_t)(at - pattern);
}

char *output_file_name(const output_options *options, uint64_t number)
{
    if (!options->numbered)
        return program_copy(options->path != NULL ? options->path : "standard output");
    const char *behind;
    size_t before = before_number(options->path, &behind);
    return program_format("%.*s%06" PRIu64 "%s", (int)before, options->path, number, behind);
}

char *output_file_name_beside(const output_options *options, const char *suffix)
{
    if (options->path == NULL)
        return NULL;
    const char *behind;
    size_t size = strlen(options->path);
    if (options->numbered) {
        size = before_number(options->path, &behind);
        while (size > 0 && strchr("-._", options->path[size - 1]) != NULL)
            size--;
    }
    bool bare = size == 0 || options->path[size - 1] == '/';
    return program_format("%.*s%s%s", (int)size, options->path, bare ? "netlog" : "", suffix);
}

/* Returns the directory of a path. The caller frees it. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? program_copy(".") : program_format("%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* Returns the number in a file name that matches the pattern, or 0 if the name does not match. */
static uint64_t file_number_of(const char *name, const char *before, size_t before_size, const char *behind)
{
    if (strncmp(name, before, before_size) != 0 || name[before_size] < '0' || name[before_size] > '9')
        return 0;
    char *end;
    errno = 0;
    uint64_t number = strtoull(name + before_size, &end, 10);
    return errno == 0 && strcmp(end, behind) == 0 ? number : 0;
}

/* Calls `take` with the number of each existing file. */
static nl_status list_numbers(const output_options *options, void (*take)(void *user, uint64_t number), void *user)
{
    char *directory = directory_of(options->path);
    DIR *entries = opendir(directory);
    if (entries == NULL)
        nl_error_set_errno("open %s", directory);
    free(directory);
    if (entries == NULL)
        return NL_FAILED;
    const char *slash = strrchr(options->path, '/'), *pattern = slash != NULL ? slash + 1 : options->path, *behind;
    size_t before = before_number(pattern, &behind);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        uint64_t number = file_number_of(entry->d_name, pattern, before, behind);
        if (number > 0)
            take(user, number);
    }
    closedir(entries);
    return NL_OK;
}

static void file_find_higher(void *user, uint64_t number)
{
    uint64_t *highest = user;
    *highest = number > *highest ? number : *highest;
}

nl_status output_file_highest(const output_options *options, uint64_t *number)
{
    *number = 0;
    return list_numbers(options, file_find_higher, number);
}

typedef struct number_list {
    uint64_t above;
    uint64_t *at;
    size_t count, capacity;
} number_list;

static void file_list_above(void *user, uint64_t number)
{
    number_list *list = user;
    if (number <= list->above)
        return;
    NL_ARRAY_GROW(list->at, list->count, list->capacity);
    list->at[list->count++] = number;
}

static int by_value(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

void output_file_sort(uint64_t *numbers, size_t count)
{
    if (count > 0)
        qsort(numbers, count, sizeof *numbers, by_value);
}

nl_status output_file_list(const output_options *options, uint64_t above, uint64_t **numbers, size_t *count)
{
    number_list list = {.above = above};
    nl_status status = list_numbers(options, file_list_above, &list);
    output_file_sort(list.at, list.count);
    *numbers = list.at;
    *count = list.count;
    return status;
}

typedef struct removal {
    const output_options *options;
    uint64_t below;
} removal;

static void remove_below(void *user, uint64_t number)
{
    const removal *r = user;
    if (number >= r->below)
        return;
    char *name = output_file_name(r->options, number);
    unlink(name);
    free(name);
}

void output_file_remove_below(const output_options *options, uint64_t number)
{
    list_numbers(options, remove_below, &(removal){options, number});
}

/* ---- the file ---- */

/*
 * Returns the ID of the process that holds a lock on the file, or 0 if it is unknown. Some file systems, such as btrfs,
 * have other device numbers in /proc/locks than in `status`.
 */
static long find_holder(const struct stat *status)
{
    FILE *locks = fopen("/proc/locks", "re");
    char line[256];
    long holder = 0;
    while (locks != NULL && holder == 0 && fgets(line, sizeof line, locks) != NULL) {
        long process;
        unsigned device_major, device_minor;
        unsigned long long inode;
        if (sscanf(line, "%*s FLOCK %*s WRITE %ld %x:%x:%llu", &process, &device_major, &device_minor, &inode) == 4 &&
            inode == status->st_ino && makedev(device_major, device_minor) == status->st_dev)
            holder = process;
    }
    if (locks != NULL)
        fclose(locks);
    return holder;
}

static nl_status set_holder_error(const char *name, const struct stat *status)
{
    long holder = find_holder(status);
    char path[64], program[64] = "another process";
    if (holder <= 0)
        return nl_error_set(NL_ERROR_BUSY, "%s: another process is writing to this file", name);
    if (holder == getpid())
        return nl_error_set(NL_ERROR_SYSTEM, "%s: another output of netlogd is writing to this file under another name",
                            name);
    snprintf(path, sizeof path, "/proc/%ld/comm", holder);
    FILE *comm = fopen(path, "re");
    if (comm != NULL && fgets(program, sizeof program, comm) != NULL)
        program[strcspn(program, "\n")] = '\0';
    if (comm != NULL)
        fclose(comm);
    return nl_error_set(NL_ERROR_BUSY, "%s: %s (process %ld) is writing to this file", name, program, holder);
}

nl_status output_file_lock(int fd, const char *name)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || flock(fd, LOCK_EX | LOCK_NB) == 0 ||
        errno != EWOULDBLOCK)
        return NL_OK;
    return set_holder_error(name, &status);
}

nl_status output_file_claim(const output_options *options, int *claim)
{
    uint64_t number = 0;
    struct stat status;
    *claim = -1;
    if (options->numbered && (output_file_highest(options, &number) != NL_OK || number == 0))
        return NL_OK; /* the file does not exist, or opening it later will report the reason */
    char *name = output_file_name(options, number);
    nl_status result = NL_OK;
    if (stat(name, &status) == 0 &&
        S_ISREG(status.st_mode)) /* do not open a pipe, because closing it would end its reader */
        *claim = open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*claim >= 0 && (result = output_file_lock(*claim, name)) != NL_OK) {
        close(*claim);
        *claim = -1;
    }
    free(name);
    return result;
}

static nl_status examine(output_file *file)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return nl_error_set_errno("open %s", file->name);
    file->plain = S_ISREG(status.st_mode);
    file->inode = status.st_ino;
    file->size = file->plain ? (uint64_t)status.st_size : 0;
    file->opened_ns = nl_monotonic_ns();
    return NL_OK;
}

void output_file_sync_directory(const char *path)
{
    char *directory = directory_of(path);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(directory);
}

nl_status output_file_open(output_file *file, const output_options *options, uint64_t number, bool fresh)
{
    output_file opened = {.fd = STDOUT_FILENO, .number = number, .name = output_file_name(options, number)};
    if (options->path != NULL)
        opened.fd =
            open(opened.name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (fresh ? O_EXCL : 0), 0666);
    nl_status status = opened.fd < 0 ? nl_error_set_open(opened.name) : examine(&opened);
    if (status == NL_OK && options->path != NULL) {
        /* The name still refers to the open file. Release its old lock before locking it again. */
        if (file->fd >= 0 && file->plain && file->inode == opened.inode)
            flock(file->fd, LOCK_UN);
        status = output_file_lock(opened.fd, opened.name);
    }
    if (status != NL_OK) {
        output_file_close(&opened);
        return status;
    }
    if (options->path != NULL && options->sync_ns != OUTPUT_SYNC_NEVER)
        output_file_sync_directory(options->path);
    output_file_close(file);
    *file = opened;
    return NL_OK;
}

static void file_truncate_batch(output_file *file, size_t *written)
{
    off_t end = lseek(file->fd, 0, SEEK_END);
    if (file->plain && *written > 0 && end >= (off_t)*written && ftruncate(file->fd, end - (off_t)*written) == 0)
        *written = 0;
}

/*
 * Writes some bytes and returns their number, or -1 on failure. If the reader of a pipe does not read, fails after
 * PATIENCE_MS. The server then tries again later, as it does when the disk is full. If a pipe has free space, PIPE_BUF
 * bytes can be written without waiting.
 */
static ssize_t write_some(const output_file *file, const char *data, size_t size)
{
    struct pollfd ready = {.fd = file->fd, .events = POLLOUT};
    if (file->plain)
        return nl_write_some(file->fd, data, size);
    int count = poll(&ready, 1, PATIENCE_MS);
    if (count > 0)
        return nl_write_some(file->fd, data, size < PIPE_BUF ? size : PIPE_BUF);
    if (count == 0)
        errno = EAGAIN;
    return -1;
}

nl_status output_file_write(output_file *file, const char *data, size_t size, size_t *written)
{
    nl_status status = NL_OK;
    *written = 0;
    while (*written < size && status == NL_OK) {
        ssize_t put = write_some(file, data + *written, size - *written);
        if (put >= 0) {
            *written += (size_t)put;
            continue;
        }
        bool unread = !file->plain && (errno == EAGAIN || errno == EINTR);
        status =
            unread ? nl_error_set(NL_ERROR_SYSTEM, "write %s: the process at the other end is not reading", file->name)
                   : nl_error_set_errno("write %s", file->name);
        file_truncate_batch(file, written);
    }
    off_t end = file->plain ? lseek(file->fd, 0, SEEK_END) : 0;
    if (end >= 0)
        file->size = (uint64_t)end;
    return status;
}

bool output_file_is_removed(const output_file *file)
{
    struct stat status;
    return file->plain && fstat(file->fd, &status) == 0 && status.st_nlink == 0;
}

nl_status output_file_sync(output_file *file)
{
    if (!file->plain || fdatasync(file->fd) == 0 || errno == EINVAL || errno == EROFS)
        return NL_OK;
    return nl_error_set_errno("fsync %s", file->name);
}

nl_status output_file_close(output_file *file)
{
    nl_status status = NL_OK;
    if (file->fd > STDERR_FILENO && close(file->fd) != 0)
        status = nl_error_set_errno("close %s", file->name);
    free(file->name);
    *file = (output_file){.fd = -1};
    return status;
}
