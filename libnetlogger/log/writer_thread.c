#include "config.h"

#include "log/log_internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "base/thread.h"

#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH_SIZE = 128 << 10,      /* number of bytes of text, or of blocks for a sender, to encode before sending */
    BLOCKS_SIZE = 8 << 10,       /* number of bytes of blocks to encode before this thread sends them */
    HURRY_PAUSE_NS = 100 * 1000, /* pause between cycles while a ring may soon be full */
    TIMER_SLACK_NS = 10 * 1000, /* maximum delay of a pause; the default of 50,000 is too much for the shortest pause */
    BUSY_PAUSE_NS = 1000 * 1000,   /* pause while there are events */
    SHORT_PAUSE_NS = 20 * 1000000, /* no ring fills within this time; during longer sleeps, the next event wakes the
                                    * thread */
    BLOCK_AGE_NS = 100 * 1000000,  /* maximum time that events wait for further events of the same block */
    LIVE_AGE_NS = 10 * 1000000,    /* the same for a collector, which may have live viewers */
    BLOCK_FILL = 32 << 10,         /* if a ring has this many bytes, its events do not wait */
    PATIENCE_NS = 100 * 1000000,   /* maximum wait for a thread that is writing an event */
    HELD_UP_NS = 50 * 1000,        /* interval at which a flush checks a thread that is writing an event */
    STACK_SIZE = 512 << 10,
    FREE_RINGS = 16, /* number of empty rings to keep for future threads */
};

