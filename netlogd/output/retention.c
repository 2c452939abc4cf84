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
#define EXCESS_NS (60 * NL_NS_PER_SECOND)   /* minimum time above size_limit before files are deleted unsearched */
#define TURN_NS 20000000 /* maximum time for deleting files, in nanoseconds, before netlogd serves clients again */

static const char *const side_suffixes[] = {NL_VALUE_INDEX_SUFFIX ".new", NL_VALUE_INDEX_SUFFIX, ".index.new", ".index",
                                            ".damaged"};

enum { SIDE_COUNT = sizeof side_suffixes / sizeof side_suffixes[0] };

typedef struct old_file {
    uint64_t number;
    char *name;
    uint64_t size;     /* size of the log file */
    uint64_t all_size; /* size of the log file and its side files */
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

/* Reasons to delete a file, and the options that cause them. REASON_BEGUN: the deletion began before a restart. */
typedef enum deletion_reason { REASON_NONE, REASON_AGE, REASON_SIZE, REASON_BEGUN } deletion_reason;
static const char *const reason_names[] = {"", "keep", "keep_size", "keep_where"};
static const char *const kept_reason_names[] = {"", "keep_where_time", "keep_where_size", ""};

/* Returns the reason to delete a file. `total` is the size of all files. */
static deletion_reason find_reason(const retention *r, const output_options *options, const old_file *file,
                                   uint64_t total)
{
    if (file->number <= r->begun)
        return REASON_BEGUN;
    if (options->keep_size > 0 && total > options->keep_size)
        return REASON_SIZE;
    bool is_old = options->keep_ns > 0 && nl_time_now_ns() - file->written_ns > options->keep_ns;
    return is_old ? REASON_AGE : REASON_NONE;
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
 * file, and deletes the rest. Until the log file is deleted, the thread that creates value indexes may create an index
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

/* Deletes a file. Returns false if it must stay; newer files then also stay. */
static bool retention_delete(retention *r, const old_file *file, const char *reason, nl_log *log)
{
    if (delete_file(file) != NL_OK) {
        report_kept(r, file, nl_error_message(), log);
        return false;
    }
    nl_write(log, NL_USAGE, "Netlogd.FileDeleted", "FILE=%s BYTES=%llu REASON=%s", file->name,
             (unsigned long long)file->size, reason);
    return true;
}

/* ---- keeping requests ---- */

/*
 * Returns whether a file may be deleted: without keep_where=, if its requests are kept, or if the files have become too
 * large. `latest` is the number of the latest file that is due.
 */
static bool is_finished(retention *r, const output_options *options, const old_file *file, uint64_t latest,
                        uint64_t newest, uint64_t total, size_t memory_max, nl_log *log)
{
    if (options->keep_where == NULL || (r->keeper != NULL && keeper_finished(r->keeper) >= file->number))
        return true;
    const int64_t now_ns = nl_monotonic_ns();
    if (r->keeper == NULL)
        r->keeper = keeper_new(options, memory_max);
    char *failure = r->keeper != NULL ? keeper_take_failure(r->keeper) : program_copy(nl_error_message());
    if (failure != NULL) {
        report_kept(r, file, failure, log);
        r->retry_ns = now_ns + INTERVAL_NS;
    }
    free(failure);
    if (r->keeper != NULL && now_ns >= r->retry_ns)
        keeper_request(r->keeper, latest, newest);
    if (r->excess_since_ns == 0 || total <= r->size_limit || now_ns - r->excess_since_ns < EXCESS_NS)
        return false;
    r->unsearched++;
    program_error("%s: netlogd deletes this file without searching it for requests to keep, because all files "
                  "together have become too large",
                  file->name);
    nl_write(log, NL_WARNING, "Netlogd.FileNotSearched", "FILE=%s BYTES=%llu", file->name,
             (unsigned long long)file->size);
    return true;
}

/*
 * Sets the size above which files may be deleted without keeping their requests. When the total size of the files
 * falls, the limit falls with it, and does not rise again.
 */
static void set_size_limit(retention *r, const output_options *options, uint64_t total)
{
    const uint64_t margin = options->keep_size / 4;
    if (r->size_limit == 0 || r->size_limit > total + margin)
        r->size_limit = total + margin;
    if (r->size_limit < options->keep_size + margin)
        r->size_limit = options->keep_size + margin;
    if (options->keep_size == 0 || total <= r->size_limit)
        r->excess_since_ns = 0;
    else if (r->excess_since_ns == 0)
        r->excess_since_ns = nl_monotonic_ns();
}

/*
 * Finds the latest old file that has a kept file, because netlogd was killed before it deleted the old file. `numbers`
 * are the numbers of all files.
 */
static uint64_t find_begun(const output_options *options, const uint64_t *numbers, size_t count)
{
    const output_options kept = output_options_of_kept(options);
    uint64_t *kept_numbers, begun = 0;
    size_t kept_count, at = 0;
    if (output_file_list(&kept, 0, &kept_numbers, &kept_count) != NL_OK)
        return 0;
    for (size_t i = 0; i < kept_count; i++) {
        while (at < count && numbers[at] < kept_numbers[i])
            at++;
        if (at < count && numbers[at] == kept_numbers[i])
            begun = kept_numbers[i];
    }
    free(kept_numbers);
    return begun;
}

/* ---- checking ---- */

/*
 * Describes the files with these numbers below `below`, and adds their sizes to *total. Returns their number. The
 * caller frees the files with free_files.
 */
static size_t describe_files(const output_options *options, const uint64_t *numbers, size_t count, uint64_t below,
                             old_file **files, uint64_t *total)
{
    size_t found = 0;
    *files = nl_memory_check(calloc(count + 1, sizeof **files));
    for (size_t i = 0; i < count && numbers[i] < below; i++)
        if (describe_file(options, numbers[i], &(*files)[found])) {
            *total += (*files)[found].all_size;
            found++;
        }
    return found;
}

static void free_files(old_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(files[i].name);
    free(files);
}

/* Returns the number of the latest file that is due and not needed by subscribers; 0 if no file is due. */
static uint64_t find_latest_due(const retention *r, const output_options *options, const old_file *files, size_t count,
                                uint64_t total, uint64_t first_needed)
{
    uint64_t latest = 0;
    for (size_t i = 0;
         i < count && files[i].number < first_needed && find_reason(r, options, &files[i], total) != REASON_NONE; i++) {
        latest = files[i].number;
        total -= files[i].all_size;
    }
    return latest;
}

/* Deletes kept files that are due. */
static void trim_kept(retention *r, const output_options *options, nl_log *log)
{
    const output_options kept = output_options_of_kept(options);
    const retention none = {0};
    uint64_t *numbers, total = 0;
    size_t count;
    deletion_reason due;
    if ((kept.keep_ns == 0 && kept.keep_size == 0) || output_file_list(&kept, 0, &numbers, &count) != NL_OK)
        return;
    old_file *files;
    count = describe_files(&kept, numbers, count, UINT64_MAX, &files, &total);
    for (size_t i = 0; i < count && (due = find_reason(&none, &kept, &files[i], total)) != REASON_NONE; i++) {
        if (!retention_delete(r, &files[i], kept_reason_names[due], log))
            break;
        total -= files[i].all_size;
    }
    free_files(files, count);
    free(numbers);
}

static bool retention_is_due(const retention *r, const output_options *options, const output_file *newest,
                             int64_t now_ns)
{
    if (r->number != newest->number || now_ns >= r->next_ns)
        return true;
    if (r->waits_for > 0)
        return r->keeper != NULL && (keeper_finished(r->keeper) >= r->waits_for || keeper_has_failed(r->keeper));
    return options->keep_size > 0 && r->reported == 0 && r->old_bytes + newest->size > options->keep_size;
}

void retention_check(retention *r, const output_options *options, const output_file *newest, uint64_t first_needed,
                     size_t memory_max, nl_log *log)
{
    uint64_t *numbers, total = newest->size;
    size_t count, old_count;
    int64_t now_ns = nl_monotonic_ns();
    old_file *files;
    if (!retention_is_due(r, options, newest, now_ns) || output_file_list(options, 0, &numbers, &count) != NL_OK)
        return;
    if (r->number == 0 && count > 0)
        delete_left_index(options, numbers[0]);
    if (r->number == 0)
        r->begun = options->keep_where != NULL ? find_begun(options, numbers, count) : 0;
    old_count = describe_files(options, numbers, count, newest->number, &files, &total);
    const uint64_t latest = find_latest_due(r, options, files, old_count, total, first_needed);
    set_size_limit(r, options, total);
    r->next_ns = now_ns + INTERVAL_NS;
    r->waits_for = 0;
    size_t i = 0;
    deletion_reason due = REASON_NONE;
    for (; i < old_count && (due = find_reason(r, options, &files[i], total)) != REASON_NONE; i++) {
        if (nl_monotonic_ns() - now_ns >= TURN_NS) {
            r->next_ns = 0;
            break;
        }
        if (files[i].number >= first_needed) {
            report_kept(r, &files[i], "a subscriber has not read it yet", log);
            break;
        }
        if (!is_finished(r, options, &files[i], latest, newest->number, total, memory_max, log)) {
            r->waits_for = files[i].number;
            break;
        }
        if (!retention_delete(r, &files[i], reason_names[due], log))
            break;
        r->files++;
        r->bytes += files[i].size;
        total -= files[i].all_size;
    }
    if (due == REASON_NONE || i == old_count)
        r->reported = 0;
    r->number = newest->number;
    r->old_bytes = total - newest->size;
    free_files(files, old_count);
    free(numbers);
    if (options->keep_where != NULL)
        trim_kept(r, options, log);
}

keeper_counts retention_count_kept(const retention *r)
{
    const keeper_counts now = r->keeper != NULL ? keeper_count(r->keeper) : (keeper_counts){0};
    return (keeper_counts){r->kept.requests + now.requests, r->kept.records + now.records};
}

void retention_reset(retention *r)
{
    r->kept = retention_count_kept(r);
    keeper_free(r->keeper);
    r->keeper = NULL;
    r->number = 0;
    r->size_limit = 0;
}
