/*
 * The struct of a log and the interfaces between its modules:
 *
 *   producer.c        the slow path of NL_EVENT: a thread's first event, a full ring, the end of a thread
 *   write.c           nl_write and similar functions, which use the same rings
 *   writer_thread.c   takes events from the rings and sends them
 *   log.c             open, close, fork
 *   clock_watch.c     records about the quality of the clock
 *   control.c         changes while the program runs
 *   activation.c      changes by an activation file or a collector
 *   own_records.c     the log's own records
 *
 * Threads take locks in this order:
 * - the process's registry (logs and threads)
 * - a log's control.mutex (probes)
 * - the log's mutex (the list of rings, requests to the writer thread)
 * - one of the process's locks for site rules (site.c), for the directory in shared memory (session.c) and for markers
 *   (marker.c)
 *
 * Producers take locks only at the first event of a thread in a log, at the first event of a site, and in logs without
 * a slot. nl_inside marks a thread that may hold a lock. The library rejects events of signal handlers in this thread,
 * because they could cause a deadlock.
 */
#ifndef NETLOGGER_LOG_LOG_INTERNAL_H
#define NETLOGGER_LOG_LOG_INTERNAL_H

#include "log/clock_watch.h"
#include "log/control.h"
#include "log/drain.h"
#include "transport/log_options.h"
#include "log/outbox.h"

#include "base/error.h"

#include <errno.h>
#include <pthread.h>

struct nl_log {
    nl_log_gate gate; /* must be the first member, because NL_EVENT uses the log as an nl_log_gate */
    nl_log *next;     /* next in the registry */
    nl_url *url;
    nl_log_options options;
    char recovery_url[1024]; /* the URL, for recovery; "" if it is too long or has a relative path */
    unsigned number;         /* unique in the process */
    nl_string host, prog;

    pthread_mutex_t mutex; /* protects the members from rings to flush_error */
    nl_ring *rings;
    unsigned rings_made; /* number of rings created so far, for their names */
    bool running;        /* the writer thread is running */
    bool stop;
    bool ending;              /* the program is ending, and the sender must send no more records */
    unsigned beginning;       /* number of threads that are logging their first event and have no ring yet */
    uint64_t beginning_ticks; /* ticks when the first of these threads began its event */
    int unnamed; /* errno of the failed creation of shared memory in files, or 0; without such files, events of a killed
                    process are lost */
    pthread_t thread;
    uint64_t flush_wanted, flush_done; /* number of flushes that were requested, and of those that are complete */
    pthread_cond_t flushed;
    nl_status status;       /* result of the writer thread's latest cycle */
    nl_error error;         /* the reason, if status is NL_FAILED */
    nl_status flush_status; /* result of the latest finished flush; later cycles do not change it */
    nl_error flush_error;
    uint64_t flush_spooled; /* number of this process's events in the spool at the end of this flush */

    nl_log_control control;
    nl_clock_watch *watch; /* owned by the writer thread; NULL if the log has no clock records */

    uint32_t wake; /* futex: 1 wakes the writer thread */
    bool asleep;   /* the thread sleeps so long that a ring could fill, so the next event wakes it */

    /* Owned by the writer thread. */
    nl_outbox outbox;
    nl_drain drain;
    bool drain_ready;
    nl_buffer encoded;
    uint64_t clock_ticks; /* ticks of the latest reading of the clock */
    int64_t
        described_ns;   /* time of the reading in outbox.shared->clock before the first cycle, on the monotonic clock */
    uint64_t waiting;   /* bytes in the fullest ring in the latest cycle */
    int64_t drained_ns; /* time when the rings were last emptied, on the monotonic clock; used for blocks */
    uint64_t flush_ticks; /* nl_flush needs the events up to this reading; 0: not determined yet; UINT64_MAX: the log is
                             being closed, and all events are needed */
    bool left;            /* some events that nl_flush needs are still in the rings */
    bool reported_unnamed;
    uint64_t lost;    /* number of events lost before they reached a ring; the next ring will count them */
    uint64_t refused; /* number of rejected events of signal handlers, which will be counted in the next ring; signal
                       * handlers increment it */
};

/* Greater than 0 while this thread is in the library and may hold a lock. */
extern __thread unsigned nl_inside __attribute__((tls_model("initial-exec")));

/* State that nl_leave restores. */
typedef struct nl_visit {
    int saved_errno;
    int cancel_state;
} nl_visit;

/*
 * Call nl_enter before and nl_leave after code that takes locks or waits. Between the two calls, the library rejects
 * events of signal handlers. The thread also cannot be cancelled, because cancellation would leave locks locked.
 * nl_leave restores errno and the state that nl_enter returned.
 */
static inline nl_visit nl_enter(void)
{
    nl_visit visit = {.saved_errno = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &visit.cancel_state);
    nl_inside++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return visit;
}

static inline void nl_leave(const nl_visit *visit)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nl_inside--;
    pthread_setcancelstate(visit->cancel_state, NULL);
    errno = visit->saved_errno;
}

