/*
 * The threads of the logs, with their spans and, if nlkernel has recorded them, their states.
 *
 * A record belongs to the thread that its fields TID, THREAD or THREAD.ID name, or otherwise to its process (PID).
 * Spans come from records with a duration, and from pairs of events such as Query.start and Query.end in the same
 * thread. States come from records of nlkernel: sched.sched_switch and sched.sched_wakeup, the records that its rules
 * derive from them, and the waits of nlkernel trace. A state belongs to the threads of its host whose identifier is the
 * TID.
 *
 * The loader's thread fills a collector (request_reading.h). A thread_list is a copy that does not change.
 */
#ifndef NLV_THREADS_H
#define NLV_THREADS_H

#include "model/names.h"
#include "requests/drawing.h"

typedef enum thread_state {
    THREAD_RUNNING,
    THREAD_RUNNABLE, /* it waits for a processor */
    THREAD_DISK,
    THREAD_FUTEX,
    THREAD_LOCK,
    THREAD_NETWORK,
    THREAD_WAITING, /* for an unknown reason */
    THREAD_STATES,
} thread_state;

/* A span or a state of a thread. */
typedef struct thread_bar {
    int64_t begin_ns, end_ns;
    uint64_t place; /* the place of its record (batch.h) */
    uint16_t name;  /* of a span: a number in thread_list.names; of a state: its thread_state */
    bool is_begin;  /* the time of the record is begin_ns; otherwise, it is end_ns */
    bool failed;
} thread_bar;

enum { THREAD_LANES_MAX = 12 };

/* A thread. Bars of a lane are in the order of time, and do not overlap. If there are too many lanes, the bars of the
 * last lane may overlap. */
typedef struct thread_row {
    char *host, *program, *thread; /* printable */
    char *logged_host;             /* as in the records */
    uint32_t key, host_key;        /* of the tracks of the thread and of its host (tracks.h) */
    GArray *lanes[THREAD_LANES_MAX];
    unsigned lane_count;
    int64_t running_ns; /* the time for which the kernel ran it */
    GArray *states;     /* thread_bar, which do not overlap */
    GArray *waits;      /* thread_bar: waits with known reasons, which may overlap `states` */
} thread_row;

typedef struct thread_list {
    /* thread_row, by host; in a host, first the threads with spans, by program and thread, with numbers in these names
     * in numeric order; then the other threads, the busiest first */
    GPtrArray *rows;
    names *names;     /* names of spans */
    bool is_complete; /* the logs have been read to their ends */
    bool is_cut;      /* the memory limit was reached: the spans and states after cut_ns are missing */
    int64_t cut_ns;
    bool names_threads; /* at least one record names a thread or a process */
} thread_list;

void thread_list_free(thread_list *l); /* NULL is allowed */

/* Returns the first bar of a lane, from the bar `from` on, that ends after a time, or the number of bars. Takes little
 * time if this bar is near `from`. */
size_t thread_lane_find(const GArray *lane, int64_t time_ns, size_t from);

/* Returns the name of a state, such as "running" or "waiting for disk". */
const char *thread_state_text(thread_state state);

typedef struct thread_collector thread_collector;

/* Creates a collector, which the caller frees. The lifelines of `d` name the fields that identify requests. The spans
 * and states need at most memory_max bytes. For has_nanoseconds, see model_has_nanoseconds. */
thread_collector *thread_collector_new(const drawing *d, nl_fraction fraction, size_t memory_max, bool has_nanoseconds);
void thread_collector_free(thread_collector *c); /* NULL is allowed */

/* Adds a record. Records must be nearly in the order of time. */
void thread_collector_add(thread_collector *c, const nl_record *record, uint64_t place);

/* Returns the threads that have spans or states, which the caller frees. */
thread_list *thread_collector_list(const thread_collector *c, bool is_complete);

#endif
