#include "config.h"

#include "log/log_internal.h"

#include "base/pages.h"
#include "log/clock.h"
#include "log/site.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

__thread nl_ring_producer *nl_private_rings[NL_PRIVATE_SLOTS];
__thread unsigned nl_inside;

enum { SLOTS = 496 }; /* maximum number of open logs whose rings threads find without a lock */

/* A thread that has logged. It is not on the heap, because its first event may be in a signal handler. */
typedef struct nl_thread {
    struct nl_thread *next;
    nl_ring_producer **slots;                /* its nl_private_rings */
    nl_ring *more[SLOTS - NL_PRIVATE_SLOTS]; /* of logs with later slots */
    nl_ring *rings;                          /* by next_of_thread */
} nl_thread;

static nl_thread *threads;
static bool slots_taken[SLOTS];
static __thread nl_thread *self;
static __thread unsigned exits; /* number of calls of on_thread_exit */
static __thread bool gone;      /* the thread is ending and must not create rings */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void remove_thread(nl_thread *thread)
{
    for (nl_thread **at = &threads; *at != NULL; at = &(*at)->next)
        if (*at == thread) {
            *at = thread->next;
            break;
        }
    nl_pages_free(thread, sizeof *thread);
}

/* Counts events that were lost or refused while threads had no ring in the log or this ring was busy. */
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

/* Marks the ring as busy: until busy is 0, the library refuses events of signal handlers. The mark precedes the time,
 * as in nl_private_begin, because the writer thread reads both. */
static void hold(nl_ring *ring)
{
    __atomic_store_n(&ring->producer.busy, 2, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&ring->producer.called, nl_private_ticks(&ring->producer), __ATOMIC_RELEASE);
}

static void let_go(nl_ring *ring)
{
    __atomic_store_n(&ring->producer.busy, 0, __ATOMIC_RELEASE);
}

static void on_thread_exit(void *unused)
{
    /* Other destructors may log until the last round but one. In the last round, the thread sanitizer forbids locks.
     * Signal handlers may run even later. */
    if (self == NULL || (++exits < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && pthread_setspecific(key, unused) == 0))
        return;
    gone = true;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    /* First hide the rings from signal handlers. */
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

static void make_key(void)
{
    pthread_key_create(&key, on_thread_exit);
}

/*
 * Creates the key when the library is loaded, because setting a later key of a process allocates memory, and a first
 * event may be in a signal handler.
 */
__attribute__((constructor)) static void on_load(void)
{
    pthread_once(&key_once, make_key);
}

static bool know_thread(void)
{
    if (self != NULL)
        return true;
    pthread_once(&key_once, make_key);
    nl_thread *thread = nl_pages_new(sizeof *thread);
    if (thread == NULL)
        return false;
    *thread = (nl_thread){.next = threads, .slots = nl_private_rings};
    threads = self = thread;
    pthread_setspecific(key, thread);
    return true;
}

/* Returns an empty ring of a thread that has ended, or NULL. */
static nl_ring *reuse_ring(nl_log *log)
{
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next) {
        const nl_shared_ring *shared = ring->shared;
        if (__atomic_load_n(&ring->in_use, __ATOMIC_ACQUIRE) || nl_ring_has_lost(ring) ||
            __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE) != shared->published) /* or pinned */
            continue;
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
    if (slot < NL_PRIVATE_SLOTS)
        return (nl_ring *)(void *)nl_private_rings[slot];
    nl_thread *thread = self;
    return thread != NULL && slot < SLOTS ? __atomic_load_n(&thread->more[slot - NL_PRIVATE_SLOTS], __ATOMIC_RELAXED)
                                          : NULL;
}

/* ring may be NULL. */
static void set_known_ring(nl_thread *thread, const nl_log *log, nl_ring *ring)
{
    unsigned slot = log->gate.slot;
    if (slot < NL_PRIVATE_SLOTS)
        thread->slots[slot] = ring != NULL ? &ring->producer : NULL;
    else if (slot < SLOTS)
        __atomic_store_n(&thread->more[slot - NL_PRIVATE_SLOTS], ring, __ATOMIC_RELAXED);
}

/* Ensures that the log has a description and a writer thread, and looks for a free ring. Returns false if memory runs
 * out. */
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

/* Announces to the writer thread that an event with this time follows. */
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

/* Creates a ring for this thread's first event in a log without the registry's lock, so that threads that start
 * together do not wait for each other. */
static nl_ring *make_ring(nl_log *log)
{
    nl_ring *ring = NULL;
    unsigned number = 0;
    nl_registry_lock();
    bool good = know_thread();
    for (nl_ring *old = good ? self->rings : NULL; old != NULL && ring == NULL; old = old->next_of_thread)
        ring = old->log == log ? old : NULL;
    bool is_old = ring != NULL; /* of a log without a slot */
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
        hold(ring);
        __atomic_store_n(&ring->producer.called, called, __ATOMIC_RELEASE);
        set_known_ring(self, log, ring);
    }
    end_first(log);
    return ring;
}

/* Returns the busy ring with space for the event; NULL if the event is lost. Not reentrant: nl_inside is set. */
static nl_ring *ready_ring(nl_log *log, nl_level level, size_t size)
{
    nl_ring *ring = known_ring(log);
    bool in_the_middle = ring != NULL && ring->producer.busy; /* a signal handler interrupted this thread's event */
    if (in_the_middle) {
        nl_ring_refuse(ring);
        return NULL;
    }
    if (ring != NULL)
        hold(ring);
    else if ((ring = first_ring(log)) == NULL)
        return NULL;
    count_refused(ring);
    if (__atomic_load_n(&log->asleep, __ATOMIC_SEQ_CST))
        nl_writer_thread_wake(log);
    bool found = nl_ring_make_room(ring, size, level, nl_writer_thread_wake, log);
    if (__atomic_load_n(&log->asleep,
                        __ATOMIC_SEQ_CST)) /* the writer thread fell asleep meanwhile, and its limit was overwritten */
        nl_ring_stop_at(ring, 0);
    if (found)
        return ring;
    let_go(ring);
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

nl_ring_producer *nl_producer_prepare(nl_log *log, nl_level level, size_t size)
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

bool nl_producer_know_site(nl_event_site *site)
{
    if (nl_inside > 0)
        return true; /* the event will be rejected */
    if (__atomic_load_n(&site->id, __ATOMIC_ACQUIRE) != 0)
        return true;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    bool known = site->id != 0 || nl_site_register(site);
    nl_registry_unlock();
    nl_leave(&visit);
    return known;
}

nl_ring_producer *nl_private_prepare(nl_log_gate *gate, nl_event_site *site, size_t size)
{
    nl_log *log = (nl_log *)(void *)gate;
    if (!nl_producer_know_site(site)) { /* no memory for its names */
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
            hold(ring);
            count_refused(ring);
            bool any = nl_ring_has_lost(ring);
            nl_ring_report_lost(ring);
            let_go(ring);
            return any;
        }
    return false;
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
    for (nl_thread *thread = threads, *next; thread != NULL; thread = next) {
        next = thread->next;
        if (thread != self)
            nl_pages_free(thread, sizeof *thread);
    }
    threads = self;
    if (self != NULL)
        *self = (nl_thread){.slots = nl_private_rings};
    memset(nl_private_rings, 0, sizeof nl_private_rings);
}
