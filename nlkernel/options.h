/* Options of the "record", "live" and "rules run" commands: the events, processes and duration to record. */
#ifndef NLKERNEL_OPTIONS_H
#define NLKERNEL_OPTIONS_H

#include "counters.h"
#include "functions.h"

#include "program/program.h"

enum { RECORDING_CPUS_MAX = 8192 };

typedef struct recording_options {
    const char **patterns; /* patterns of events; a leading "?" marks events that the kernel may lack */
    size_t pattern_count;
    functions_kind functions; /* the tracer for calls of functions */
    const char **globs;       /* globs of functions; !GLOB excludes functions */
    size_t glob_count;
    int *pids; /* record only these processes and the processes that they start; empty: all processes */
    size_t pid_count;
    bool cpus[RECORDING_CPUS_MAX]; /* record only these CPUs, if cpu_count is not 0 */
    size_t cpu_count;              /* the highest number of a chosen CPU, plus 1 */
    nl_filter *filter;             /* NULL: all events */
    counters counters;
    int64_t duration_ns; /* 0: no limit */
    size_t buffer_size;  /* bytes per CPU */
    int low_water;       /* percentage of buffer_size */
    bool only_command;   /* record only the command, and the processes that it starts */
    bool quiet;
    const char *activation; /* path of a file of control commands, or NULL */
    const char *tracefs;    /* NULL: find or mount tracefs */
    char **command;         /* NULL: no command */
} recording_options;

/* The option rows for a recording_options. */
extern const nl_option recording_rows[];

/* Adds a list of process IDs, such as 17,4711, to an array. Returns false and sets the error if the list is invalid. */
bool recording_add_pids(int **pids, size_t *count, const char *value);

/* Adds a pattern. Borrows `pattern`. */
void recording_options_add_pattern(recording_options *o, const char *pattern);

/*
 * Exits with a message if two options exclude each other, or if an option lacks another option or an argument that it
 * requires. Also exits if `needs_event` is true and there is neither an event nor --functions.
 */
void recording_options_check(const recording_options *o, bool needs_event);

void recording_options_free(recording_options *o);

#endif
