/*
 * A lane moves one CPU's events from its ring buffer to the sink, in a separate thread.
 *
 * The thread waits until the buffer is filled to the low-water mark, or for the interval. Then it reads pages, converts
 * their events and puts them into blocks of its own numbered stream. If the kernel overwrote events, the lane counts
 * them where they are missing and assigns sequence numbers to them, so that readers detect the gap.
 * NetLogger.Dump.Begin and NetLogger.Dump.Finish mark each period in which the lane has read events, so that the
 * recorder's own load can be distinguished.
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
    const char *saved_path; /* saved_cmdlines */
    page_layout layout;
    size_t page_size;
    int interval_ms;
    const counters *counters; /* the first counter_count are in each record */
    size_t counter_count, buffer_size;
    int low_water; /* percent */
    int stop_fd;   /* readable when the recording ends */
} lane_setup;

typedef struct lane {
    const lane_setup *setup;
    int cpu, fd;
    int tid; /* of its thread */
    pthread_t thread;
    bool running;
    char *page;
    counted *counted;       /* the source of events with counters; NULL: fd is the ring buffer */
    const uint64_t *values; /* of the counters, at the current event */
    tasks tasks;
    nl_record *record;

    nl_block_writer block; /* the current block */
    nl_block_identity identity;
    unsigned generation;    /* of the block; see task_name */
    int64_t block_since_ns; /* time of its first record, on the trace clock */
    nl_buffer out;          /* finished blocks that are not written yet */

    uint64_t accounted; /* lost events that were logged */
    bool unaccounted;   /* more events were lost; their number is not known yet */
    int64_t unaccounted_from_ns, unaccounted_to_ns;
    int64_t last_ns; /* time of the latest event */

    uint64_t events;  /* recorded */
    uint64_t invalid; /* events that do not have the declared format */
} lane;

/* Opens a CPU's ring buffer. Returns false and sets the error on failure. */
bool lane_open(lane *l, const lane_setup *setup, int cpu);

/* Starts the thread, with all signals blocked. Returns false and sets the error on failure. */
bool lane_start(lane *l);

/* Waits until the thread has read everything. stop_fd must be readable, and recording must be off. */
void lane_finish(lane *l);

/* Closes the lane. Zeros are allowed. */
void lane_close(lane *l);

#endif
