#include "config.h"

#include "log/ring.h"

#include "base/monotonic.h"
#include "base/pages.h"
#include "log/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LOST_SIZE = sizeof(nl_event_header) + sizeof(nl_lost_event),
    SPINS = 200,          /* number of checks of a full ring before sleeping */
    SLEEP_NS = 20 * 1000, /* about the time that the writer thread needs for a batch */
    OVERWRITE_PART = 16,  /* the policy "oldest" frees a 16th of the ring at a time */
};

static uint64_t ring_size(const nl_ring *ring)
{
    return ring->mask + 1;
}

void nl_ring_begin_stream(nl_ring *ring)
{
    nl_shared_ring *shared = ring->shared;
    if (getrandom(shared->stream, sizeof shared->stream, 0) != (ssize_t)sizeof shared->stream)
        memcpy(shared->stream, &(int64_t){nl_time_now_ns()}, sizeof(int64_t));
    shared->thread = (uint32_t)syscall(SYS_gettid);
    shared->thread_gone = 0;
    /* Atomic, because the writer thread reads the sequence number in every ring, even in an empty ring. */
    __atomic_store_n(&shared->sequence, 0, __ATOMIC_RELAXED);
    ring->last_time_ns = 0;
    ring->stuck_since_ns = 0;
    ring->refused = 0;
    __atomic_store_n(&ring->in_use, true, __ATOMIC_RELEASE);
}

nl_ring *nl_ring_over(const nl_mapping *mapping, size_t size)
{
    nl_ring *ring = nl_pages_new(sizeof *ring);
    if (ring == NULL)
        return NULL;
    ring->mapping = *mapping;
    ring->shared = (nl_shared_ring *)(void *)mapping->memory;
    ring->data = ring->producer.data = mapping->memory + NL_SHARED_HEADER;
    ring->mask = ring->producer.mask = size - 1;
    ring->producer.head = ring->shared->published;
    ring->producer.published = &ring->shared->published;
    return ring;
}

nl_ring *nl_ring_make(size_t size, unsigned log, unsigned number)
{
    nl_mapping mapping;
    size_t whole = NL_SHARED_HEADER + size;
    if (!nl_mapping_make(&mapping, whole, whole, NL_SHARED_HEADER, "ring-%u-%u", log, number))
        return NULL;
    nl_ring *ring = nl_ring_over(&mapping, size);
    if (ring == NULL) {
        int error = errno;
        nl_mapping_remove(&mapping);
        errno = error;
        return NULL;
    }
    nl_shared_head_set(&ring->shared->head);
    ring->shared->size = size;
    ring->shared->log = log;
    ring->producer.limit = size;
    ring->producer.slow_clock = !nl_clock_has_counter();
    /* Write to all pages now, so that a thread's first events do not cause page faults. */
    memset(ring->producer.data, 0, size);
    nl_ring_begin_stream(ring);
    return ring;
}

void nl_ring_remove(nl_ring *ring)
{
    nl_mapping_remove(&ring->mapping);
    nl_pages_free(ring, sizeof *ring);
}

/* Only the ring's thread changes the counts; other threads may read them. */
static void set_lost(nl_lost_event *lost, uint64_t full, uint64_t refused)
{
    __atomic_store_n(&lost->full, full, __ATOMIC_RELAXED);
    __atomic_store_n(&lost->refused, refused, __ATOMIC_RELAXED);
}

static void add_lost(nl_ring *ring, const nl_lost_event *more)
{
    nl_lost_event *sum = &ring->shared->lost;
    if (sum->full + sum->refused == 0)
        sum->from_ticks = more->from_ticks;
    sum->to_ticks = more->to_ticks;
    set_lost(sum, sum->full + more->full, sum->refused + more->refused);
}

void nl_ring_count_lost(nl_ring *ring, uint64_t full, uint64_t refused)
{
    uint64_t now_ticks = nl_private_ticks(&ring->producer);
    add_lost(ring, &(nl_lost_event){full, refused, now_ticks, now_ticks});
}

static uint64_t free_size(const nl_ring *ring)
{
    return ring_size(ring) - (ring->producer.head - nl_ring_tail(ring));
}

bool nl_ring_has_lost(const nl_ring *ring)
{
    const nl_lost_event *lost = &ring->shared->lost;
    return __atomic_load_n(&lost->full, __ATOMIC_RELAXED) + __atomic_load_n(&lost->refused, __ATOMIC_RELAXED) > 0;
}

bool nl_ring_is_empty(const nl_ring *ring)
{
    return nl_ring_tail(ring) == __atomic_load_n(&ring->shared->published, __ATOMIC_ACQUIRE);
}

void nl_ring_report_lost(nl_ring *ring)
{
    if (!nl_ring_has_lost(ring) || free_size(ring) < LOST_SIZE)
        return;
    nl_ring_producer *p = &ring->producer;
    char *at = p->data + (p->head & p->mask);
    /*
     * The report's time must not be later than the time of the following event, which is the time of that event's call.
     */
    uint64_t ticks = p->busy == 2 ? p->called : nl_private_ticks(p);
    nl_event_header header = {LOST_SIZE, NL_SITE_LOST, ticks};
    memcpy(at, &header, sizeof header);
    memcpy(at + sizeof header, &ring->shared->lost, sizeof ring->shared->lost);
    set_lost(&ring->shared->lost, 0, 0);
    p->head += LOST_SIZE;
    __atomic_store_n(p->published, p->head, __ATOMIC_RELEASE);
}