void nl_writer_thread_wake(void *user)
{
    nl_log *log = user;
    if (__atomic_exchange_n(&log->wake, 1, __ATOMIC_ACQ_REL) == 0)
        syscall(SYS_futex, &log->wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Sleeps for at most pause_ns. Returns whether the thread was woken before the end of the pause. */
static bool sleep_until_woken(nl_log *log, int64_t pause_ns)
{
    struct timespec pause = {pause_ns / NL_NS_PER_SECOND, pause_ns % NL_NS_PER_SECOND};
    if (__atomic_exchange_n(&log->wake, 0, __ATOMIC_ACQ_REL) != 0)
        return true;
    syscall(SYS_futex, &log->wake, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
    return __atomic_exchange_n(&log->wake, 0, __ATOMIC_ACQ_REL) != 0;
}

/* ---- one cycle ---- */

/* Sets the options of the drain that depend on the destination. */
static void follow_destination(nl_log *log)
{
    nl_drain_set_format(&log->drain, log->options.writer.format);
    log->drain.one_level = log->url->scheme == NL_SCHEME_SYSLOG;
    log->drain.zstd_level = log->options.writer.zstd_level > 0 ? log->options.writer.zstd_level : 0;
}

static void get_ready(nl_log *log)
{
    if (log->drain_ready && log->outbox.shared != NULL)
        return;
    pthread_mutex_lock(&log->mutex);
    if (!log->drain_ready) {
        log->drain_ready = nl_drain_start(&log->drain, log->options.writer.format, log->host, log->prog);
        follow_destination(log);
    }
    if (nl_log_describe(log))
        nl_clock_add_earlier(&log->drain.clock, log->outbox.shared->clock[1], nl_monotonic_ns() - log->described_ns);
    pthread_mutex_unlock(&log->mutex);
}

/*
 * Returns the list of rings. This thread may then read the list without the lock, because no other thread removes
 * rings.
 */
static nl_ring *rings_of(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    nl_ring *rings = log->rings;
    pthread_mutex_unlock(&log->mutex);
    return rings;
}

/* Returns whether the log will change to another destination. */
static bool is_changing(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    bool changing = log->control.next.url != NULL;
    pthread_mutex_unlock(&log->mutex);
    return changing;
}

/*
 * Returns whether to take events now. With blocks, a few events wait for more events, because each block has a header.
 * While the sender sends, events wait in the rings in two cases: if the collector will probably reply soon, or if the
 * log will change to another destination. The batch then becomes empty. If a ring is half full, events do not wait for
 * the sender.
 */
static bool is_time(nl_log *log, nl_ring *rings, bool everything)
{
    uint64_t maximum = 0;
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next) {
        uint64_t tail = nl_ring_tail(ring);
        uint64_t waiting = __atomic_load_n(&ring->shared->published, __ATOMIC_ACQUIRE) - tail;
        maximum = waiting > maximum ? waiting : maximum;
    }
    log->waiting = maximum;
    if (!everything && maximum < log->options.ring_size / 2 && nl_outbox_is_sending(&log->outbox) &&
        (nl_outbox_expects_reply(&log->outbox) || is_changing(log)))
        return false;
    if (log->drain.format != NL_FORMAT_NLB || everything)
        return true;
    int64_t age_ns = log->url->scheme == NL_SCHEME_FILE ? BLOCK_AGE_NS : LIVE_AGE_NS;
    return maximum >= BLOCK_FILL || nl_monotonic_ns() - log->drained_ns >= age_ns;
}

static size_t batch_size(const nl_log *log)
{
    return log->drain.format != NL_FORMAT_NLB || log->outbox.sender != NULL ? BATCH_SIZE : BLOCKS_SIZE;
}

static bool is_full(const nl_log *log)
{
    return log->encoded.size >= batch_size(log);
}

/*
 * Returns the time, in ticks, up to which the events of all threads can be ordered. A thread may have read the counter,
 * but not yet published its event. Producers are marked as busy before they read the counter, and before_ticks is so
 * long ago that this mark is visible. Therefore, a producer that is not busy has published its events up to
 * before_ticks. If a thread is stopped during an event, the events of the other threads wait only for a limited time.
 */
static uint64_t ordered_until(nl_ring *rings, uint64_t before_ticks, uint64_t patience_ticks)
{
    uint64_t until = before_ticks;
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next) {
        unsigned busy = __atomic_load_n(&ring->producer.busy, __ATOMIC_ACQUIRE);
        if (busy == 2) { /* the thread is making space for an event; the event's time is the time of the call */
            uint64_t called = __atomic_load_n(&ring->producer.called, __ATOMIC_ACQUIRE);
            if (called > ring->safe_ticks)
                ring->safe_ticks = called - 1 < before_ticks ? called - 1 : before_ticks;
        }
        if (busy == 0) {
            ring->safe_ticks = before_ticks;
            ring->busy_head = UINT64_MAX;
            continue;
        }
        uint64_t head = __atomic_load_n(&ring->shared->published, __ATOMIC_ACQUIRE);
        if (head != ring->busy_head) {
            ring->busy_head = head;
            ring->busy_ticks = before_ticks;
        }
        if (before_ticks - ring->busy_ticks < patience_ticks && ring->safe_ticks < until)
            until = ring->safe_ticks;
    }
    return until;
}

/*
 * Reads the clock. Returns the reading of the previous cycle, or a recent reading if all events up to now are
 * needed.
 */
static uint64_t read_clock(nl_log *log, bool everything)
{
    nl_clock *clock = &log->drain.clock;
    uint64_t before_ticks = log->clock_ticks;
    log->clock_ticks = nl_clock_update(clock);
    if (everything) {
        before_ticks = log->clock_ticks;
        int64_t start_ns = nl_monotonic_ns();
        while (nl_monotonic_ns() - start_ns < NL_VISIBLE_NS)
            continue;
        log->clock_ticks = nl_clock_update(clock);
        if (log->flush_ticks == 0)
            log->flush_ticks = before_ticks;
    }
    nl_clock_save(clock, log->outbox.shared->clock);
    return before_ticks;
}

/*
 * Returns the time, in ticks, up to which this cycle takes events. The caller reads the list of rings after it reads
 * before_ticks. The list therefore contains every ring with an event before before_ticks.
 */
static uint64_t writer_thread_find_until(nl_log *log, nl_ring *rings, uint64_t before_ticks)
{
    if (log->flush_ticks == UINT64_MAX) /* threads no longer log */
        return UINT64_MAX;
    if (log->drain.format == NL_FORMAT_NLB) /* blocks need no order between threads */
        return log->clock_ticks;
    uint64_t patience_ticks = nl_clock_ticks(&log->drain.clock, PATIENCE_NS);
    pthread_mutex_lock(&log->mutex);
    if (log->beginning > 0 && log->beginning_ticks < before_ticks &&
        before_ticks - log->beginning_ticks < patience_ticks)
        before_ticks = log->beginning_ticks - 1;
    pthread_mutex_unlock(&log->mutex);
    return ordered_until(rings, before_ticks, patience_ticks);
}

/* Reports once that the shared memory is not in files, so that a killed process loses its events. */
static void report_unnamed(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    int error = log->reported_unnamed ? 0 : log->unnamed;
    log->reported_unnamed |= error != 0;
    pthread_mutex_unlock(&log->mutex);
    if (error == 0)
        return;
    nl_record *record = nl_own_record_new(log, NL_WARNING, "NetLogger.Unrecoverable");
    char scratch[128];
    const char *reason = strerror_r(error, scratch, sizeof scratch);
    nl_record_add_text(record, "REASON", reason);
    nl_own_records_add(log, record);
}

/*
 * Returns whether a ring still has events that a flush needs. Such events remain if the batch was full, or if they wait
 * for a thread that is writing an older event. Later events do not count, so that a flush ends while other threads log.
 * When the log is being closed, losses that did not fit into a full ring also count. Also returns true if the log's own
 * records wait.
 */
static bool is_left(const nl_log *log, const nl_ring *rings)
{
    nl_event_header header;
    bool closing = log->flush_ticks == UINT64_MAX;
    for (const nl_ring *ring = rings; ring != NULL; ring = ring->next) {
        bool damaged = nl_ring_event(ring, &header) == NULL;
        if (damaged ? ring->at < ring->end : header.ticks <= log->flush_ticks)
            return true;
        if (closing && nl_ring_has_lost(ring))
            return true;
    }
    return log->control.own_record_count > 0;
}

/*
 * Moves events from the rings to the batch. Returns NL_OK. Returns NL_FAILED, and moves nothing, if memory runs out or
 * the batch has no space.
 */
static nl_status writer_thread_take(nl_log *log, bool everything)
{
    const unsigned failures = nl_memory_failures;
    nl_status status = NL_OK;
    log->encoded.size = 0;
    log->left = false;
    uint64_t before_ticks = read_clock(log, everything);
    nl_ring *rings = rings_of(log);
    uint64_t until_ticks = writer_thread_find_until(log, rings, before_ticks);
    if (!is_time(log, rings, everything))
        return NL_OK;
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next)
        nl_ring_pin(ring);
    log->drain.sites.shared = nl_sites_shared();
    log->drain.sites.size = NL_SHARED_SITES_SIZE;
    size_t own_count =
        nl_own_records_encode(log, log->drain.one_level, log->drain.format, &log->encoded, &log->drain.level);
    uint64_t records = 0;
    status = nl_drain_take(&log->drain, rings, until_ticks, &log->encoded, batch_size(log), &records);
    records += own_count;
    if (status != NL_OK || nl_memory_failures != failures) {
        log->encoded.size = 0;
        status = nl_error_set(NL_ERROR_MEMORY, "out of memory");
    } else if (log->encoded.size == 0) {
        records = 0;
    } else if (nl_outbox_has_space(&log->outbox, log->encoded.size)) {
        nl_outbox_commit(&log->outbox, rings, &log->encoded, records);
        nl_own_records_drop(log, own_count);
    } else {
        status = nl_error_set(NL_ERROR_LIMIT, "out of shared memory for the log");
    }
    log->left = status == NL_OK && is_left(log, rings);
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next)
        nl_ring_unpin(ring);
    if (!is_full(log))
        log->drained_ns = nl_monotonic_ns();
    if (everything && log->left && records == 0)
        nanosleep(&(struct timespec){.tv_nsec = HELD_UP_NS}, NULL);
    return status;
}

