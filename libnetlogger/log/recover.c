#include "config.h"

#include "record/format.h"
#include "log/remains.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/text.h"
#include "reader/decoder.h"
#include "record/block_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BATCH_SIZE = 128 << 10,
    MESSAGE_SIZE = 2048,
    UNFINISHED_S = 60, /* time, in seconds, after which a process has certainly created its directory */
};

/*
 * ---- a destination that replaces the logs' own destinations ----
 *
 * If the log and the destination have the format nlb, the blocks keep their numbers, so that a collector stores records
 * that it already has only once. Otherwise, the records are decoded and written in the destination's format.
 */

typedef struct other_destination {
    nl_destination base;
    nl_writer *writer;
} other_destination;

static nl_status other_decode(nl_writer *writer, const char *data, size_t size)
{
    nl_decoder *decoder = nl_decoder_new(NULL);
    if (decoder == NULL)
        return NL_FAILED;
    nl_decoder_feed(decoder, data, size);
    nl_status status = NL_OK, decoded = NL_OK;
    const nl_record *record;
    while (status == NL_OK && (decoded = nl_decoder_next(decoder, &record)) == NL_OK)
        status = nl_writer_put(writer, record);
    if (decoded == NL_FAILED)
        status = NL_FAILED;
    nl_decoder_free(decoder);
    return status;
}

static nl_status other_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                             size_t *written)
{
    (void)level;
    nl_writer *writer = ((other_destination *)destination)->writer;
    nl_block_header header;
    size_t taken;
    const bool keeps = nl_writer_get_format(writer) == NL_FORMAT_NLB && nl_block_whole_size(data, size, &header) > 0;
    nl_status status = keeps ? nl_writer_put_blocks(writer, data, size, &taken) : other_decode(writer, data, size);
    if (status == NL_OK)
        status = nl_writer_flush(writer);
    *written = status == NL_OK ? size : 0;
    return status;
}

static nl_status other_close(nl_destination *destination, bool keep)
{
    (void)destination, (void)keep; /* all logs share the destination; its owner closes it */
    return NL_OK;
}

static const nl_destination_kind other_kind = {.write = other_write, .close = other_close};

/* ---- one log ---- */

typedef struct recovery {
    nl_recover_options options;
    void (*report)(void *user, const nl_recovered *what);
    void *user;
    other_destination other;
    nl_held_signals held;
    const char *directory; /* name of the directory that is being recovered */
    bool failed;
    bool remedied; /* a report has explained what the user can do with events that cannot be delivered */
} recovery;

/* Returns the number of records in the batch that neither the destination nor the spool has accepted. */
static uint64_t count_batch(const nl_outbox *outbox)
{
    const nl_shared_log *shared = outbox->shared;
    const uint64_t accepted = nl_records_count((nl_format)shared->format, outbox->batch, shared->batch_start);
    return shared->batch_records - (accepted < shared->batch_records ? accepted : shared->batch_records);
}

static uint64_t count_waiting(const nl_remains_log *log)
{
    uint64_t count = count_batch(&log->outbox);
    nl_event_header header;
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next) {
        ring->at = ring->shared->tail & ~NL_TAIL_PINNED;
        ring->end = ring->shared->published;
        for (; nl_ring_event(ring, &header) != NULL; ring->at += header.size)
            count++;
    }
    return count;
}

/*
 * Opens a regular file of this owner for reading and writing. Examines the file before opening it, because the shared
 * memory of another user may name any file, and opening a device can have effects. Returns -1 with errno on failure.
 */
