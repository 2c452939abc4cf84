#include "config.h"

#include "log/log_internal.h"

#include "base/monotonic.h"
#include "base/pages.h"
#include "base/thread.h"
#include "log/clock.h"
#include "log/report.h"
#include "log/site.h"

#include <limits.h>
#include <string.h>

/*
 * NL_EVENT finds the thread's rings here, without a lock. While the thread's events have a context, the entries are
 * NULL, so that events take the slow path, which adds the context. Spans therefore do not slow down events outside
 * spans. The slow path finds the ring in nl_thread, and restores the entry when events no longer have a context.
 */
__thread nl_ring_producer *nl_private_rings[NL_PRIVATE_SLOTS];
__thread unsigned nl_inside;
static __thread unsigned entries_end; /* the entries from this index on have always been NULL */

enum { SLOTS = 496 }; /* maximum number of open logs whose rings threads find without a lock */

/* The size of the data that precedes an event in a span. */
enum { CONTEXT_SIZE = sizeof(nl_event_header) + sizeof(nl_span_ids) };

/*
 * The state of a thread that has logged an event. The struct is not on the heap, because the thread's first event may
 * be in a signal handler.
 */
typedef struct nl_thread {
    struct nl_thread *next;
    nl_ring_producer **entries; /* the thread's nl_private_rings */
    nl_ring *by_slot[SLOTS];
    nl_ring *rings; /* the thread's rings, linked by next_of_thread */
} nl_thread;

static nl_thread *threads;
static bool slots_taken[SLOTS];
static __thread nl_thread *self;
static __thread unsigned exits; /* number of calls of on_thread_exit */
static __thread bool gone;      /* the thread is ending and must not create rings */
static bool ended;              /* the process is ending, and accepts no more events */

static void on_thread_exit(void *unused);
NL_THREAD_KEY(thread_key, on_thread_exit)

static void remove_thread(nl_thread *thread)
{
    for (nl_thread **at = &threads; *at != NULL; at = &(*at)->next)
        if (*at == thread) {
            *at = thread->next;
            break;
        }
    nl_pages_free(thread, sizeof *thread);
}

/*
 * Adds to this ring's counts the events that were lost or rejected while the ring was busy, and the lost events of
 * threads that had no ring in the log.
 */
static void count_refused(nl_ring *ring)
{
    nl_log *log = ring->log;
    uint64_t refused = __atomic_exchange_n(&ring->refused, 0, __ATOMIC_RELAXED);
    uint64_t lost = 0;
    if (__atomic_load_n(&log->refused, __ATOMIC_RELAXED) > 0)
        refused += __atomic_exchange_n(&log->refused, 0, __ATOMIC_RELAXED);
    if (__atomic_load_n(&log->lost, __ATOMIC_RELAXED) > 0)
        lost = __atomic_exchange_n(&log->lost, 0, __ATOMIC_RELAXED);
    if (refused + lost > 0)
        nl_ring_count_lost(ring, lost, refused);
}

/*
 * Marks the ring as busy, so that the library rejects events of signal handlers until clear_busy. Reads the time after
 * setting the mark, as nl_private_begin does; the writer thread relies on this order (ordered_until).
 */
static void mark_busy(nl_ring *ring)
{
    __atomic_store_n(&ring->producer.busy, 2, __ATOMIC_SEQ_CST);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&ring->producer.called, nl_private_ticks(&ring->producer), __ATOMIC_RELEASE);
}

static void clear_busy(nl_ring *ring)
{
    __atomic_store_n(&ring->producer.busy, 0, __ATOMIC_RELEASE);
}

static void on_thread_exit(void *unused)
{
    /*
     * Other destructors of thread-specific data may log, so the rings stay until the second-to-last round. In the last
     * round, the thread sanitizer forbids locks. Signal handlers may run even later.
     */
    if (self == NULL || (++exits < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && thread_key_set(unused) == 0))
        return;
    gone = true;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    /* Hide the rings from signal handlers first. */
    nl_thread *thread = self;
    memset(nl_private_rings, 0, sizeof nl_private_rings);
    self = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (nl_ring *ring = thread->rings; ring != NULL; ring = ring->next_of_thread) {
        count_refused(ring);
        nl_ring_thread_gone(ring);
    }
    remove_thread(thread);
    nl_registry_unlock();
    nl_leave(&visit);
}

