/*
 * A log from inside.
 *
 *   producer.c        the slow half of NL_EVENT: a thread's first event, a full ring; threads that end
 *   write.c           nl_write and its like, through the same ring
 *   writer_thread.c   takes events out of the rings and sends them
 *   log.c             open, close, fork
 *   clock_watch.c     how good the clock is, said in the log
 *   control.c         what is changed while the program runs; activation.c: by a file; own_records.c: said in the log
 *
 * Locks, in this order where several are taken: the registry's, one a process (which logs and threads there are); a
 * log's control.mutex (what commands have changed), then its mutex (its list of rings, what was asked of its writer
 * thread); and, one a process each and last, those of the sites' rules (site.c), the folder in shared memory
 * (session.c) and the markers (marker.c). No producer takes any but at a thread's first event, and whoever holds one is
 * marked (nl_inside), so that a signal handler's event in the middle of that is refused, not deadlocked.
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
    nl_log_gate gate; /* the first member: what NL_EVENT sees is the log */
    nl_log *next;     /* in the registry */
    nl_url *url;
    nl_log_options options;
    char whole_url[1024]; /* for who recovers what this process leaves; "" when it does not fit */
    unsigned number;      /* unique in the process */
    nl_string host, prog;

    pthread_mutex_t mutex; /* for what follows up to the next comment */
    nl_ring *rings;
    unsigned rings_made;
    bool running; /* the writer thread */
    bool stop;
    unsigned beginning;       /* threads at their first event, whose ring is not there yet ... */
    uint64_t beginning_ticks; /* ... and when the first of them began */
    int unnamed;              /* errno: why memory is not in files, so that a kill loses what is there; 0: all is */
    pthread_t thread;
    uint64_t flush_wanted, flush_done; /* counts of nl_flush */
    pthread_cond_t flushed;
    nl_status status;       /* of the writer thread's latest look */
    nl_error error;         /* of status */
    nl_status flush_status; /* of the latest finished flush: a later look must not change its result */
    nl_error flush_error;

    nl_log_control control;
    nl_clock_watch *watch; /* the writer thread's; NULL: nothing is watched */

    uint32_t wake; /* futex: 1 when the writer thread is to look at once */
    bool asleep;   /* it sleeps for longer than a ring may take to fill: the next event is to wake it */

    /* The writer thread's own. */
    nl_outbox outbox;
    nl_drain drain;
    bool drain_ready;
    nl_buffer encoded;
    uint64_t clock_ticks; /* of the latest reading of the clock */
    uint64_t waiting;     /* bytes in the fullest ring at the latest look */
    int64_t drained_ns;   /* on the monotonic clock: when rings were emptied last, for blocks */
    uint64_t flush_ticks; /* nl_flush wants the events up to there; 0: it has not been found out yet */
    bool left;            /* some of them are still in the rings */
    bool told_unnamed;
    uint64_t lost;    /* events; those without any ring included */
    uint64_t refused; /* events from signal handlers that are to be counted in the next ring; they add to it */
};

/* Above zero while this thread is inside the library, perhaps with a lock. */
extern __thread unsigned nl_inside __attribute__((tls_model("initial-exec")));

/* What nl_leave restores. */
typedef struct nl_visit {
    int saved_errno;
    int cancel_state;
} nl_visit;

/*
 * Around what takes locks or may wait: signal handlers' events are refused meanwhile, and the thread is not cancelled,
 * which would leave the locks locked.
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

/* The calling thread's ring with room for an event of size bytes, marked as busy; NULL when it is lost (and counted).
 */
nl_ring_producer *nl_producer_prepare(nl_log *log, nl_level level, size_t size);

/*
 * As nl_vwrite, of an event that has head's level, time, host and program, and head's fields before the format's, whose
 * LVL, HOST and PROG are the record's. event is its name, NUL-terminated. NL_AGAIN, nothing being written, when the
 * format is no row of fields.
 */
nl_status nl_vwrite_after(nl_log *log, const nl_record *head, const char *event, const char *format, va_list arguments);

/* Makes a site known, if it is not. False when there is no memory for that. */
bool nl_producer_know_site(nl_event_site *site);

/* Counts an event as lost that never came as far as a ring, for lack of memory. */
void nl_producer_lose(nl_log *log);

/* Counts an event as refused: it came from a signal handler in the middle of another. */
void nl_producer_refuse(nl_log *log);

/* Puts what this thread has lost, and could not report yet, into its ring. Whether there was anything. With the
 * registry locked. */
bool nl_producer_report_lost(nl_log *log);

/*
 * Writes down in shared memory what the log is, before its first event, so that it can be recovered however early the
 * process is killed; and when that changes. False when there is no memory. With log->mutex held.
 */
bool nl_log_write_down(nl_log *log);

/* A slot in every thread's array for a new log; NL_PRIVATE_SLOTS when all are taken. With the registry locked. */
unsigned nl_slot_take(void);

/* No thread has a ring of that log any more; its slot is free. With the registry locked. */
void nl_slot_release(nl_log *log);

/* In the child after fork: only this thread is left, and it has no rings. */
void nl_producer_after_fork(void);

/* ---- writer_thread.c ---- */

/* Starts the writer thread, with log->mutex held. False when there can't be one. */
bool nl_writer_thread_start(nl_log *log);

/*
 * Asks for everything to be sent; and waits for what was asked: NL_OK or NL_FAILED with the reason. With log->mutex
 * held.
 */
uint64_t nl_writer_thread_ask(nl_log *log);
nl_status nl_writer_thread_await(nl_log *log, uint64_t wanted);

/* Tells it to look at once. Safe in signal handlers. */
void nl_writer_thread_wake(void *log);

/* Sends everything, ends it and waits for that. */
void nl_writer_thread_stop(nl_log *log);

/* ---- log.c ---- */

/*
 * Opens another destination, which the writer thread then uses from its next look on; what waits goes there. NL_FAILED
 * with the reason when it can't be opened: nothing has changed then. A file is not started anew when it is to go on.
 */
nl_status nl_log_set_destination(nl_log *log, const char *url, bool go_on);

/* Whether who logs there has files read or written that the URL names: by its path, or by options. */
bool nl_log_url_names_file(const nl_url *url);

/* Notes the destination as another process understands it. */
void nl_log_note_url(nl_log *log);

/* Starts the writer thread, if it does not run yet. */
void nl_log_start(nl_log *log);

void nl_registry_lock(void);
void nl_registry_unlock(void);

#endif
