/*
 * A ring: the events of one thread in one log, from where the thread leaves them to where the log's writer thread takes
 * them.
 *
 * One producer, one reader, no lock. When it is full the log's policy says what becomes of the next event; what is lost
 * is counted, and the count goes into the ring as an event of its own (NL_SITE_LOST) as soon as there is room, so that
 * it stands where the gap is.
 */
#ifndef NETLOGGER_LOG_RING_H
#define NETLOGGER_LOG_RING_H

#include "log/session.h"
#include "transport/log_options.h"

#include <string.h>

typedef struct nl_ring nl_ring;

struct nl_ring {
    nl_ring_producer producer; /* the first member: what NL_EVENT sees is the ring */

    /*
     * What both read and seldom change, away from the producer's cache lines, in which every event writes. The
     * alignment is that of lines that are fetched in pairs.
     */
    nl_shared_ring *shared __attribute__((aligned(128)));
    const char *data; /* as the producer's */
    uint64_t mask;
    nl_mapping mapping;
    const nl_ring_policy *policy;
    int64_t
        stuck_since_ns; /* on the monotonic clock: an event waited in vain then, and tail has not moved since; 0 not */
    uint64_t stuck_tail;
    nl_ring *next; /* of the log's rings */
    nl_ring *next_of_thread;
    void *log;        /* whose it is */
    uint64_t refused; /* events in signal handlers that are not counted in shared->lost yet; they add to it */
    bool in_use;      /* by a living thread; without one it is for reuse once it is empty */

    /* The reader's, in a cycle of the writer thread. */
    uint64_t at __attribute__((aligned(128))); /* the next event to be taken */
    uint64_t end;                              /* what was published when the cycle began */
    uint64_t sequence;
    uint64_t safe_ticks; /* every event up to there was published when the ring was last seen at rest */
    uint64_t busy_head;  /* where its producer was when it was last seen busy, and since when */
    uint64_t busy_ticks;
    int64_t last_time_ns; /* of the event before, so that a thread's times never run backwards by rounding */
};

/* A ring of size bytes (a power of two, 64 KiB at least), its name log.number; NULL with errno. From the heap takes
 * nothing. */
nl_ring *nl_ring_make(size_t size, unsigned log, unsigned number);
void nl_ring_remove(nl_ring *ring);

/* A ring over shared memory that is there, its events size bytes; it owns the mapping then. NULL with errno. */
nl_ring *nl_ring_over(const nl_mapping *mapping, size_t size);

/* Takes an empty ring over for another thread, as a new stream. */
void nl_ring_begin_stream(nl_ring *ring);

/*
 * Makes room for an event of size bytes and level. False when it is to be dropped; it has been counted then. wake is
 * called when the reader should know that there is no room.
 */
bool nl_ring_make_room(nl_ring *ring, size_t size, nl_level level, void (*wake)(void *user), void *user);

/* The next event that goes beyond limit comes by nl_ring_make_room. By any thread. */
static inline void nl_ring_stop_at(nl_ring *ring, uint64_t limit)
{
    __atomic_store_n(&ring->producer.limit, limit, __ATOMIC_SEQ_CST); /* then one may look who is asleep */
}

/* Counts an event that came from a signal handler in the middle of another, whatever its thread is just at. */
static inline void nl_ring_refuse(nl_ring *ring)
{
    __atomic_add_fetch(&ring->refused, 1, __ATOMIC_RELAXED);
    nl_ring_stop_at(ring, 0); /* so that the next event comes by and reports it */
}

/* Counts events that were lost: full of them for want of room, refused of them in signal handlers. */
void nl_ring_count_lost(nl_ring *ring, uint64_t full, uint64_t refused);

/* Whether there is anything counted that is not in the ring yet. By any thread. */
bool nl_ring_has_lost(const nl_ring *ring);

/* Writes what was counted into the ring as an event, if there is any and there is room. By its thread, or when that is
 * gone. */
void nl_ring_report_lost(nl_ring *ring);

/* The thread ends: what it left is still read, then the ring is free. */
void nl_ring_thread_gone(nl_ring *ring);

/* Up to where the reader has come. With drop oldest the producer moves it too. */
static inline uint64_t nl_ring_tail(const nl_ring *ring)
{
    return __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE) & ~NL_TAIL_PINNED;
}

/* Whether the reader has taken all that was published. By any thread. */
bool nl_ring_is_empty(const nl_ring *ring);

/* ---- the reader's side ---- */

/* Begins to read: at and end are set, the producer leaves everything between alone. */
void nl_ring_pin(nl_ring *ring);

/* The next event at ring->at; NULL at the end, or when the memory is damaged. */
static inline const char *nl_ring_event(const nl_ring *ring, nl_event_header *header)
{
    uint64_t left = ring->end - ring->at;
    if (left < sizeof *header || left > ring->mask + 1)
        return NULL;
    const char *event = ring->data + (ring->at & ring->mask);
    memcpy(header, event, sizeof *header);
    return header->size >= sizeof *header && header->size <= left ? event : NULL;
}

/* Ends reading: what was committed (tail moved) is free. */
void nl_ring_unpin(nl_ring *ring);

#endif