static bool know_thread(void)
{
    if (self != NULL)
        return true;
    nl_thread *thread = nl_pages_new(sizeof *thread);
    if (thread == NULL)
        return false;
    *thread = (nl_thread){.next = threads, .entries = nl_private_rings};
    threads = self = thread;
    thread_key_set(thread);
    return true;
}

/* Begins a stream in an empty ring of a thread that has ended, and returns the ring. Returns NULL without such a ring.
 */
static nl_ring *reuse_ring(nl_log *log)
{
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next) {
        const nl_shared_ring *shared = ring->shared;
        if (__atomic_load_n(&ring->in_use, __ATOMIC_ACQUIRE) || nl_ring_has_lost(ring) ||
            __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE) != shared->published)
            continue; /* the ring is in use, has a loss to report, is pinned, or has events */
        nl_ring_begin_stream(ring);
        return ring;
    }
    return NULL;
}

bool nl_log_describe(nl_log *log)
{
    if (log->outbox.shared == NULL) {
        if (nl_outbox_make_batch(&log->outbox, log->number) != NL_OK)
            return false;
        if (!log->outbox.mapping.named)
            log->unnamed = log->outbox.mapping.error;
        nl_clock clock;
        nl_clock_start(&clock);
        nl_clock_save(&clock, log->outbox.shared->clock);
        log->described_ns = nl_monotonic_ns();
        log->outbox.shared->slow_clock = clock.slow;
    }
    nl_shared_log *shared = log->outbox.shared;
    shared->zstd_level = log->options.writer.zstd_level > 0 ? log->options.writer.zstd_level : 0;
    memcpy(shared->url, log->recovery_url, sizeof shared->url);
    strncpy(shared->host, log->host.data, sizeof shared->host - 1);
    strncpy(shared->prog, log->prog.data, sizeof shared->prog - 1);
    __atomic_store_n(&shared->format, log->options.writer.format, __ATOMIC_RELEASE);
    return true;
}

static uint64_t ticks_now(void)
{
    return nl_private_ticks(&(nl_ring_producer){.slow_clock = !nl_clock_has_counter()});
}

/* Returns the calling thread's ring in the log; NULL if the thread has no ring in the log, or the log has no slot. */
static nl_ring *known_ring(const nl_log *log)
{
    unsigned slot = log->gate.slot;
    const nl_thread *thread = self;
    return thread != NULL && slot < SLOTS ? __atomic_load_n(&thread->by_slot[slot], __ATOMIC_RELAXED) : NULL;
}

static void set_known_ring(nl_thread *thread, const nl_log *log, nl_ring *ring)
{
    unsigned slot = log->gate.slot;
    if (slot < NL_PRIVATE_SLOTS && ring == NULL) {
        __atomic_store_n(&thread->entries[slot], NULL, __ATOMIC_RELAXED);
    } else if (slot < NL_PRIVATE_SLOTS && !nl_private_current.carried) { /* only the thread itself sets a ring */
        entries_end = slot < entries_end ? entries_end : slot + 1;
        nl_private_rings[slot] = &ring->producer;
    }
    if (slot < SLOTS)
        __atomic_store_n(&thread->by_slot[slot], ring, __ATOMIC_RELAXED);
}

void nl_producer_carry_context(void)
{
    for (unsigned i = 0; i < entries_end; i++) /* atomic, because another thread may close a log */
        __atomic_store_n(&nl_private_rings[i], NULL, __ATOMIC_RELAXED);
}

bool nl_event_has_space(const nl_log *log, size_t size)
{
    if (log == NULL || log->gate.slot >= NL_PRIVATE_SLOTS)
        return log == NULL;
    const nl_ring *ring = known_ring(log);
    if (ring == NULL || size > NL_EVENT_MAX)
        return false;
    if (nl_private_current.carried)
        size += CONTEXT_SIZE;
    return ring->producer.head + size <= __atomic_load_n(&ring->producer.limit, __ATOMIC_RELAXED);
}

