/* A probe: an action that a thread executes when it passes a marker, and the results of the action. */
#ifndef NETLOGGER_LOG_PROBE_H
#define NETLOGGER_LOG_PROBE_H

#include "log/grace.h"

enum {
    NL_TIME_PROBES_MAX = 4096, /* maximum number of NL_PROBE_TIME probes at the same time */
    NL_TIME_CLASSES = 512,     /* number of classes of times */
};

/*
 * The number of passes in the threads of one stripe (grace.h). The alignment keeps the number within one cache line,
 * because atomic addition across two cache lines locks the bus.
 */
typedef struct nl_probe_counter {
    uint64_t count __attribute__((aligned(8)));
    char rest_of_the_cache_line[56];
} nl_probe_counter;

/*
 * The number, sum, minimum and maximum of the measured times, and the number of times in each class. There are eight
 * classes per power of two.
 */
typedef struct nl_probe_times {
    uint64_t count, sum_ns, min_ns, max_ns;
    uint64_t classes[NL_TIME_CLASSES];
} nl_probe_times;

typedef struct nl_probe_object nl_probe_object;

struct nl_probe_object {
    nl_probe_object *next;
    nl_probe id;
    nl_probe_kind kind;
    char *pattern, *to;
    nl_log *log;
    nl_level level;
    nl_probe_function function;
    void *user;
    unsigned slot;         /* for NL_PROBE_TIME: slot in which threads store the time of the first marker */
    nl_probe_times *times; /* for NL_PROBE_TIME: the measured times; otherwise NULL */
    bool detached;         /* the probe was detached and has no effect; it may still be in a chain */
    nl_probe_counter counters[NL_GRACE_STRIPES];
};

/*
 * Runs a probe when a thread passes a marker. Does nothing if the probe is detached. `ends` means that the marker is
 * the second marker of a time measurement. Any thread may call this function.
 */
void nl_probe_pass(nl_probe_object *probe, bool ends, const char *marker, const nl_field *fields, size_t count);

/* Sets the ID, the kind and the results of the probe in *info, and all other members to 0. */
void nl_probe_sum(const nl_probe_object *probe, nl_probe_info *info);

/* Frees a detached probe that no thread uses. */
void nl_probe_free(nl_probe_object *probe);

#endif