/*
 * Reports the last losses of threads that have ended or, if `closing` is true, of all threads. Removes the empty rings
 * of threads that have ended, except FREE_RINGS rings.
 */
static void tidy(nl_log *log, bool closing)
{
    unsigned spare = 0;
    pthread_mutex_lock(&log->mutex);
    for (nl_ring **at = &log->rings; *at != NULL;) {
        nl_ring *ring = *at;
        bool unused = !__atomic_load_n(&ring->in_use, __ATOMIC_ACQUIRE);
        if (unused || closing)
            nl_ring_report_lost(ring);
        if (unused) {
            if (nl_ring_is_empty(ring) && ++spare > FREE_RINGS) {
                *at = ring->next;
                nl_ring_remove(ring);
                continue;
            }
        }
        at = &ring->next;
    }
    pthread_mutex_unlock(&log->mutex);
}

static void note_status(nl_log *log, nl_status status)
{
    if (status == NL_AGAIN)
        return;
    pthread_mutex_lock(&log->mutex);
    log->status = status;
    if (status != NL_OK)
        nl_error_save(&log->error);
    pthread_mutex_unlock(&log->mutex);
}

/*
 * Switches to the next destination, if one is set. If the new destination has the format of the waiting records and is
 * not syslog, these records go there. Otherwise, the function first sends these records to the old destination. If this
 * attempt fails, the next cycle tries to switch again. There is one exception. If the old destination is unreachable,
 * and the URL of a new file does not name a format, the file gets the format of the waiting records. These records
 * would otherwise wait for a collector that may never return. Readers of the file detect its format.
 */