/*
 * Ensures that the log has a description and a writer thread, and looks for a free ring. Sets *reused to the free ring,
 * or to NULL if all rings are in use, and *number to the number of a new ring. Returns false if memory runs out.
 */
static bool prepare_ring(nl_log *log, nl_ring **reused, unsigned *number)
{
    pthread_mutex_lock(&log->mutex);
    bool good = nl_log_describe(log);
    if (good && (*reused = reuse_ring(log)) == NULL)
        *number = log->rings_made++;
    if (good && !log->running)
        log->running = nl_writer_thread_start(log);
    pthread_mutex_unlock(&log->mutex);
    return good;
}

static void add_ring(nl_log *log, nl_ring *ring)
{
    ring->policy = &log->options.policy;
    ring->log = log;
    pthread_mutex_lock(&log->mutex);
    if (!ring->mapping.named && log->unnamed == 0)
        log->unnamed = ring->mapping.error;
    ring->next = log->rings;
    log->rings = ring;
    pthread_mutex_unlock(&log->mutex);
}

/* Announces the first event of a thread to the writer thread. Returns the time of this event, in ticks. */
static uint64_t begin_first(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    uint64_t called = ticks_now();
    if (log->beginning++ == 0)
        log->beginning_ticks = called;
    pthread_mutex_unlock(&log->mutex);
    return called;
}

static void end_first(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    log->beginning--;
    pthread_mutex_unlock(&log->mutex);
}

/*
 * Returns the thread's ring in a log without a slot, an unused ring, or a new ring; NULL on failure. Creates the new
 * ring after releasing the registry's lock, so that threads that start together do not wait for each other.
 */
static nl_ring *make_ring(nl_log *log)
{
    nl_ring *ring = NULL;
    unsigned number = 0;
    nl_registry_lock();
    bool good = !__atomic_load_n(&ended, __ATOMIC_SEQ_CST) && know_thread();
    for (nl_ring *old = good ? self->rings : NULL; old != NULL && ring == NULL; old = old->next_of_thread)
        ring = old->log == log ? old : NULL;
    bool is_old = ring != NULL; /* the ring belongs to a log without a slot */
    good = good && (is_old || prepare_ring(log, &ring, &number));
    nl_registry_unlock();
    if (!good || is_old)
        return ring;
    if (ring == NULL) {
        ring = nl_ring_make(log->options.ring_size, log->number, number);
        if (ring == NULL)
            return NULL;
        add_ring(log, ring);
    }
    nl_registry_lock();
    ring->next_of_thread = self->rings;
    self->rings = ring;
    nl_registry_unlock();
    return ring;
}

/* Returns the busy ring of a thread that has no known ring in the log; NULL if the event is lost. */
static nl_ring *first_ring(nl_log *log)
{
    uint64_t called = begin_first(log);
    nl_ring *ring = make_ring(log);
    if (ring == NULL) {
        __atomic_add_fetch(&log->lost, 1, __ATOMIC_RELAXED);
    } else if (ring->producer.busy) { /* a signal handler interrupted an event of this thread */
        nl_ring_refuse(ring);
        ring = NULL;
    } else {
        mark_busy(ring);
        __atomic_store_n(&ring->producer.called, called, __ATOMIC_RELEASE);
    }
    end_first(log);
    return ring;
}

/*
 * Returns whether the process is ending, and no longer accepts events. If so, prints a message once, because the log
 * can no longer report lost events. The order of the stores and loads in mark_busy, here and in nl_producer_finish
 * ensures that either this thread finds `ended` set, or nl_producer_finish finds the ring busy.
 */
static bool is_too_late(const nl_log *log)
{
    static bool reported;
    if (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
        return false;
    if (log->outbox.reports && !__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED))
        nl_report(NL_MESSAGE_CLOSE, log->url, "the program is ending; events that its threads still log are lost");
    return true;
}

/* Returns the busy ring with space for the event; NULL if the event is lost. Not reentrant. The caller has set
 * nl_inside. */
