/*
 * A ring, which passes the events of one thread in one log to the log's writer thread.
 *
 * A ring has one producer, one reader and no lock. If the ring is full, the log's policy applies to the next event. The
 * ring counts lost events. The ring stores this count as an event (NL_SITE_LOST) before the next event that fits, so
 * that the reader knows where events are missing.
 */
#ifndef NETLOGGER_LOG_RING_H
#define NETLOGGER_LOG_RING_H

#include "log/session.h"
#include "transport/log_options.h"

#include <string.h>

typedef struct nl_ring nl_ring;

struct nl_ring {
    nl_ring_producer producer; /* must be the first member, because NL_EVENT uses the ring as an nl_ring_producer */

    /*
     * Members that both threads read and that rarely change. Aligned to pairs of cache lines, so that these members are
     * not in the cache lines that every event writes.
     */
    nl_shared_ring *shared __attribute__((aligned(128)));
    const char *data; /* the same pointer as producer.data */
    uint64_t mask;
    nl_mapping mapping;
    const nl_ring_policy *policy;
    int64_t stuck_since_ns; /* start of the latest wait that timed out, on the monotonic clock; 0: no such wait */
    uint64_t stuck_tail;    /* tail at the end of that wait; events do not wait until tail has moved */
    nl_ring *next;          /* next in the log's list */
    nl_ring *next_of_thread;
    void *log;        /* the ring's log */
    uint64_t refused; /* number of rejected events of signal handlers that shared->lost does not include yet; signal
                       * handlers increment it */
    bool in_use;      /* a running thread uses the ring; if false, the ring is reused when it is empty */

    /* The reader's members, for one cycle of the writer thread. */
    uint64_t at __attribute__((aligned(128))); /* position of the next event */
    uint64_t end;                              /* end of the published events when the cycle began */
    uint64_t sequence;                         /* sequence number of the event at `at` */
    uint64_t safe_ticks;                       /* time in ticks up to which the thread has published all its events */
    uint64_t busy_head; /* end of the published events when the producer was last seen busy; UINT64_MAX: idle */
    /* Time in ticks when the writer thread first found the producer busy with the head at busy_head. */
    uint64_t busy_ticks;
    int64_t last_time_ns; /* time of the previous event, so that rounding never makes a thread's times decrease */
};

/*
 * Creates a ring of size bytes, a power of two of at least 64 KiB, in the file ring-LOG-NUMBER, without using the heap.
 * Returns NULL with errno on failure.
 */
nl_ring *nl_ring_make(size_t size, unsigned log, unsigned number);

/* Unmaps and frees a ring, and removes its file. */
void nl_ring_remove(nl_ring *ring);

/*
 * Creates a ring over existing shared memory with size bytes of events, and takes ownership of the mapping. Returns
 * NULL with errno on failure; the caller then still owns the mapping.
 */
nl_ring *nl_ring_over(const nl_mapping *mapping, size_t size);

/* Assigns an empty ring to the calling thread, as a new stream. */
void nl_ring_begin_stream(nl_ring *ring);

/*
 * Makes space for an event of size bytes. Returns true if the ring has space; otherwise, counts the event as lost and
 * returns false. While the function waits for space, it calls wake(user) to wake the reader.
 */
bool nl_ring_make_space(nl_ring *ring, size_t size, nl_level level, void (*wake)(void *user), void *user);

/*
 * Makes the next event that ends after the position `limit` take the slow path through nl_ring_make_space. Any thread
 * may call this function.
 */
static inline void nl_ring_stop_at(nl_ring *ring, uint64_t limit)
{
    __atomic_store_n(&ring->producer.limit, limit,
                     __ATOMIC_SEQ_CST); /* sequentially consistent, because ready_ring then reads log->asleep */
}

/* Counts an event of a signal handler that interrupted another event of the thread. */
static inline void nl_ring_refuse(nl_ring *ring)
{
    __atomic_add_fetch(&ring->refused, 1, __ATOMIC_RELAXED);
    nl_ring_stop_at(ring, 0); /* the next event reports the loss */
}

/*
 * Counts lost events. `full` is the number of events that had no space, and `refused` is the number of events of signal
 * handlers.
 */
void nl_ring_count_lost(nl_ring *ring, uint64_t full, uint64_t refused);

/* Returns whether some losses are not in the ring yet. Any thread may call this function. */
bool nl_ring_has_lost(const nl_ring *ring);

/*
 * If there are counted losses and the ring has space, writes the losses to the ring as an event. Only the
 * ring's thread may call this function, or another thread after the ring's thread has ended.
 */
void nl_ring_report_lost(nl_ring *ring);

/* Marks the end of the thread: the ring becomes free when its events are read. */
void nl_ring_thread_gone(nl_ring *ring);

/* Returns the reader's position, which the producer also moves if the policy is "oldest". */
static inline uint64_t nl_ring_tail(const nl_ring *ring)
{
    return __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE) & ~NL_TAIL_PINNED;
}

/* Returns whether the reader has read all published events. Any thread may call this function. */
bool nl_ring_is_empty(const nl_ring *ring);

/* ---- the reader's side ---- */

/*
 * Begins reading: sets `at`, `end` and `sequence`. Until nl_ring_unpin, the producer does not overwrite the events
 * between `at` and `end`.
 */
void nl_ring_pin(nl_ring *ring);

/*
 * Returns the event at ring->at and sets *header. Returns NULL at the end of the events, or if their memory is damaged.
 */
static inline const char *nl_ring_event(const nl_ring *ring, nl_event_header *header)
{
    uint64_t left = ring->end - ring->at;
    if (left < sizeof *header || left > ring->mask + 1)
        return NULL;
    const char *event = ring->data + (ring->at & ring->mask);
    memcpy(header, event, sizeof *header);
    return header->size >= sizeof *header && header->size <= left ? event : NULL;
}

/* Ends reading. The producer may then move tail again if the policy is "oldest". */
void nl_ring_unpin(nl_ring *ring);

#endif