static void change_destination(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    nl_next_destination next = log->control.next;
    bool fits = next.url != NULL && next.writer.format == log->drain.format && next.url->scheme != NL_SCHEME_SYSLOG;
    pthread_mutex_unlock(&log->mutex);
    if (next.url == NULL)
        return;
    nl_outbox_settle(&log->outbox);
    if (nl_outbox_is_sending(&log->outbox)) /* a later cycle changes the destination */
        return;
    if (!fits && (nl_outbox_send(&log->outbox, log->drain.level, false) != NL_OK || !nl_outbox_is_empty(&log->outbox) ||
                  nl_outbox_is_sending(&log->outbox))) {
        if (!log->outbox.away || nl_outbox_is_sending(&log->outbox) || next.url->scheme != NL_SCHEME_FILE ||
            nl_url_option_value(next.url, "format") != NULL)
            return;
        next.writer.format = next.destination->format = log->drain.format;
    }
    pthread_mutex_lock(&log->mutex);
    if (log->control.next.url == next.url) {
        nl_outbox_change(&log->outbox, next.url, next.destination, &next.writer);
        if (log->url != log->control.first_url)
            nl_url_free(log->url);
        log->url = next.url;
        log->options.writer = next.writer;
        log->control.next = (nl_next_destination){0};
        nl_log_note_url(log);
        nl_log_describe(log);
    }
    pthread_mutex_unlock(&log->mutex);
    follow_destination(log);
}

/*
 * Returns whether to begin the next cycle at once. Producers do not report that their rings fill up, because that would
 * cost a system call. Therefore, this thread must wake before a ring is full.
 */
static bool is_more(const nl_log *log, bool everything)
{
    if (everything)
        return log->left;
    return is_full(log) || (log->encoded.size > 0 && log->waiting >= log->options.ring_size / 4);
}

/*
 * Takes events. If memory runs out, a flush tries several times, because memory may be available again later. Returns
 * the same values as writer_thread_take.
 */
static nl_status writer_thread_take_retrying(nl_log *log, bool everything)
{
    enum { ATTEMPTS = 3 };
    nl_status status = NL_FAILED;
    for (int i = 0; i < (everything ? ATTEMPTS : 1) && status != NL_OK; i++)
        status = writer_thread_take(log, everything);
    return status;
}