static nl_ring *ready_ring(nl_log *log, nl_level level, size_t size)
{
    nl_ring *ring = known_ring(log);
    bool in_the_middle = ring != NULL && ring->producer.busy; /* a signal handler interrupted this thread's event */
    if (in_the_middle) {
        nl_ring_refuse(ring);
        return NULL;
    }
    if (is_too_late(log)) { /* this check precedes the mark, because nl_producer_finish waits for busy rings */
        nl_producer_refuse(log);
        return NULL;
    }
    if (ring != NULL)
        mark_busy(ring);
    else
        ring = first_ring(log);
    if (is_too_late(log)) {
        if (ring != NULL) {
            clear_busy(ring);
            nl_ring_refuse(ring);
        }
        return NULL;
    }
    if (ring == NULL)
        return NULL;
    set_known_ring(self, log, ring);
    count_refused(ring);
    if (__atomic_load_n(&log->asleep, __ATOMIC_SEQ_CST))
        nl_writer_thread_wake(log);
    bool found = nl_ring_make_space(ring, size, level, nl_writer_thread_wake, log);
    /* If the writer thread or nl_producer_finish has set the limit in the meantime, that limit was overwritten. */
    if (__atomic_load_n(&log->asleep, __ATOMIC_SEQ_CST) || __atomic_load_n(&ended, __ATOMIC_SEQ_CST))
        nl_ring_stop_at(ring, 0);
    if (found)
        return ring;
    clear_busy(ring);
    return NULL;
}

void nl_producer_lose(nl_log *log)
{
    __atomic_add_fetch(&log->lost, 1, __ATOMIC_RELAXED);
}

void nl_producer_refuse(nl_log *log)
{
    nl_ring *ring = known_ring(log);
    if (gone)
        __atomic_add_fetch(&log->lost, 1, __ATOMIC_RELAXED);
    else if (ring == NULL)
        __atomic_add_fetch(&log->refused, 1, __ATOMIC_RELAXED);
    else
        nl_ring_refuse(ring);
}

static nl_ring_producer *prepare_plain(nl_log *log, nl_level level, size_t size)
{
    if (nl_inside > 0 || gone) {
        nl_producer_refuse(log);
        return NULL;
    }
    const nl_visit visit = nl_enter();
    nl_ring *ring = ready_ring(log, level, size);
    nl_leave(&visit);
    return ring != NULL ? &ring->producer : NULL;
}

/* If the thread has a ring with space for the event, marks the ring as busy and returns it. Otherwise, returns NULL. */
static inline nl_ring_producer *prepare_known(const nl_log *log, size_t size)
{
    nl_ring *known = known_ring(log);
    if (known == NULL || known->producer.busy)
        return NULL;
    nl_ring_producer *ring = &known->producer;
    __atomic_store_n(&ring->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(ring->head + size <= __atomic_load_n(&ring->limit, __ATOMIC_RELAXED), 1)) {
        __atomic_store_n(&ring->called, nl_private_ticks(ring), __ATOMIC_RELAXED);
        return ring;
    }
    __atomic_store_n(&ring->busy, 0, __ATOMIC_RELEASE);
    return NULL;
}

nl_ring_producer *nl_producer_prepare(nl_log *log, nl_level level, size_t size)
{
    if (!nl_private_current.carried)
        return prepare_plain(log, level, size);
    nl_ring_producer *ring = prepare_known(log, CONTEXT_SIZE + size);
    if (ring == NULL)
        ring = prepare_plain(log, level, CONTEXT_SIZE + size);
    if (ring == NULL)
        return NULL;
    char *at = ring->data + (ring->head & ring->mask);
    nl_event_header header = {(uint32_t)(CONTEXT_SIZE + size), NL_SITE_IN_SPAN, ring->called};
    memcpy(at, &header, sizeof header);
    memcpy(at + sizeof header, nl_private_current.context.trace_id, sizeof(nl_span_ids));
    ring->head += CONTEXT_SIZE; /* published together with the event, which the caller puts after it */
    return ring;
}

