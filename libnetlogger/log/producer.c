#include "config.h"

#include "log/log_internal.h"

#include "log/site.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

__thread nl_ring_producer *nl_private_rings[NL_PRIVATE_SLOTS];
__thread unsigned nl_inside;

/* A thread that has logged. From no heap, so that its first event may come from a signal handler. */
typedef struct nl_thread {
    struct nl_thread *next;
    nl_ring_producer **slots; /* its nl_private_rings */
    nl_ring *rings;           /* by ->next_of_thread */
} nl_thread;

static nl_thread *threads;
static unsigned slots_taken; /* a bit each */
static __thread nl_thread *self;
static __thread uint64_t refused_here; /* events refused before the thread had a ring */
static __thread unsigned exits;        /* calls of on_thread_exit */
static __thread bool gone;             /* no ring any more, and nothing that would clear one up */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void remove_thread(nl_thread *thread)
{
    for (nl_thread **at = &threads; *at != NULL; at = &(*at)->next)
        if (*at == thread) {
            *at = thread->next;
            break;
        }
    munmap(thread, sizeof *thread);
}

/* What was refused while the thread had no ring, or was at it. */
static void count_refused(nl_ring *ring)
{
    uint64_t refused = ring != NULL ? __atomic_exchange_n(&refused_here, 0, __ATOMIC_RELAXED) : 0;
    if (refused > 0)
        nl_ring_count_lost(ring, 0, refused);
}

