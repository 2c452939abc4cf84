/* A probe: what it does when a marker that it is attached to is passed, and what it has found. */
#ifndef NETLOGGER_LOG_PROBE_H
#define NETLOGGER_LOG_PROBE_H

#include "log/grace.h"

enum {
    NL_TIME_PROBES_MAX = 4096, /* at once */
    NL_TIME_CLASSES = 512,
};

/* Aligned where 64 bits are else at any multiple of four bytes: adding across two cache lines locks the whole bus. */
typedef struct nl_probe_counter {
    uint64_t count __attribute__((aligned(8)));
    char rest_of_the_cache_line[56];
} nl_probe_counter;

/* Times in classes, eight for each power of two. */
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
    unsigned slot;         /* NL_PROBE_TIME: where threads keep the time of the first marker */
    nl_probe_times *times; /* likewise */
    bool detached;         /* to be passed over where it is still in a chain */
    nl_probe_counter counters[NL_GRACE_STRIPES];
};

/* A marker is passed: by role, the first or the second of a time, or any of the other kinds. Any thread. */
void nl_probe_pass(nl_probe_object *probe, bool ends, const char *marker, const nl_field *fields, size_t count);

/* What it has found, into the numbers of *info. */
void nl_probe_sum(const nl_probe_object *probe, nl_probe_info *info);

void nl_probe_free(nl_probe_object *probe);

#endif