/* ---- producer.c ---- */

enum { NL_VISIBLE_NS = 10 * 1000 }; /* a store is visible to other processors within this time */

/*
 * Returns the calling thread's ring, which has space for an event of size bytes and is marked as busy. Returns NULL if
 * the event is lost; the loss is then counted. If the thread's events have a context, the function has already put the
 * context into the ring.
 */
nl_ring_producer *nl_producer_prepare(nl_log *log, nl_level level, size_t size);

/* Like nl_private_begin, for an event that never gets the thread's context. The caller has checked site->off; the
 * function also returns NULL if rules switch the site off when it is registered here. */
char *nl_producer_begin(nl_log *log, nl_event_site *site, size_t size, nl_ring_producer **ring);

/* Makes the thread's events take the slow path, which adds the thread's context. Call this function after setting
 * nl_private_current.carried. */
void nl_producer_carry_context(void);

/*
 * Like nl_vwrite, for an event with the level, time, host, program and fields of head. The fields LVL, HOST and PROG in
 * the format set the record's members. `event` ends with a NUL. Returns NL_AGAIN and writes nothing if the format is
 * not a sequence of fields.
 */
nl_status nl_vwrite_after(nl_log *log, const nl_record *head, const char *event, const char *format, va_list arguments);

/*
 * Puts a whole record into the ring, unless its event is switched off by name. Does not check the level. Returns the
 * same values as nl_write.
 */
nl_status nl_write_put_record(nl_log *log, const nl_record *record);

/*
 * Registers a site that is not registered yet. If nl_inside is set, does nothing and returns true, because the event
 * will be rejected. Returns false if memory runs out.
 */
bool nl_producer_know_site(nl_event_site *site);

/* Counts an event that is lost before it reaches a ring because memory ran out. */
void nl_producer_lose(nl_log *log);

/* Removes all references to the places of spans in a program or shared library that is being unloaded (span.c). The
 * registry is locked. */
void nl_span_leave_module(const void *module);

/* Counts an event of a signal handler that interrupted another event. */
void nl_producer_refuse(nl_log *log);

/* Writes this thread's unreported losses to its ring. Returns whether there were such losses. The registry is
 * locked. */
bool nl_producer_report_lost(nl_log *log);

/*
 * Makes the library reject all later events of the process, which is ending. Returns whether no thread is logging an
 * event in this log. The registry is locked; if the result is false, unlock the registry, and call this function again.
 */
bool nl_producer_finish(nl_log *log);

/*
 * Writes a description of the log to shared memory, for recovery. Call this function before the log's first event and
 * after changes. Returns false if memory runs out. The caller holds log->mutex.
 */
bool nl_log_describe(nl_log *log);

/*
 * Reserves a slot in every thread's array for a new log, and returns its index. Returns the number of slots if all are
 * used; threads then lock the registry to find their rings in this log. The registry is locked.
 */
unsigned nl_slot_take(void);

/* Removes the log's rings from all threads and frees its slot. The registry is locked. */
void nl_slot_release(nl_log *log);

/* Call this function after fork in the child, which has only this thread and no rings. */
void nl_producer_after_fork(void);

/* ---- span.c ---- */

/* Returns a random number that is not 0. */
uint64_t nl_span_new_id(void);

/* ---- writer_thread.c ---- */

/* Starts the writer thread. Returns false on failure. The caller holds log->mutex. */
bool nl_writer_thread_start(nl_log *log);

/*
 * nl_writer_thread_ask requests that the writer thread send everything. The result is the number of the request, or 0
 * if the log has no writer thread. nl_writer_thread_await waits until this request is complete. It returns NL_OK, or
 * NL_FAILED with the reason. The caller holds log->mutex.
 */
uint64_t nl_writer_thread_ask(nl_log *log);
nl_status nl_writer_thread_await(nl_log *log, uint64_t wanted);

/* Wakes the writer thread. Safe in signal handlers. */
void nl_writer_thread_wake(void *log);

/* Sends everything and ends the writer thread. If there is no writer thread, the calling thread sends everything. */
void nl_writer_thread_stop(nl_log *log);

/* ---- log.c ---- */

/*
 * Opens another destination, to which the writer thread switches as soon as possible. If waiting records have another
 * format, or the new destination is syslog, the writer thread first sends these records to the old destination. Returns
 * NL_OK. If the new destination cannot be opened, changes nothing and returns NL_FAILED with the reason. If go_on is
 * true, a file is not truncated.
 */
nl_status nl_log_set_destination(nl_log *log, const char *url, bool go_on);

/* Returns whether the URL names files, by its path or its options. */
bool nl_log_url_names_file(const nl_url *url);

/* Stores the URL for recovery by another process, unless it is too long or has a relative path. */
void nl_log_note_url(nl_log *log);

/* Starts the writer thread unless it is running. Locks log->mutex. */
void nl_log_start(nl_log *log);

void nl_registry_lock(void);
void nl_registry_unlock(void);

#endif