/* From here on until busy is 0 again signal handlers leave the ring alone: their events are refused. */
static void hold(nl_ring *ring)
{
    __atomic_store_n(&ring->producer.busy, 2, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void let_go(nl_ring *ring)
{
    __atomic_store_n(&ring->producer.busy, 0, __ATOMIC_RELEASE);
}

static void on_thread_exit(void *unused)
{
    /*
     * Other destructors may log until the last round but one; the last is the thread sanitizer's own, after which no
     * mutex may be touched in a program built with it. Signal handlers may come even after that.
     */
    if (self == NULL || (++exits < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && pthread_setspecific(key, unused) == 0))
        return;
    gone = true;
    nl_inside++;
    nl_registry_lock();
    /* First of all signal handlers lose sight of the rings. */
    memset(nl_private_rings, 0, sizeof nl_private_rings);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    count_refused(self->rings);
    for (nl_ring *ring = self->rings; ring != NULL; ring = ring->next_of_thread)
        nl_ring_thread_gone(ring);
    remove_thread(self);
    self = NULL;
    nl_registry_unlock();
    nl_inside--;
}

static void make_key(void)
{
    pthread_key_create(&key, on_thread_exit);
}

/* At once: setting a process's later keys allocates, and a first event may come from a signal handler. */
__attribute__((constructor)) static void on_load(void)
{
    pthread_once(&key_once, make_key);
}

static bool know_thread(void)
{
    if (self != NULL)
        return true;
    pthread_once(&key_once, make_key);
    nl_thread *thread = mmap(NULL, sizeof *thread, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (thread == MAP_FAILED)
        return false;
    *thread = (nl_thread){.next = threads, .slots = nl_private_rings};
    threads = self = thread;
    pthread_setspecific(key, thread);
    return true;
}

/* A ring whose thread is gone and whose events are all sent. */
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

bool nl_log_write_down(nl_log *log)
{
    if (log->outbox.shared == NULL) {
        if (nl_outbox_make_batch(&log->outbox, log->number) != NL_OK)
            return false;
        nl_clock clock;
        nl_clock_start(&clock);
        nl_clock_save(&clock, log->outbox.shared->clock);
        log->outbox.shared->slow_clock = clock.slow;
    }
    nl_shared_log *shared = log->outbox.shared;
    shared->zstd_level = log->options.writer.zstd_level > 0 ? log->options.writer.zstd_level : 0;
    memcpy(shared->url, log->whole_url, sizeof shared->url);
    strncpy(shared->host, log->host.data, sizeof shared->host - 1);
    strncpy(shared->prog, log->prog.data, sizeof shared->prog - 1);
    __atomic_store_n(&shared->format, log->options.writer.format, __ATOMIC_RELEASE);
    return true;
}

static nl_ring *make_ring(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    if (!nl_log_write_down(log)) {
        pthread_mutex_unlock(&log->mutex);
        return NULL;
    }
    nl_ring *ring = reuse_ring(log);
    if (ring == NULL && (ring = nl_ring_make(log->options.ring_size, log->number, log->rings_made++)) != NULL) {
        ring->policy = &log->options.policy;
        ring->log = log;
        ring->next = log->rings;
        log->rings = ring;
    }
    if (!log->running)
        log->running = nl_writer_thread_start(log);
    pthread_mutex_unlock(&log->mutex);
    return ring;
}

static nl_ring *own_ring(nl_log *log)
{
    if (log->gate.slot < NL_PRIVATE_SLOTS && nl_private_rings[log->gate.slot] != NULL)
        return (nl_ring *)(void *)nl_private_rings[log->gate.slot];
    nl_ring *ring = NULL;
    nl_registry_lock();
    if (know_thread()) {
        for (ring = self->rings; ring != NULL && ring->log != log;)
            ring = ring->next_of_thread;
        if (ring == NULL && (ring = make_ring(log)) != NULL) {
            ring->next_of_thread = self->rings;
            self->rings = ring;
            if (log->gate.slot < NL_PRIVATE_SLOTS)
                nl_private_rings[log->gate.slot] = &ring->producer;
        }
    }
    nl_registry_unlock();
    return ring;
}

/* The ring, ready for an event; NULL when that is lost. Not reentered: nl_inside is set. */
static nl_ring *ready_ring(nl_log *log, nl_level level, size_t size)
{
    nl_ring *ring = own_ring(log);
    if (ring == NULL) {
        __atomic_add_fetch(&log->lost, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (ring->producer.busy) { /* a signal handler, in the middle of this thread's event */
        nl_ring_count_lost(ring, 0, 1);
        ring->producer.limit = 0; /* so that the next event comes here and reports it */
        return NULL;
    }
    hold(ring);
    count_refused(ring);
    if (nl_ring_make_room(ring, size, level, nl_writer_thread_wake, log))
        return ring;
    let_go(ring);
    return NULL;
}

void nl_producer_refuse(nl_log *log)
{
    nl_ring_producer *ring = log->gate.slot < NL_PRIVATE_SLOTS ? nl_private_rings[log->gate.slot] : NULL;
    if (gone) {
        __atomic_add_fetch(&log->lost, 1, __ATOMIC_RELAXED);
        return;
    }
    if (nl_inside > 0 || ring == NULL) { /* the ring, and what it has counted, may be changing */
        refused_here++;
    } else {
        nl_ring_count_lost((nl_ring *)(void *)ring, 0, 1);
        ring->limit = 0; /* so that the next event comes by and reports it */
    }
}

nl_ring_producer *nl_producer_prepare(nl_log *log, nl_level level, size_t size)
{
    if (nl_inside > 0 || gone) {
        nl_producer_refuse(log);
        return NULL;
    }
    int saved = errno;
    nl_inside++;
    nl_ring *ring = ready_ring(log, level, size);
    nl_inside--;
    if (ring != NULL && refused_here > 0) /* in the meantime */
        ring->producer.limit = 0;
    errno = saved;
    return ring != NULL ? &ring->producer : NULL;
}

/* Whether the site is known, and on; made known when it is not. */
static bool is_ready(nl_event_site *site)
{
    if (nl_inside > 0)
        return true; /* about to be refused */
    if (__atomic_load_n(&site->id, __ATOMIC_ACQUIRE) != 0)
        return true;
    int saved = errno;
    nl_inside++;
    nl_registry_lock();
    bool known = site->id != 0 || nl_site_register(site);
    nl_registry_unlock();
    nl_inside--;
    errno = saved;
    return known && !__atomic_load_n(&site->off, __ATOMIC_RELAXED);
}

nl_ring_producer *nl_private_prepare(nl_log_gate *gate, nl_event_site *site, size_t size)
{
    return is_ready(site) ? nl_producer_prepare((nl_log *)(void *)gate, (nl_level)site->level, size) : NULL;
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
    for (unsigned slot = 0; slot < NL_PRIVATE_SLOTS; slot++)
        if ((slots_taken & (1u << slot)) == 0) {
            slots_taken |= 1u << slot;
            return slot;
        }
    return NL_PRIVATE_SLOTS;
}

void nl_slot_release(nl_log *log)
{
    for (nl_thread *thread = threads; thread != NULL; thread = thread->next) {
        if (log->gate.slot < NL_PRIVATE_SLOTS)
            thread->slots[log->gate.slot] = NULL;
        for (nl_ring **at = &thread->rings; *at != NULL;)
            if ((*at)->log == log)
                *at = (*at)->next_of_thread;
            else
                at = &(*at)->next_of_thread;
    }
    if (log->gate.slot < NL_PRIVATE_SLOTS)
        slots_taken &= ~(1u << log->gate.slot);
}

void nl_producer_after_fork(void)
{
    for (nl_thread *thread = threads, *next; thread != NULL; thread = next) {
        next = thread->next;
        if (thread != self)
            munmap(thread, sizeof *thread);
    }
    threads = self;
    if (self != NULL) {
        self->next = NULL;
        self->rings = NULL;
    }
    memset(nl_private_rings, 0, sizeof nl_private_rings);
    refused_here = 0;
}
