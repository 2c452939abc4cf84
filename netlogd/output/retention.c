#include "config.h"

#include "retention.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "program/program.h"
#include "reader/value_index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INTERVAL_NS (60 * NL_NS_PER_SECOND) /* maximum time between checks */
#define TURN_NS 20000000 /* maximum time for deleting files, in nanoseconds, before netlogd serves clients again */

static const char *const side_suffixes[] = {NL_VALUE_INDEX_SUFFIX ".new", NL_VALUE_INDEX_SUFFIX, ".index.new", ".index",
                                            ".damaged"};

enum { SIDE_COUNT = sizeof side_suffixes / sizeof side_suffixes[0] };

typedef struct old_file {
    uint64_t number;
    char *name;
    uint64_t size;     /* size of the log file */
    uint64_t all_size; /* including side files */
    int64_t written_ns;
} old_file;

/* ---- finding ---- */

static bool describe_file(const output_options *options, uint64_t number, old_file *file)
{
    struct stat status;
    *file = (old_file){.number = number, .name = output_file_name(options, number)};
    if (lstat(file->name, &status) != 0 || !S_ISREG(status.st_mode)) {
        free(file->name);
        return false;
    }
    file->size = file->all_size = (uint64_t)status.st_size;
    file->written_ns = (int64_t)status.st_mtim.tv_sec * NL_NS_PER_SECOND + status.st_mtim.tv_nsec;
    for (size_t i = 0; i < SIDE_COUNT; i++) {
        char *side = program_format("%s%s", file->name, side_suffixes[i]);
        if (lstat(side, &status) == 0)
            file->all_size += (uint64_t)status.st_size;
        free(side);
    }
    return true;
}

/* Returns the reason to delete a file, or NULL. `total` is the size of all files. */
static const char *find_reason(const output_options *options, const old_file *file, uint64_t total)
{
    if (options->keep_size > 0 && total > options->keep_size)
        return "keep_size";
    return options->keep_ns > 0 && nl_time_now_ns() - file->written_ns > options->keep_ns ? "keep" : NULL;
}

/* ---- deleting ---- */

static nl_status remove_name(const char *name)
{
    return unlink(name) == 0 || errno == ENOENT ? NL_OK : nl_error_set_errno("delete %s", name);
}

static nl_status remove_side(const old_file *file, const char *suffix)
{
    char *side = program_format("%s%s", file->name, suffix);
    nl_status status = remove_name(side);
    free(side);
    return status;
}

/*
 * Deletes the side files first, and the log file last. If netlogd is killed in between, the next netlogd finds the log
 * file, and deletes the rest. Until the log file is deleted, the thread that makes value indexes may create an index
 * again. After that, the thread deletes its index itself (value_file_close). If netlogd is killed before the thread
 * does this, delete_left_index deletes the index.
 */
static nl_status remove_files(const old_file *file)
{
    nl_status status = NL_OK;
    for (size_t i = 0; i < SIDE_COUNT && status == NL_OK; i++)
        status = remove_side(file, side_suffixes[i]);
    if (status == NL_OK)
        status = remove_name(file->name);
    return status == NL_OK ? remove_side(file, NL_VALUE_INDEX_SUFFIX) : status;
}

static nl_status delete_file(const old_file *file)
{
    int fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    nl_status status = fd >= 0 ? output_file_lock(fd, file->name) : NL_OK;
    if (status == NL_OK)
        status = remove_files(file);
    if (fd >= 0)
        close(fd);
    return status;
}

/* Deletes the index of values of a file that a killed netlogd has deleted. `oldest` is the number of the oldest file.
 */
static void delete_left_index(const output_options *options, uint64_t oldest)
{
    old_file file = {.name = oldest > 1 ? output_file_name(options, oldest - 1) : NULL};
    if (file.name != NULL && remove_side(&file, NL_VALUE_INDEX_SUFFIX) != NL_OK)
        program_error("%s", nl_error_message());
    free(file.name);
}

static void report_kept(retention *r, const old_file *file, const char *reason, nl_log *log)
{
    if (r->reported != file->number) {
        program_error("%s: cannot delete this old file: %s", file->name, reason);
        nl_write(log, NL_WARNING, "Netlogd.FileKept", "FILE=%s REASON=%s", file->name, reason);
    }
    r->reported = file->number;
}

/* Deletes a file that is due. Returns false if it must stay; newer files then also stay. */
static bool retention_delete(retention *r, const old_file *file, const char *reason, bool is_needed, nl_log *log)
{
    if (is_needed) {
        report_kept(r, file, "a subscriber has not read it yet", log);
        return false;
    }
    if (delete_file(file) != NL_OK) {
        report_kept(r, file, nl_error_message(), log);
        return false;
    }
    r->files++;
    r->bytes += file->size;
    nl_write(log, NL_USAGE, "Netlogd.FileDeleted", "FILE=%s BYTES=%llu REASON=%s", file->name,
             (unsigned long long)file->size, reason);
    return true;
}

static bool retention_is_due(const retention *r, const output_options *options, const output_file *newest,
                             int64_t now_ns)
{
    return r->number != newest->number || now_ns >= r->next_ns ||
           (options->keep_size > 0 && r->reported == 0 && r->old_bytes + newest->size > options->keep_size);
}

void retention_check(retention *r, const output_options *options, const output_file *newest, uint64_t first_needed,
                     nl_log *log)
{
    uint64_t *numbers, total = newest->size;
    size_t count, old_count = 0;
    int64_t now_ns = nl_monotonic_ns();
    if (!retention_is_due(r, options, newest, now_ns) || output_file_list(options, 0, &numbers, &count) != NL_OK)
        return;
    if (r->number == 0 && count > 0)
        delete_left_index(options, numbers[0]);
    old_file *files = nl_memory_check(calloc(count + 1, sizeof *files));
    for (size_t i = 0; i < count && numbers[i] < newest->number; i++)
        if (describe_file(options, numbers[i], &files[old_count])) {
            total += files[old_count].all_size;
            old_count++;
        }
    r->next_ns = now_ns + INTERVAL_NS;
    size_t i = 0;
    const char *reason = NULL;
    for (; i < old_count && (reason = find_reason(options, &files[i], total)) != NULL; i++) {
        bool late = nl_monotonic_ns() - now_ns >= TURN_NS;
        if (late)
            r->next_ns = 0;
        if (late || !retention_delete(r, &files[i], reason, files[i].number >= first_needed, log))
            break;
        total -= files[i].all_size;
    }
    if (reason == NULL || i == old_count)
        r->reported = 0;
    r->number = newest->number;
    r->old_bytes = total - newest->size;
    for (i = 0; i < old_count; i++)
        free(files[i].name);
    free(files);
    free(numbers);
}

void retention_reset(retention *r)
{
    r->number = 0;
}