/* Returns whether the ring has space for the event and for a report of losses before it. */
static bool fits(const nl_ring *ring, size_t size)
{
    return free_size(ring) >= size + (nl_ring_has_lost(ring) ? LOST_SIZE : 0);
}

/* Counts the events between `from` and `to` as lost. The events are complete, because this producer wrote them. */
static void count_overwritten(nl_ring *ring, uint64_t from, uint64_t to, nl_lost_event *lost)
{
    nl_event_header header;
    for (uint64_t at = from; at < to; at += header.size) {
        memcpy(&header, ring->data + (at & ring->mask), sizeof header);
        if (header.site == NL_SITE_LOST) {
            nl_lost_event before;
            memcpy(&before, ring->data + (at & ring->mask) + sizeof header, sizeof before);
            lost->full += before.full;
            lost->refused += before.refused;
            header.ticks = before.from_ticks;
        } else {
            lost->full++;
        }
        if (lost->from_ticks == 0)
            lost->from_ticks = header.ticks;
        lost->to_ticks = header.ticks;
    }
}

/*
 * For the policy "oldest", removes the oldest events, unless the reader is active. Returns whether the ring then has
 * space for an event of size bytes.
 */
static bool overwrite(nl_ring *ring, size_t size)
{
    uint64_t tail = __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
    if (tail & NL_TAIL_PINNED)
        return false;
    uint64_t wanted = ring_size(ring) / OVERWRITE_PART + size + LOST_SIZE, to = tail;
    nl_event_header header;
    while (to < ring->producer.head && to - tail < wanted) {
        memcpy(&header, ring->data + (to & ring->mask), sizeof header);
        to += header.size;
    }
    if (!__atomic_compare_exchange_n(&ring->shared->tail, &tail, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    nl_lost_event lost = {0};
    count_overwritten(ring, tail, to, &lost);
    add_lost(ring, &lost);
    return fits(ring, size);
}

static bool wait_for_room(nl_ring *ring, size_t size, void (*wake)(void *user), void *user)
{
    uint64_t tail = nl_ring_tail(ring);
    if (ring->stuck_since_ns != 0 && ring->stuck_tail == tail)
        return false;
    ring->stuck_since_ns = 0;
    wake(user);
    for (int i = 0; i < SPINS; i++) {
        if (fits(ring, size))
            return true;
        sched_yield();
    }
    int64_t start_ns = nl_monotonic_ns(), waited_ns = 0;
    while (waited_ns < ring->policy->block_ns) {
        if (fits(ring, size))
            return true;
        wake(user);
        nanosleep(&(struct timespec){.tv_nsec = waited_ns < 10000000 ? SLEEP_NS : 50 * SLEEP_NS}, NULL);
        waited_ns = nl_monotonic_ns() - start_ns;
    }
    /* Later events do not wait again until the reader has moved. */
    ring->stuck_since_ns = start_ns;
    ring->stuck_tail = nl_ring_tail(ring);
    return fits(ring, size);
}

static void set_limit(nl_ring *ring)
{
    uint64_t tail = nl_ring_tail(ring);
    nl_ring_stop_at(ring, tail + (ring->policy->kind == NL_POLICY_LEVEL ? ring_size(ring) / 2 : ring_size(ring)));
}

static bool find_space(nl_ring *ring, size_t size, nl_level level, void (*wake)(void *user), void *user)
{
    if (size > ring_size(ring) / 4 || size > NL_EVENT_MAX)
        return false;
    const nl_ring_policy *policy = ring->policy;
    bool minor = policy->kind == NL_POLICY_LEVEL && level > policy->keep_level;
    if (minor && free_size(ring) < ring_size(ring) / 2 + size)
        return false;
    if (fits(ring, size))
        return true;
    switch (policy->kind) {
    case NL_POLICY_BLOCK:
    case NL_POLICY_LEVEL:
        return wait_for_room(ring, size, wake, user);
    case NL_POLICY_OLDEST:
        return overwrite(ring, size);
    case NL_POLICY_NEWEST:
        break;
    }
    return false;
}

bool nl_ring_make_space(nl_ring *ring, size_t size, nl_level level, void (*wake)(void *user), void *user)
{
    bool found = find_space(ring, size, level, wake, user);
    /* Losses are reported with the next event that fits, so that reports do not fill the ring. */
    if (found)
        nl_ring_report_lost(ring);
    else
        nl_ring_count_lost(ring, 1, 0);
    set_limit(ring);
    if (__atomic_load_n(&ring->refused, __ATOMIC_RELAXED) > 0) /* a signal handler ran since the check above */
        nl_ring_stop_at(ring, 0);
    return found;
}

void nl_ring_thread_gone(nl_ring *ring)
{
    nl_ring_report_lost(ring);
    __atomic_store_n(&ring->producer.busy, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&ring->shared->thread_gone, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&ring->in_use, false, __ATOMIC_RELEASE);
}

void nl_ring_pin(nl_ring *ring)
{
    uint64_t tail = __atomic_or_fetch(&ring->shared->tail, NL_TAIL_PINNED, __ATOMIC_ACQ_REL);
    ring->at = tail & ~NL_TAIL_PINNED;
    ring->end = __atomic_load_n(&ring->shared->published, __ATOMIC_ACQUIRE);
    ring->sequence = __atomic_load_n(&ring->shared->sequence, __ATOMIC_RELAXED);
}

void nl_ring_unpin(nl_ring *ring)
{
    __atomic_and_fetch(&ring->shared->tail, ~NL_TAIL_PINNED, __ATOMIC_ACQ_REL);
}
