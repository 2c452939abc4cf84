/*
 * Events with the values of CPU counters at the time of each event (perf_event_open).
 *
 * ftrace's ring buffer has no counters. Therefore these events come through perf's buffers, one per CPU. The counters
 * and the tracepoints form a group, and each sample has the values of all counters. The bytes of an event are the same
 * as in ftrace. This costs the recorded program several times as much as ftrace. Counters that the machine lacks are
 * omitted.
 */
#ifndef NLKERNEL_COUNTERS_H
#define NLKERNEL_COUNTERS_H

#include "base/error.h"
#include "events.h"
#include "page.h"

enum { COUNTERS_MAX = 8 };

typedef struct counter {
    const char *name;  /* as in perf: cache-misses */
    const char *field; /* in records: CACHE.MISSES */
    nl_error absence;  /* why the counter cannot be read; no error: it can be read */
    unsigned type;
    uint64_t config;
} counter;

typedef struct counters {
    counter list[COUNTERS_MAX];
    size_t count;
} counters;

/* Adds counters by names separated by commas. Returns false and sets the error if a name is unknown. */
bool counters_choose(counters *c, const char *names);

/* Moves the counters that a CPU has to the front, and returns their number. Sets absence of the others. */
size_t counters_probe(counters *c, int cpu);

/* One CPU's events with their counters. One thread, except for counted_switch. */
typedef struct counted counted;

typedef struct counted_event {
    page_event raw;
    const uint64_t *values; /* of the counters */
    uint64_t lost;          /* not 0: this is not an event, but the number of events lost before raw.time_ns */
} counted_event;

/*
 * Opens the events of a CPU, switched off, with the first present counters. buffer: its size in bytes. low_water:
 * percent of the buffer. Returns NULL and sets the error on failure.
 */
counted *counted_open(const counters *c, size_t present, const kernel_events *events, int cpu, size_t buffer,
                      int low_water);
void counted_close(counted *c);

/* Returns a descriptor that is readable when the buffer is filled to low_water. */
int counted_fd(const counted *c);

/* Switches an event, by its place, or all events with SIZE_MAX. An event is recorded while both its own switch and the
 * switch for all events are on. Returns false and sets the error on failure. */
bool counted_switch(counted *c, size_t event, bool on);

/* Gets the next event, valid until the next call. Returns false if no event is available. */
bool counted_next(counted *c, counted_event *event);

/*
 * Returns the total number of lost events. The buffer reports a loss only when an event follows. Returns 0 before Linux
 * 6.0, which does not count them.
 */
uint64_t counted_lost(const counted *c);

#endif
