/*
 * A lane moves one CPU's events from its ring buffer to the sink, in a separate thread.
 *
 * The thread waits until the buffer is filled to the low-water mark or the interval has ended. Then the thread reads
 * pages, converts the events and stores the records in blocks of a numbered stream of the lane. If the kernel has
 * overwritten events, the lane skips a sequence number for each lost event, so that readers detect the gap.
 * NetLogger.Dump.Begin and NetLogger.Dump.Finish mark each period in which the lane has read events, so that readers
 * can distinguish the recorder's load from the load of other programs.
 */
#ifndef NLKERNEL_LANE_H
#define NLKERNEL_LANE_H

#include "counters.h"
#include "events.h"
#include "page.h"
#include "realtime.h"
#include "sink.h"
#include "tasks.h"

#include <pthread.h>

/* The settings that all lanes of a recording share. They do not change while the lanes run. */
typedef struct lane_setup {
    const kernel_events *events;
    const nl_filter *filter;
    const realtime *clock;
    sink *sink;
    nl_string host;
    const char *instance_dir;
    const char *saved_path; /* path of saved_cmdlines */
    page_layout layout;
    size_t page_size;
    int interval_ms;
    const counters *counters; /* each record contains the first counter_count counters */
    size_t counter_count, buffer_size;
    int low_water; /* percentage of the buffer */
    int stop_fd;   /* readable when the recording ends */
} lane_setup;

typedef struct lane {
    const lane_setup *setup;
    int cpu, fd;
    int tid; /* ID of the lane's thread */
    pthread_t thread;
    bool running;
    char *page;
    counted *counted;       /* source of events with counters; if NULL, fd is the ring buffer */
    const uint64_t *values; /* values of the counters at the current event */
    tasks tasks;
    nl_record *record;

    nl_block_writer block; /* the current block */
    nl_block_identity identity;
    unsigned generation;    /* number of the current block; see task_name (tasks.h) */
    int64_t block_since_ns; /* time of the block's first record, on the trace clock */
    nl_buffer out;          /* finished blocks that write_out will write */

    uint64_t accounted;                             /* number of lost events that the lane has logged */
    bool unaccounted;                               /* the kernel has lost more events, whose number is still unknown */
    int64_t unaccounted_from_ns, unaccounted_to_ns; /* real time */
    int64_t last_ns;                                /* real time of the latest event */

    uint64_t events;  /* number of recorded events */
    uint64_t invalid; /* number of events that are shorter than their declared format */
} lane;

/* Opens a CPU's ring buffer. `setup` must outlive the lane. Returns false and sets the error on failure. */
bool lane_open(lane *l, const lane_setup *setup, int cpu);

/* Starts the thread, with all signals blocked. Returns false and sets the error on failure. */
bool lane_start(lane *l);

/* Waits until the thread has read all events. Before the call, stop_fd must be readable, and recording must be off. */
void lane_finish(lane *l);

/* Closes the lane. The lane may be all zeros. */
void lane_close(lane *l);

#endif