static int open_owned(const char *path, uid_t owner)
{
    struct stat status;
    char again[32];
    int fd = -1, found = open(path, O_PATH | O_CLOEXEC);
    if (found < 0)
        return -1;
    if (fstat(found, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == owner) {
        snprintf(again, sizeof again, "/proc/self/fd/%d", found);
        fd = open(again, O_RDWR | O_CLOEXEC);
    } else {
        errno = EACCES;
    }
    int error = errno;
    close(found);
    errno = error;
    return fd;
}

/* Returns whether a later attempt may succeed, because the error is not a property of the file. */
static bool is_temporary(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO || error == EINTR;
}

/*
 * Opens the file to which the batch was being written; sets *fd to -1 if the destination is not a file or the function
 * cannot open the file. Returns NL_FAILED with the reason if a later attempt may succeed, otherwise NL_OK. For the
 * directory of another user (as root), opens only that user's files, so that the user cannot make root truncate other
 * files.
 */
static nl_status open_file(const nl_shared_log *shared, uid_t owner, int *fd)
{
    *fd = -1;
    if (shared->file_offset == UINT64_MAX)
        return NL_OK;
    const unsigned failures = nl_memory_failures;
    nl_url *url = nl_url_parse(shared->url);
    nl_status status = nl_memory_failures != failures ? NL_FAILED : NL_OK;
    if (url != NULL && url->scheme == NL_SCHEME_FILE) {
        *fd = owner == geteuid() ? open(url->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
                                 : open_owned(url->path, owner);
        if (*fd < 0 && is_temporary(errno))
            status = nl_error_set_errno("open %s", url->path);
    }
    nl_url_free(url);
    return status;
}

/* Removes from the batch what the log's file already contains, and sets the destination. */
static nl_status open_outbox(recovery *r, const nl_remains *remains, nl_remains_log *log)
{
    nl_outbox *outbox = &log->outbox;
    bool other = r->options.destination != NULL;
    int fd;
    if (open_file(outbox->shared, remains->owner, &fd) != NL_OK)
        return NL_FAILED;
    if (fd >= 0) {
        nl_status settled = nl_remains_settle_batch(outbox->shared, outbox->batch, fd, other);
        close(fd);
        if (settled != NL_OK)
            return settled;
    }
    if (other) {
        outbox->destination = &r->other.base;
        return NL_OK;
    }
    nl_log_options options;
    outbox->url = nl_url_parse(outbox->shared->url);
    if (outbox->url != NULL && nl_url_is_of_process(outbox->url))
        return nl_error_set(NL_ERROR_INVALID,
                            "the killed program wrote to its own output or memory, which no longer exists");
    if (outbox->url == NULL || nl_log_options_read(&options, outbox->url, false) != NL_OK)
        return NL_FAILED;
    if (remains->copied) /* root must not deliver the spool of another user; that user's programs do */
        options.spool = NULL;
    log->options = options;
    outbox->options = &log->options;
    outbox->how = (nl_destination_options){.timeout_ms = options.writer.timeout_ms,
                                           .now = true,
                                           .format = (nl_format)outbox->shared->format,
                                           .ident = outbox->shared->prog};
    return NL_OK;
}

/*
 * Moves events from the rings to the batch. Returns NL_OK, or NL_END if no event was left. Returns NL_FAILED with the
 * reason if memory runs out or the batch has no space.
 */
static nl_status recover_take(nl_remains_log *log, nl_drain *drain, nl_buffer *bytes, uint64_t *records)
{
    nl_status status = NL_END;
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next) {
        nl_ring_pin(ring);
        if (ring->at == ring->end) { /* the thread may have had no space to report its last losses */
            nl_ring_report_lost(ring);
            ring->end = ring->shared->published;
        }
    }
    bytes->size = 0;
    uint64_t taken;
    if (nl_drain_take(drain, log->rings, UINT64_MAX, bytes, BATCH_SIZE, &taken) != NL_OK) {
        status = NL_FAILED;
    } else if (bytes->size > 0 && nl_outbox_has_space(&log->outbox, bytes->size)) {
        nl_outbox_commit(&log->outbox, log->rings, bytes, taken);
        *records += taken;
        status = NL_OK;
    } else if (bytes->size > 0) {
        status = nl_error_set(NL_ERROR_LIMIT, "not enough shared memory for the recovery: %s", strerror(ENOSPC));
    }
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        nl_ring_unpin(ring);
    return status;
}

static nl_status send_all(const nl_remains *remains, nl_remains_log *log, uint64_t *records)
{
    nl_shared_log *shared = log->outbox.shared;
    nl_drain drain;
    if (!nl_drain_start(&drain, (nl_format)shared->format, nl_string_of(shared->host), nl_string_of(shared->prog)))
        return NL_FAILED;
    drain.zstd_level = shared->zstd_level;
    drain.one_level = log->outbox.url != NULL && log->outbox.url->scheme == NL_SCHEME_SYSLOG;
    drain.sites.shared = (const nl_shared_sites *)(const void *)remains->sites.memory;
    drain.sites.size = remains->sites.size;
    nl_clock_restore(&drain.clock, shared->clock, shared->slow_clock);
    nl_clock_update(&drain.clock); /* so that times after the last reading can be interpolated */
    nl_buffer bytes = {0};
    *records = count_batch(&log->outbox);
    nl_status status = nl_outbox_send(&log->outbox, drain.level, true);
    while (status == NL_OK && (status = recover_take(log, &drain, &bytes, records)) == NL_OK)
        status = nl_outbox_send(&log->outbox, drain.level, true);
    status = status == NL_END ? NL_OK : status;
    nl_buffer_free(&bytes);
    nl_drain_finish(&drain);
    if (status == NL_OK)
        status = nl_outbox_sync(&log->outbox, true);
    if (status != NL_OK)
        return status;
    if (nl_outbox_is_spooled(&log->outbox))
        return nl_error_prepend("moved to the spool %s", log->options.spool);
    *records += log->outbox.from_spool - log->outbox.to_spool;
    return NL_OK;
}

static void report_log(recovery *r, const nl_recovered *what)
{
    r->failed |= what->status != NL_OK;
    if (r->report == NULL)
        return;
    nl_signals_release(&r->held); /* the program's callback may write, and receives its own signals */
    r->report(r->user, what);
    nl_signals_hold(&r->held);
}

/*
 * Formats the reason for a failure. If later attempts would also fail, adds to the first report what the user can do.
 * The result is in `text`.
 */
static const char *recover_describe_failure(recovery *r, char text[MESSAGE_SIZE])
{
    const char *parent = nl_session_parent();
    if (r->options.destination != NULL || r->remedied)
        snprintf(text, MESSAGE_SIZE, "%s (the events remain in %s/%s)", nl_error_message(), parent, r->directory);
    else
        snprintf(text, MESSAGE_SIZE,
                 "%s (the events remain in %s/%s; to deliver them elsewhere, use nlrecover --dest; to discard them, "
                 "remove this directory)",
                 nl_error_message(), parent, r->directory);
    r->remedied = true;
    return text;
}

static void report_status(recovery *r, const nl_shared_log *shared, uint64_t records, nl_status status, bool spooled)
{
    char text[MESSAGE_SIZE];
    report_log(r, &(nl_recovered){.process = shared->head.process,
                                  .prog = shared->prog,
                                  .url = shared->url,
                                  .records = records,
                                  .status = status,
                                  .message = status == NL_OK ? ""
                                             : spooled       ? nl_error_message()
                                                             : recover_describe_failure(r, text)});
}

/* Reports that the logs of the directory cannot be read now. The next recovery tries again. */
static void report_unreadable(recovery *r)
{
    unsigned user;
    int process = 0;
    char text[MESSAGE_SIZE];
    sscanf(r->directory, "netlogger-%u-%d-", &user, &process);
    report_log(r, &(nl_recovered){.process = process,
                                  .prog = "?",
                                  .url = r->directory,
                                  .status = NL_FAILED,
                                  .message = recover_describe_failure(r, text)});
}

/* Reports a damaged file, which stays in the directory. Its name is the URL in the report. */
static void recover_on_damaged(void *user, const char *name)
{
    recovery *r = user;
    unsigned owner;
    int process = 0;
    char file[MESSAGE_SIZE], text[MESSAGE_SIZE];
    sscanf(r->directory, "netlogger-%u-%d-", &owner, &process);
    snprintf(file, sizeof file, "%s/%s/%s", nl_session_parent(), r->directory, name);
    snprintf(text, sizeof text, "%s; the events in this file cannot be read; to discard them, remove the file",
             nl_error_message());
    report_log(r, &(nl_recovered){.process = process, .prog = "?", .url = file, .status = NL_FAILED, .message = text});
}

/* Returns whether the log has no events and no losses. */
static bool is_log_empty(const nl_remains_log *log, uint64_t records)
{
    bool empty = records == 0;
    for (const nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        empty &= !nl_ring_has_lost(ring);
    return empty;
}

/* Returns whether the log's destination was its process, and no other destination is given. Such a log has no spool. */
static bool is_destination_gone(const recovery *r, const nl_shared_log *shared)
{
    nl_url *url = r->options.destination == NULL ? nl_url_parse(shared->url) : NULL;
    const bool gone = url != NULL && nl_url_is_of_process(url);
    nl_url_free(url);
    return gone;
}

/*
 * Recovers a log. Returns true if the log's files can be removed, because nothing is left to recover. If list_only is
 * set, only reports the log and returns false.
 */
static bool recover_log(recovery *r, const nl_remains *remains, nl_remains_log *log)
{
    nl_shared_log *shared = log->outbox.shared;
    uint64_t records = count_waiting(log);
    if (r->options.list_only) {
        report_status(r, shared, records, NL_OK, false);
        return false;
    }
    if (nl_format_get_info((nl_format)shared->format) ==
        NULL) /* a log has a description before its first event, so this log has no events */
        return records == 0 && !log->damaged;
    if (log->damaged && is_log_empty(log, records)) /* an earlier recovery has delivered the other rings */
        return false;
    if (is_log_empty(log, records) && is_destination_gone(r, shared))
        return !log->damaged;
    nl_status status = open_outbox(r, remains, log);
    if (status == NL_OK)
        status = send_all(remains, log, &records);
    if (status == NL_OK && log->outbox.destination != &r->other.base) /* detects a peer that accepts any text */
        status = nl_outbox_close_destination(&log->outbox);
    if (status != NL_OK)
        nl_remains_save_log(remains, log);
    report_status(r, shared, records, status, nl_outbox_is_spooled(&log->outbox));
    if (log->outbox.destination != &r->other.base)
        nl_outbox_close_destination(&log->outbox);
    nl_spool_close(log->outbox.spool);
    nl_buffer_free(&log->outbox.spooled);
    nl_buffer_free(&log->outbox.losses);
    nl_url_free(log->outbox.url);
    return status == NL_OK && !log->damaged;
}

/* ---- directories ---- */

static void remove_directory(int parent, const char *name, int directory)
{
    DIR *files = fdopendir(dup(directory));
    if (files == NULL)
        return;
    rewinddir(files);
    for (struct dirent *entry; (entry = readdir(files)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && strcmp(entry->d_name, "lock") != 0)
            unlinkat(directory, entry->d_name, 0);
    closedir(files);
    unlinkat(directory, "lock", 0); /* removed last, because a directory without a lock has nothing to recover */
    unlinkat(parent, name, AT_REMOVEDIR);
}

/*
 * Removes an empty directory without a lock. Such a directory is left if a process is killed while it removes the
 * directory. Does nothing while that process is running, because it will remove the directory itself.
 */
static void remove_empty(int parent, const char *name)
{
    unsigned user;
    int process;
    if (sscanf(name, "netlogger-%u-%d-", &user, &process) == 2 && process > 0 && kill(process, 0) != 0 &&
        errno == ESRCH)
        unlinkat(parent, name, AT_REMOVEDIR); /* fails unless the directory is empty */
}

static void recover_directory(recovery *r, int parent, const char *name)
{
    nl_remains remains;
    nl_status status = nl_remains_open(&remains, parent, name);
    r->directory = name;
    if (status == NL_AGAIN && !r->options.list_only)
        remove_empty(parent, name);
    if (status == NL_FAILED)
        report_unreadable(r);
    if (status != NL_OK)
        return;
    remains.on_damaged = recover_on_damaged;
    remains.user = r;
    nl_remains_log log;
    unsigned count;
    bool whole = nl_remains_count_logs(&remains, &count) == NL_OK;
    if (!whole)
        report_unreadable(r);
    /* Logs are numbered in the order in which they were opened. Closed logs leave gaps in the numbers. */
    for (unsigned number = 0; number < count; number++) {
        status = nl_remains_open_log(&remains, number, &log);
        if (status == NL_OK) {
            whole &= recover_log(r, &remains, &log);
            nl_remains_close_log(&log);
        } else if (status == NL_FAILED) {
            report_unreadable(r);
            whole = false;
        } else if (status == NL_MALFORMED) {
            whole = false;
        }
    }
    if (whole && !r->options.list_only)
        remove_directory(parent, name, remains.directory);
    nl_remains_close(&remains);
}

/* Removes the directory of a process that was killed while it created the directory, which contains at most a lock. */
static void remove_unfinished(int parent, const char *name)
{
    unsigned user, process;
    struct stat status;
    if (sscanf(name, ".netlogger-%u-%u-", &user, &process) != 2 ||
        fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != geteuid() || nl_time_now_ns() / NL_NS_PER_SECOND - status.st_mtime < UNFINISHED_S)
        return;
    int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return;
    remove_directory(parent, name, directory);
    close(directory);
}

/* Returns whether this user may recover the directory, according to the directory's name and owner. */
static bool is_ours(const recovery *r, int parent, const char *name)
{
    unsigned user, process;
    char rest;
    struct stat status;
    if (sscanf(name, "netlogger-%u-%u-%c", &user, &process, &rest) != 3 ||
        fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode))
        return false;
    return status.st_uid == geteuid() || (r->options.everyone && geteuid() == 0);
}

static nl_status recover_all(recovery *r)
{
    DIR *parent = opendir(nl_session_parent());
    if (parent == NULL)
        return nl_error_set_errno("open %s", nl_session_parent());
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(parent)) != NULL)
        if (is_ours(r, dirfd(parent), entry->d_name))
            recover_directory(r, dirfd(parent), entry->d_name);
        else if (!r->options.list_only)
            remove_unfinished(dirfd(parent), entry->d_name);
    if (errno != 0)
        r->failed = nl_error_set_errno("read %s", nl_session_parent()) != NL_OK;
    closedir(parent);
    return r->failed ? NL_FAILED : NL_OK;
}

static nl_status recover_to_destination(recovery *r)
{
    if (r->options.destination != NULL && !r->options.list_only) {
        r->other.writer = nl_writer_open(r->options.destination, &(nl_writer_options){.buffer_size = BATCH_SIZE});
        if (r->other.writer == NULL)
            return NL_FAILED;
    }
    nl_status status = recover_all(r);
    if (r->other.writer != NULL && nl_writer_close(r->other.writer) != NL_OK)
        status = NL_FAILED;
    return status;
}

nl_status nl_recover(const nl_recover_options *options, void (*report)(void *user, const nl_recovered *what),
                     void *user)
{
    recovery r = {.report = report, .user = user, .other = {.base = {.kind = &other_kind}}};
    if (options != NULL)
        r.options = *options;
    NL_REQUIRE(!r.options.everyone || r.options.destination != NULL || r.options.list_only,
               "the recovery of all users' events requires a destination", NL_FAILED);
    nl_signals_hold(&r.held);
    nl_status status = recover_to_destination(&r);
    nl_signals_release(&r.held);
    return status;
}
