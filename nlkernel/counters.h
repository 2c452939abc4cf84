/*
 * The processor's counters with each event (perf_event_open): what they were when it happened.
 *
 * ftrace's ring buffer does not hold them, so events come through perf's then, one buffer for each CPU: a group of the
 * counters and of the tracepoints, each sample of which has the values of all. The events' own bytes are the same. That
 * costs the program several times as much. A counter that the machine has not is left out, and says why.
 */
#ifndef NLKERNEL_COUNTERS_H
#define NLKERNEL_COUNTERS_H

#include "events.h"
#include "page.h"

enum { COUNTERS_MAX = 8 };

typedef struct counter {
    const char *name;  /* as perf has it: cache-misses */
    const char *field; /* in records: CACHE.MISSES */
    char absent[160];  /* why it can't be read here; "": it can */
    unsigned type;
    uint64_t config;
} counter;

typedef struct counters {
    counter list[COUNTERS_MAX];
    size_t count;
} counters;

/* Takes names with commas between. False with the reason in nl_error_message(). */
bool counters_choose(counters *c, const char *names);

/* Finds out which there are on a CPU, and moves these to the front; returns how many they are. */
size_t counters_probe(counters *c, int cpu);

/* One CPU's events with their counters. One thread, but for counted_switch. */
typedef struct counted counted;

typedef struct counted_event {
    page_event raw;
    const uint64_t *values; /* of the counters */
    uint64_t lost;          /* not 0: so many were lost, by raw.time_ns, and this is none */
} counted_event;

/* Opens them, off. buffer is in bytes. present: how many counters there are. NULL with the reason. */
counted *counted_open(const counters *c, size_t present, const kernel_events *events, int cpu, size_t buffer,
                      int low_water);
void counted_close(counted *c);

/* Becomes readable when the buffer is filled up to low_water per cent. */
int counted_fd(const counted *c);

/* Switches an event, by its place, or all with SIZE_MAX; an event that is on is so only with all. False with the
 * reason.
 */
bool counted_switch(counted *c, size_t event, bool on);

/* The next event, valid until the next call. False: there is none now. */
bool counted_next(counted *c, counted_event *event);

/* How many were lost in all; the buffer tells of those only that are followed by an event that was not. 0 where the
 * kernel, one before 6.0, does not say. */
uint64_t counted_lost(const counted *c);

#endif