/* The next step of a flush after a cycle. */
typedef enum next_step {
    STEP_END,
    STEP_NEXT_CYCLE,   /* more events may be waiting */
    STEP_AWAIT_SENDER, /* the sender may deliver events, or make space for more events */
} next_step;

/* Takes and sends events. */
static next_step writer_thread_look(nl_log *log, bool everything, bool closing)
{
    get_ready(log);
    if (log->outbox.shared == NULL || !log->drain_ready) {
        nl_error_set(NL_ERROR_MEMORY, "out of memory");
        note_status(log, NL_FAILED);
        return STEP_END;
    }
    change_destination(log);
    tidy(log, closing);
    nl_outbox_poll(&log->outbox);
    nl_status status = nl_outbox_send(&log->outbox, log->drain.level, everything);
    if (status == NL_OK && (status = writer_thread_take_retrying(log, everything)) == NL_OK && log->encoded.size > 0)
        status = nl_outbox_send(&log->outbox, log->drain.level, everything);
    if (nl_outbox_sync(&log->outbox, everything) != NL_OK)
        status = NL_FAILED;
    note_status(log, status);
    const bool stuck = status != NL_OK;
    if (everything && (stuck || !log->left) && nl_outbox_is_flushing(&log->outbox, stuck))
        return STEP_AWAIT_SENDER;
    return !stuck && is_more(log, everything) ? STEP_NEXT_CYCLE : STEP_END;
}

/* ---- the thread ---- */

/* Passes the result of the latest cycle to the callers of nl_flush. */
static void finish_flush(nl_log *log, uint64_t wanted)
{
    pthread_mutex_lock(&log->mutex);
    log->flush_done = wanted;
    log->flush_status = log->status;
    log->flush_error = log->error;
    log->flush_spooled = nl_outbox_count_spooled(&log->outbox);
    pthread_cond_broadcast(&log->flushed);
    pthread_mutex_unlock(&log->mutex);
}

static int64_t next_pause_ns(const nl_log *log, int64_t pause_ns)
{
    if (log->waiting >= log->options.ring_size / 16)
        return HURRY_PAUSE_NS;
    if (log->waiting > 0 || pause_ns < BUSY_PAUSE_NS)
        return BUSY_PAUSE_NS;
    int64_t longest_ns = __atomic_load_n(&log->options.idle_ns, __ATOMIC_RELAXED);
    return pause_ns < SHORT_PAUSE_NS && pause_ns * 5 / 4 < longest_ns ? pause_ns * 5 / 4 : longest_ns;
}

/* Makes each thread's next event take the slow path, which wakes this thread. */
static void watch_rings(nl_log *log)
{
    __atomic_store_n(&log->asleep, true, __ATOMIC_SEQ_CST);
    for (nl_ring *ring = rings_of(log); ring != NULL; ring = ring->next)
        nl_ring_stop_at(ring, 0);
}

/* Returns whether no events wait and no thread is writing an event. */
static bool is_quiet(nl_log *log)
{
    bool quiet = nl_outbox_is_empty(&log->outbox) && !nl_outbox_is_spooled(&log->outbox) && log->encoded.size == 0;
    for (nl_ring *ring = rings_of(log); quiet && ring != NULL; ring = ring->next)
        quiet = nl_ring_is_empty(ring) && !nl_ring_has_lost(ring) &&
                __atomic_load_n(&ring->producer.busy, __ATOMIC_ACQUIRE) == 0;
    return quiet;
}

/*
 * Sleeps. The first sleep after watch_rings is short, because an event may have begun before that call. Returns the
 * length, in nanoseconds, from which the caller computes the next pause. This is the shortest pause if an event has
 * woken the thread from a long sleep, otherwise pause_ns.
 */
