#include "config.h"

#include "delivery.h"

#include "base/text.h"
#include "base/monotonic.h"
#include "base/private_directory.h"
#include "base/thread.h"
#include "base/error.h"
#include "file.h"
#include "program/program.h"
#include "base/buffer.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    /*
     * Number of bytes to pass to the kind in one call. PIECE is the initial number. The thread reduces the number over
     * slow links, so that the position advances often. It increases the number over fast links, so that it waits less
     * often.
     */
    PIECE = 256 << 10,
    PIECE_MIN = 64 << 10,
    PIECE_MAX = 4 << 20,
    FAST_MS = 250,
    SLOW_MS = 2000,
    RECORD_MAX = 64 << 20, /* maximum number of bytes to read for one record */
    BACK_OFF_MS = 250,     /* delay after a failure; doubled after each further failure */
    BACK_OFF_MAX_MS = 5000,
    REPORT_MS = 10000, /* minimum time between two reports of failures */
};

struct delivery {
    delivery *next;  /* in the list of closed deliveries */
    char *spool;     /* directory of the spool */
    int fd;          /* descriptor of the file with the position; this file is also the lock */
    output_place at; /* the position; only the thread uses it while the thread runs */
    bool started;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the following members */
    pthread_cond_t changed;
    output_place end; /* end of the settled part */
    size_t unsettled; /* number of bytes that were written after this end */
    bool leaving;     /* the thread must end when it has delivered everything, after a failure, or at leave_ms */
    int64_t leave_ms;
    bool stop;             /* the thread must end now */
    bool ended;            /* the thread has ended */
    output_options *other; /* new options, or NULL */
    delivery_state state;

    /* The following members belong to the thread while it runs. */
    output_options *options;
    const output_kind *kind;
    void *peer; /* NULL: not connected */
    int file;   /* -1: no file is open */
    nl_buffer chunk;
    size_t piece;
    int back_off_ms;
    bool place_reported;        /* a failure to write the position has been reported */
    nl_log *log;                /* NULL: no log */
    nl_error_code reported;     /* code of the latest reported failure, or NL_ERROR_NONE */
    int64_t reported_ms;        /* time of that report */
    uint64_t rejected_reported; /* number of rejected records that events have reported */
    int64_t rejected_ms;        /* time of the latest of these events */
    int64_t away_ms;            /* time of the first report of the current failure */
    bool ever_reported;         /* a failure has been reported */
};

/* List of the closed deliveries whose threads have not been joined yet. */
static delivery *closed;

/* ---- the position ---- */

static void note_place(delivery *d)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%020" PRIu64 " %020" PRIu64 "\n", d->at.number, d->at.offset);
    ssize_t put = pwrite(d->fd, text, (size_t)size, 0);
    if (put == size || d->place_reported)
        return;
    /* Print the message, because the thread's error may contain a delivery failure that has not been reported yet. */
    program_error("write %s/delivered: %s; if netlogd is killed, it may deliver records again", d->spool,
                  strerror(put < 0 ? errno : ENOSPC));
    d->place_reported = true;
}

static void read_place(delivery *d)
{
    char text[64] = "";
    d->at = (output_place){0};
    if (pread(d->fd, text, sizeof text - 1, 0) > 0 &&
        sscanf(text, "%" SCNu64 " %" SCNu64, &d->at.number, &d->at.offset) != 2)
        d->at = (output_place){0};
}

/*
 * Creates a directory of the spool, unless it exists. Fails if another user can change it
 * (nl_private_directory_check_path).
 */
static nl_status make_directory(const char *path, bool shared)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return nl_error_set_errno("create the spool %s", path);
    if (nl_private_directory_check_path(path, shared) != NL_OK)
        return nl_error_prepend("spool");
    return NL_OK;
}

static nl_status make_directories(const char *spool)
{
    char *path = nl_memory_check(strdup(spool)), *slash = strrchr(path, '/');
    *slash = '\0';
    nl_status status = make_directory(*path != '\0' ? path : "/", true);
    if (status == NL_OK)
        status = make_directory(spool, false);
    free(path);
    return status;
}

