/*
 * One CPU's events, on their way from its ring buffer to the sink: a thread for each CPU.
 *
 * A lane waits until its buffer is filled up to the low-water mark, or for an interval; then it reads pages, converts
 * their events and puts them into blocks of its own stream, numbered one by one. What the kernel had to overwrite is
 * counted, with numbers of its own, and said where it happened. Each time that it has read anything it says so, by
 * NetLogger.Dump.Begin and NetLogger.Dump.Finish, so that what the recorder itself did to the machine can be told.
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

/* What all lanes of a recording share; not changed while they run. */
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
    const counters *counters; /* events have these with them: the first counter_count; NULL: none */
    size_t counter_count, buffer_size;
    int low_water;
    int stop_fd; /* readable when the recording ends */
} lane_setup;

typedef struct lane {
    const lane_setup *setup;
    int cpu, fd;
    int tid; /* of its thread */
    pthread_t thread;
    bool running;
    char *page;
    counted *counted;       /* where its events come from when they have counters; NULL: fd is the ring buffer */
    const uint64_t *values; /* of the counters, at the event that is taken */
    tasks tasks;
    nl_record *record;

    /* The block that is being filled, and blocks that wait to be written. */
    nl_block_writer block;
    nl_block_identity identity;
    unsigned generation;
    int64_t block_since_ns; /* on the trace clock: when its first record came */
    nl_buffer out;

    /* What was overwritten. */
    uint64_t accounted; /* so much of it was said */
    bool unsaid;        /* there is more, of which the number was not known */
    int64_t unsaid_from_ns, unsaid_to_ns;
    int64_t last_ns; /* time of the latest event */

    uint64_t events;  /* that were recorded */
    uint64_t strange; /* that were not understood */
} lane;

/* Opens its ring buffer. False with the reason in nl_error_message(). */
bool lane_open(lane *l, const lane_setup *setup, int cpu);

/* Starts its thread, with all signals blocked. False with the reason. */
bool lane_start(lane *l);

/*
 * Waits until it has read everything, which it does once stop_fd is readable; by then nothing is recorded any more.
 */
void lane_finish(lane *l);

/* Closes and frees. */
void lane_close(lane *l);

#endif