static int64_t writer_thread_pause(nl_log *log, int64_t pause_ns)
{
    bool deep = pause_ns > SHORT_PAUSE_NS && is_quiet(log), watched = log->asleep;
    if (deep && !watched)
        watch_rings(log);
    bool woken = sleep_until_woken(log, pause_ns <= SHORT_PAUSE_NS || (deep && watched) ? pause_ns : SHORT_PAUSE_NS);
    if (woken || !deep)
        __atomic_store_n(&log->asleep, false, __ATOMIC_SEQ_CST);
    return deep && woken ? BUSY_PAUSE_NS : pause_ns;
}

static void *writer_thread_run(void *user)
{
    nl_log *log = user;
    nl_inside = 1; /* only a signal handler could log an event in this thread; the library rejects such events */
    int64_t pause_ns = BUSY_PAUSE_NS;
    __atomic_store_n(&log->asleep, false, __ATOMIC_RELAXED); /* the flag may still be set from before a fork */
    for (bool stop = false; !stop;) {
        pthread_mutex_lock(&log->mutex);
        uint64_t wanted = log->flush_wanted;
        bool flush = wanted != log->flush_done;
        stop = log->stop;
        const bool ending = log->ending;
        pthread_mutex_unlock(&log->mutex);
        if (ending)
            nl_outbox_stop_sending(&log->outbox);
        if (!stop) {
            nl_activation_look(log);
            nl_control_report(log);
            report_unnamed(log);
            nl_clock_watch_look(log);
        } else {
            nl_clock_watch_finish(log);
        }
        log->flush_ticks = stop ? UINT64_MAX : 0;
        nl_outbox_begin_flush(&log->outbox, flush || stop);
        next_step step = writer_thread_look(log, flush || stop, stop);
        bool woken = false;
        while ((flush || stop) && step != STEP_END) {
            if (step == STEP_AWAIT_SENDER)
                woken |= sleep_until_woken(log, BUSY_PAUSE_NS);
            step = writer_thread_look(log, true, stop);
        }
        if (flush)
            finish_flush(log, wanted);
        if (step != STEP_END || stop || woken)
            continue;
        pause_ns = next_pause_ns(log, pause_ns);
        pause_ns = writer_thread_pause(log, pause_ns);
    }
    return NULL;
}

/*
 * The thread's function. writer_thread_run is a separate function, because it runs in a thread of the program if no
 * thread can be created.
 */
static void *thread_main(void *log)
{
    prctl(PR_SET_TIMERSLACK, (unsigned long)TIMER_SLACK_NS);
    return writer_thread_run(log);
}

bool nl_writer_thread_start(nl_log *log)
{
    bool started = nl_thread_create_small(&log->thread, STACK_SIZE, thread_main, log) == 0;
    if (started)
        pthread_setname_np(log->thread, "netlogger");
    return started;
}

uint64_t nl_writer_thread_ask(nl_log *log)
{
    if (!log->running && log->rings != NULL) /* creating a thread has failed before */
        log->running = nl_writer_thread_start(log);
    nl_writer_thread_wake(log);
    return log->running ? ++log->flush_wanted : 0;
}

nl_status nl_writer_thread_await(nl_log *log, uint64_t wanted)
{
    if (!log->running)
        return log->rings == NULL ? NL_OK : nl_error_set(NL_ERROR_SYSTEM, "cannot start a thread for the log");
    while (log->flush_done < wanted && log->running)
        pthread_cond_wait(&log->flushed, &log->mutex);
    return log->flush_status == NL_OK ? NL_OK : nl_error_restore(&log->flush_error);
}

void nl_writer_thread_stop(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    bool running = log->running;
    log->stop = true;
    pthread_mutex_unlock(&log->mutex);
    if (!running && log->rings != NULL) { /* the library could not create the thread */
        unsigned inside = nl_inside;
        writer_thread_run(log);
        nl_inside = inside;
    }
    if (!running)
        return;
    nl_writer_thread_wake(log);
    pthread_join(log->thread, NULL);
    log->running = false;
}