static nl_status open_place(delivery *d)
{
    char *name = program_format("%s/delivered", d->spool);
    d->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    nl_status status = NL_OK;
    if (d->fd < 0)
        status = nl_error_set_errno("open %s", name);
    else if (flock(d->fd, LOCK_EX | LOCK_NB) != 0)
        status = errno == EWOULDBLOCK
                     ? nl_error_set(NL_ERROR_BUSY, "the spool %s is in use by another process", d->spool)
                     : nl_error_set_errno("lock %s", name);
    free(name);
    return status;
}

static output_options *copy_options(const output_options *options)
{
    output_options *copy = nl_memory_check(malloc(sizeof *copy));
    if (output_options_parse(options->url->text, copy) != NL_OK) /* the URL was already checked */
        program_fail_with_error(PROGRAM_PROBLEM);
    return copy;
}

static void free_options(output_options *options)
{
    if (options != NULL)
        output_options_free(options);
    free(options);
}

static void free_delivery(delivery *d)
{
    if (d->file >= 0)
        close(d->file);
    if (d->fd >= 0)
        close(d->fd);
    free(d->spool);
    nl_buffer_free(&d->chunk);
    free_options(d->options);
    free_options(d->other);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

static void delivery_join(delivery *d)
{
    pthread_join(d->thread, NULL);
    d->started = d->stop = d->leaving = d->ended = false;
}

/*
 * Removes the closed delivery of a spool from the list, so that the delivery can continue. Returns NULL if the spool
 * has no closed delivery.
 */
static delivery *take_back(const output_options *options)
{
    delivery **at = &closed;
    while (*at != NULL && strcmp((*at)->spool, options->spool) != 0)
        at = &(*at)->next;
    delivery *d = *at;
    if (d == NULL)
        return NULL;
    *at = d->next;
    pthread_mutex_lock(&d->mutex);
    bool ended = d->ended;
    d->stop = d->leaving = false;
    free_options(d->other);
    d->other = copy_options(options);
    pthread_mutex_unlock(&d->mutex);
    if (ended)
        delivery_join(d);
    return d;
}

static void free_ended(void)
{
    for (delivery **at = &closed; *at != NULL;) {
        delivery *d = *at;
        pthread_mutex_lock(&d->mutex);
        bool ended = d->ended;
        pthread_mutex_unlock(&d->mutex);
        if (!ended) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        delivery_join(d);
        free_delivery(d);
    }
}

delivery *delivery_open(const output_options *options)
{
    delivery *d = take_back(options);
    free_ended();
    if (d != NULL)
        return d;
    d = nl_memory_check(calloc(1, sizeof *d));
    d->options = copy_options(options);
    d->spool = nl_memory_check(strdup(options->spool));
    d->kind = options->kind;
    d->fd = d->file = -1;
    d->piece = PIECE;
    pthread_mutex_init(&d->mutex, NULL);
    nl_monotonic_cond_init(&d->changed);
    if (make_directories(options->spool) == NL_OK && open_place(d) == NL_OK) {
        read_place(d);
        return d;
    }
    free_delivery(d);
    return NULL;
}

/* ---- the thread ---- */

/*
 * Returns the number of undelivered bytes up to the end of the settled part. Does not use the size of the last file,
 * because the server's thread may have written bytes to this file for which it has not called delivery_wrote yet.
 */
static uint64_t count_waiting(const delivery *d, output_place end)
{
    uint64_t sum = 0;
    for (uint64_t number = d->at.number; number < end.number; number++) {
        struct stat status;
        char *name = output_file_name(d->options, number);
        if (stat(name, &status) == 0)
            sum += (uint64_t)status.st_size;
        free(name);
    }
    sum += d->at.number <= end.number ? end.offset : 0;
    return sum > d->at.offset ? sum - d->at.offset : 0;
}

/* Advances to the next file, because the file at the position does not exist. Reports the file if it had records. */
static void skip_missing(delivery *d, output_place end, const char *name)
{
    const bool had_records = d->at.number < end.number || d->at.offset < end.offset;
    d->at = (output_place){d->at.number + 1, 0};
    if (!had_records)
        return;
    pthread_mutex_lock(&d->mutex);
    d->state.missing++;
    d->state.waiting = count_waiting(d, d->end) + d->unsettled;
    nl_write(d->log, NL_WARNING, "Netlogd.SpoolMissing", "OUTPUT=%s FILE=%s", d->options->target, name);
    pthread_mutex_unlock(&d->mutex);
}

/*
 * Opens the file at the position, unless it is open. Skips missing files. Returns NL_END if no file up to `end` exists.
 */
static nl_status open_file(delivery *d, output_place end)
{
    while (d->file < 0 && d->at.number <= end.number) {
        char *name = output_file_name(d->options, d->at.number);
        d->file = open(name, O_RDONLY | O_CLOEXEC);
        if (d->file < 0 && errno != ENOENT) {
            nl_error_set_errno("open %s", name);
            free(name);
            return NL_FAILED;
        }
        if (d->file < 0)
            skip_missing(d, end, name);
        free(name);
    }
    return d->file >= 0 ? NL_OK : NL_END;
}

/* Removes a delivered file, and advances to the next file. */
static void leave_file(delivery *d)
{
    char *name = output_file_name(d->options, d->at.number);
    close(d->file);
    d->file = -1;
    d->at = (output_place){d->at.number + 1, 0};
    note_place(d);
    unlink(name);
    free(name);
}

/* Reads up to `size` bytes before `end`. Returns NL_END if no bytes are left. */
static nl_status read_chunk(delivery *d, output_place end, size_t size)
{
    struct stat status;
    d->chunk.size = 0;
    for (;;) {
        nl_status opened = open_file(d, end);
        if (opened != NL_OK)
            return opened;
        bool last = d->at.number == end.number;
        uint64_t until = end.offset;
        if (!last && fstat(d->file, &status) != 0)
            return nl_error_set_errno("read the spool %s", d->spool);
        until = last ? until : (uint64_t)status.st_size;
        if (until > d->at.offset) {
            uint64_t left = until - d->at.offset;
            size = left < size ? (size_t)left : size;
            nl_buffer_reserve(&d->chunk, size);
            ssize_t got = pread(d->file, d->chunk.data, size, (off_t)d->at.offset);
            if (got <= 0)
                return got == 0 ? nl_error_set(NL_ERROR_SYSTEM, "read the spool %s: a file was truncated", d->spool)
                                : nl_error_set_errno("read the spool %s", d->spool);
            d->chunk.size = (size_t)got;
            return NL_OK;
        }
        if (last)
            return NL_END;
        leave_file(d);
    }
}

static void disconnect(delivery *d)
{
    if (d->peer != NULL)
        d->kind->close(d->peer);
    d->peer = NULL;
}

/* Delivers the chunk. If the chunk contains no whole record, reads more bytes and delivers again. */
static nl_status delivery_deliver_chunk(delivery *d, output_place end, output_delivered *done)
{
    if (d->peer == NULL && (d->peer = d->kind->open(d->options)) == NULL)
        return NL_FAILED;
    for (size_t size = d->piece; size <= RECORD_MAX; size *= 2) {
        nl_status status = size == d->piece ? NL_OK : read_chunk(d, end, size);
        if (status == NL_OK)
            status = d->kind->deliver(d->peer, d->chunk.data, d->chunk.size, d->at, done);
        if (status != NL_OK || done->taken > 0)
            return status;
    }
    /*
     * Another program has written to the file. Skip these bytes, because they cannot be delivered and would block later
     * bytes.
     */
    done->taken = d->chunk.size;
    return nl_error_set(NL_ERROR_SYSTEM, "%s: skipped %zu malformed byte%s in file %" PRIu64 " at offset %" PRIu64,
                        d->spool, d->chunk.size, nl_plural(d->chunk.size), d->at.number, d->at.offset);
}

/* Delivers the next piece, and chooses the size of the piece after it. */
static nl_status delivery_deliver_piece(delivery *d, output_place end, output_delivered *done)
{
    int64_t began_ms = nl_monotonic_ms();
    nl_status status = delivery_deliver_chunk(d, end, done);
    int64_t took_ms = nl_monotonic_ms() - began_ms;
    if (status != NL_OK)
        d->piece = PIECE_MIN;
    else if (took_ms > SLOW_MS && d->piece > PIECE_MIN)
        d->piece /= 2;
    else if (took_ms < FAST_MS && d->piece < PIECE_MAX)
        d->piece *= 2;
    return status;
}

/*
 * If `milliseconds` is 0, waits for a change. Otherwise, waits at most this time for a call of stop, leave or change.
 * The caller must hold the mutex.
 */
static void wait_for(delivery *d, int milliseconds)
{
    struct timespec until = nl_monotonic_in_ms(milliseconds);
    if (milliseconds == 0)
        pthread_cond_wait(&d->changed, &d->mutex);
    else
        while (!d->stop && !d->leaving && d->other == NULL &&
               pthread_cond_timedwait(&d->changed, &d->mutex, &until) == 0)
            continue;
}

/* Logs that delivery fails or succeeds again, at a limited rate. */
static void report_state(delivery *d)
{
    const nl_error *problem = &d->state.problem;
    int64_t now = nl_monotonic_ms();
    if (problem->code == d->reported)
        return;
    if (problem->code == NL_ERROR_NONE) {
        nl_write(d->log, NL_USAGE, "Netlogd.OutputBack", "OUTPUT=%s SECONDS=%.3f SPOOLED=%" PRIu64, d->options->target,
                 (double)(now - d->away_ms) / 1e3, d->state.waiting);
    } else if (!d->ever_reported || now - d->reported_ms >= REPORT_MS) {
        if (d->reported == NL_ERROR_NONE)
            d->away_ms = now;
        nl_write(d->log, NL_WARNING, "Netlogd.OutputAway", "OUTPUT=%s REASON=%s SPOOLED=%" PRIu64, d->options->target,
                 problem->message, d->state.waiting);
        d->ever_reported = true;
        d->reported_ms = now;
    } else {
        return;
    }
    d->reported = problem->code;
}

/* Logs that the destination rejects records, at a limited rate. */
static void report_rejected(delivery *d, const output_delivered *done)
{
    int64_t now_ms = nl_monotonic_ms();
    d->state.rejected += done->rejected;
    if (d->state.rejected == d->rejected_reported || (d->rejected_reported > 0 && now_ms - d->rejected_ms < REPORT_MS))
        return;
    nl_write(d->log, NL_WARNING, "Netlogd.OutputRejected", "OUTPUT=%s RECORDS=%" PRIu64 " REASON=%s",
             d->options->target, d->state.rejected - d->rejected_reported,
             done->rejected > 0 ? done->reason : "(see the previous event)");
    d->rejected_reported = d->state.rejected;
    d->rejected_ms = now_ms;
}

/* Updates the state after a delivery. The caller must hold the mutex. */
static void note_result(delivery *d, nl_status status, const output_delivered *done)
{
    d->state.delivered += done->taken;
    d->state.waiting -= done->taken < d->state.waiting ? done->taken : d->state.waiting;
    report_rejected(d, done);
    if (status == NL_OK) {
        d->state.problem.code = NL_ERROR_NONE;
        d->back_off_ms = 0;
        report_state(d);
        return;
    }
    d->state.failures++;
    nl_error_save(&d->state.problem);
    report_state(d);
    d->back_off_ms = d->back_off_ms == 0 ? BACK_OFF_MS : d->back_off_ms * 2;
    if (d->back_off_ms > BACK_OFF_MAX_MS)
        d->back_off_ms = BACK_OFF_MAX_MS;
    if (d->leaving)
        d->stop = true;
    else
        wait_for(d, done->wait_ms > (unsigned)d->back_off_ms ? (int)done->wait_ms : d->back_off_ms);
}

/* Runs one step of the thread. The caller holds the mutex, which the function releases during delivery. */
static void deliver_some(delivery *d)
{
    output_place end = d->end;
    output_options *other = d->other;
    d->other = NULL;
    pthread_mutex_unlock(&d->mutex);
    output_delivered done = {0};
    if (other != NULL) {
        disconnect(d);
        free_options(d->options);
        d->options = other;
    }
    nl_status status = read_chunk(d, end, d->piece);
    bool nothing = status == NL_END;
    if (status == NL_OK)
        status = delivery_deliver_piece(d, end, &done);
    if (done.taken > 0) {
        d->at.offset += done.taken;
        note_place(d);
    }
    if (status != NL_OK && !nothing)
        disconnect(d);
    pthread_mutex_lock(&d->mutex);
    bool all = nothing && d->end.number == end.number && d->end.offset == end.offset;
    if (!nothing)
        note_result(d, status, &done);
    if (d->leaving && (all || nl_monotonic_ms() >= d->leave_ms))
        d->stop = true;
    else if (all && !d->stop && d->other == NULL)
        wait_for(d, 0);
}

static void *delivery_run(void *user)
{
    delivery *d = user;
    pthread_mutex_lock(&d->mutex);
    for (;;) {
        while (!d->stop)
            deliver_some(d);
        pthread_mutex_unlock(&d->mutex);
        disconnect(d);
        pthread_mutex_lock(&d->mutex);
        if (d->stop) /* otherwise, the delivery has been opened again */
            break;
    }
    d->ended = true;
    pthread_mutex_unlock(&d->mutex);
    return NULL;
}

/* ---- the server's side ---- */

/* Corrects a position that is unknown or outside the files of the spool. */
static void find_first(delivery *d, output_place end)
{
    struct stat status;
    if (d->at.number == 0)
        d->at = (output_place){1, 0};
    char *name = output_file_name(d->options, d->at.number);
    /* The position is always in settled bytes. Therefore, a file that is shorter than the position is another file. */
    bool there = stat(name, &status) == 0;
    free(name);
    if (!there || (uint64_t)status.st_size < d->at.offset)
        d->at.offset = 0;
    if (d->at.number > end.number)
        d->at = end;
}

void delivery_start(delivery *d, output_place end, nl_log *log)
{
    if (d->started) { /* the delivery has been opened again */
        delivery_settled(d, end);
        return;
    }
    /* A killed netlogd may have left a file that it had delivered. */
    if (d->at.number > 0)
        output_file_remove_below(d->options, d->at.number);
    find_first(d, end);
    d->log = log;
    d->end = end;
    d->state.waiting = count_waiting(d, end);
    int error = nl_thread_create(&d->thread, NULL, delivery_run, d);
    d->started = error == 0;
    if (!d->started)
        program_fail(PROGRAM_PROBLEM, "cannot start a thread: %s", strerror(error));
}

void delivery_wrote(delivery *d, size_t size)
{
    pthread_mutex_lock(&d->mutex);
    d->state.waiting += size;
    d->unsettled += size;
    pthread_mutex_unlock(&d->mutex);
}

bool delivery_has_space(delivery *d, size_t size, uint64_t maximum)
{
    pthread_mutex_lock(&d->mutex);
    bool fits = d->state.waiting == 0 || d->state.waiting + size <= maximum;
    pthread_mutex_unlock(&d->mutex);
    return fits;
}

void delivery_settled(delivery *d, output_place end)
{
    pthread_mutex_lock(&d->mutex);
    d->unsettled = 0;
    if (end.number != d->end.number || end.offset != d->end.offset) {
        d->end = end;
        /* If the thread is waiting after a failure, it continues to wait. */
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->mutex);
}

void delivery_describe(delivery *d, delivery_state *state)
{
    pthread_mutex_lock(&d->mutex);
    *state = d->state;
    pthread_mutex_unlock(&d->mutex);
}

void delivery_change(delivery *d, const output_options *options)
{
    output_options *other = copy_options(options);
    pthread_mutex_lock(&d->mutex);
    free_options(d->other);
    d->other = other;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->mutex);
}

void delivery_close(delivery *d, int64_t patience_ms)
{
    if (d == NULL)
        return;
    if (!d->started) {
        free_delivery(d);
        return;
    }
    pthread_mutex_lock(&d->mutex);
    d->leaving = true;
    d->leave_ms = nl_monotonic_ms() + patience_ms;
    d->stop = d->state.problem.code != NL_ERROR_NONE;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->mutex);
    d->next = closed;
    closed = d;
    free_ended();
}

void deliveries_end(void)
{
    while (closed != NULL) {
        delivery *d = closed;
        closed = d->next;
        delivery_join(d);
        free_delivery(d);
    }
}
