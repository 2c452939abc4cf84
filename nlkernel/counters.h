/*
 * Events with the values of CPU counters at the time of each event (perf_event_open).
 *
 * ftrace's ring buffer does not contain counters, so these events come from perf's buffers, one for each CPU. The
 * counters and the tracepoints form a group, and each sample contains the values of all counters. The bytes of an event
 * are the same as in ftrace. Recording with counters costs the recorded program several times as much time as ftrace.
 * nlkernel omits counters that the machine lacks.
 */
#ifndef NLKERNEL_COUNTERS_H
#define NLKERNEL_COUNTERS_H

#include "base/error.h"
#include "events.h"
#include "page.h"

enum { COUNTERS_MAX = 8 };

typedef struct counter {
    const char *name;  /* name in perf, such as cache-misses */
    const char *field; /* name in records, such as CACHE.MISSES */
    nl_error absence;  /* reason why nlkernel cannot read the counter; no error if it can */
    unsigned type;
    uint64_t config;
} counter;

typedef struct counters {
    counter list[COUNTERS_MAX];
    size_t count;
} counters;

/* Adds counters from a comma-separated list of names. Returns false and sets the error if a name is unknown, or if
 * there are no names or too many names. */
bool counters_choose(counters *c, const char *names);

/* Moves the counters that a CPU has to the front, and returns their number. Sets `absence` in the other counters. */
size_t counters_probe(counters *c, int cpu);

/*
 * The events of one CPU with their counters. Any thread may call counted_switch. Only one thread may call the other
 * functions.
 */
typedef struct counted counted;

typedef struct counted_event {
    page_event raw;
    const uint64_t *values; /* values of the counters */
    uint64_t lost;          /* 0: an event; otherwise, the loss of this number of events before raw.time_ns */
} counted_event;

/* Opens the events of a CPU, switched off, with the first `present` counters. `buffer` is the size of the buffer in
 * bytes, and `low_water` is a percentage of this size. Returns NULL and sets the error on failure. */
counted *counted_open(const counters *c, size_t present, const kernel_events *events, int cpu, size_t buffer,
                      int low_water);
void counted_close(counted *c);

/* Returns a descriptor that becomes readable when the buffer is filled to the low-water mark. */
int counted_fd(const counted *c);

/* Switches the event with this index, or all events if `event` is SIZE_MAX. The kernel records an event only while both
 * the event's switch and the switch for all events are on. Returns false and sets the error on failure. */
bool counted_switch(counted *c, size_t event, bool on);

/* Gets the next event, valid until the next call. Returns false if no event is available. */
bool counted_next(counted *c, counted_event *event);

/*
 * Returns the total number of lost events, including losses that the buffer does not report because no event follows
 * them. Returns 0 on failure, and before Linux 6.0, which does not count lost events.
 */
uint64_t counted_lost(const counted *c);

#endif