char *nl_producer_begin(nl_log *log, nl_event_site *site, size_t size, nl_ring_producer **out)
{
    nl_ring_producer *ring = NULL;
    if (__builtin_expect(__atomic_load_n(&site->id, __ATOMIC_ACQUIRE) != 0, 1))
        ring = prepare_known(log, size);
    if (__builtin_expect(ring == NULL, 0)) {
        if (!nl_producer_know_site(site)) {
            nl_producer_lose(log);
            return NULL;
        }
        if (__atomic_load_n(&site->off, __ATOMIC_RELAXED))
            return NULL;
        ring = prepare_plain(log, (nl_level)site->level, size);
        if (ring == NULL)
            return NULL;
        __atomic_store_n(&ring->busy, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
    *out = ring;
    char *at = ring->data + (ring->head & ring->mask);
    __builtin_prefetch(at + NL_PRIVATE_AHEAD, 1);
    nl_event_header header = {(uint32_t)size, __atomic_load_n(&site->id, __ATOMIC_RELAXED), ring->called};
    memcpy(at, &header, sizeof header);
    return at + sizeof header;
}

bool nl_producer_know_site(nl_event_site *site)
{
    if (nl_inside > 0)
        return true; /* the event will be rejected */
    if (__atomic_load_n(&site->id, __ATOMIC_ACQUIRE) != 0)
        return true;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    /* While the process ends, at_exit removes the shared memory: do not create it again. The event will be rejected. */
    bool known = site->id != 0 || __atomic_load_n(&ended, __ATOMIC_SEQ_CST) || nl_site_register(site);
    nl_registry_unlock();
    nl_leave(&visit);
    return known;
}

nl_ring_producer *nl_private_prepare(nl_log_gate *gate, nl_event_site *site, size_t size)
{
    nl_log *log = (nl_log *)(void *)gate;
    if (!nl_producer_know_site(site)) { /* there is no memory for the site's names */
        nl_producer_lose(log);
        return NULL;
    }
    if (__atomic_load_n(&site->off, __ATOMIC_RELAXED))
        return NULL;
    return nl_producer_prepare(log, (nl_level)site->level, size);
}

bool nl_producer_report_lost(nl_log *log)
{
    for (nl_ring *ring = self != NULL ? self->rings : NULL; ring != NULL; ring = ring->next_of_thread)
        if (ring->log == log) {
            mark_busy(ring);
            count_refused(ring);
            bool any = nl_ring_has_lost(ring);
            nl_ring_report_lost(ring);
            clear_busy(ring);
            return any;
        }
    return false;
}

bool nl_producer_finish(nl_log *log)
{
    bool idle = true;
    __atomic_store_n(&ended, true, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&log->mutex);
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        nl_ring_stop_at(ring, 0);
    for (int64_t start_ns = nl_monotonic_ns(); nl_monotonic_ns() - start_ns < NL_VISIBLE_NS;)
        continue;
    for (const nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        idle &= __atomic_load_n(&ring->producer.busy, __ATOMIC_SEQ_CST) == 0;
    idle &= log->beginning == 0;
    pthread_mutex_unlock(&log->mutex);
    return idle;
}

unsigned nl_slot_take(void)
{
    unsigned slot = 0;
    while (slot < SLOTS && slots_taken[slot])
        slot++;
    if (slot < SLOTS)
        slots_taken[slot] = true;
    return slot;
}

void nl_slot_release(nl_log *log)
{
    for (nl_thread *thread = threads; thread != NULL; thread = thread->next) {
        set_known_ring(thread, log, NULL);
        for (nl_ring **at = &thread->rings; *at != NULL;)
            if ((*at)->log == log)
                *at = (*at)->next_of_thread;
            else
                at = &(*at)->next_of_thread;
    }
    if (log->gate.slot < SLOTS)
        slots_taken[log->gate.slot] = false;
}

void nl_producer_after_fork(void)
{
    ended = false;
    for (nl_thread *thread = threads, *next; thread != NULL; thread = next) {
        next = thread->next;
        if (thread != self)
            nl_pages_free(thread, sizeof *thread);
    }
    threads = self;
    if (self != NULL)
        *self = (nl_thread){.entries = nl_private_rings};
    memset(nl_private_rings, 0, sizeof nl_private_rings);
}
