/*
 * What record and live are told alike: which events, of whom, where, for how long.
 */
#ifndef NLKERNEL_OPTIONS_H
#define NLKERNEL_OPTIONS_H

#include "counters.h"
#include "functions.h"

#include "program/program.h"

typedef struct recording_options {
    const char **patterns; /* of events; those with "?" in front need not be there */
    size_t pattern_count;
    functions_kind functions; /* calls of functions as well */
    const char **globs;       /* only of these functions; !glob: not of these */
    size_t glob_count;
    int *pids; /* only these processes, and what they start */
    size_t pid_count;
    bool *cpus; /* only these, cpu_count of them; NULL: all */
    size_t cpu_count;
    nl_filter *filter;
    counters counters;
    int64_t duration_ns;   /* 0: until told to end */
    size_t buffer_size;    /* bytes, of each CPU */
    int low_water;         /* per cent of it; -1: not said */
    int interval_ms;       /* 0: not said */
    bool events_elsewhere; /* set before argp: the command line need not say any */
    bool follow;           /* only the command, and what it starts */
    bool quiet;
    const char *activation; /* a file of commands, which is watched; NULL: none */
    const char *tracefs;
    char **command; /* NULL: none */
} recording_options;

enum { RECORDING_BUFFER_DEFAULT = 16 << 20, RECORDING_BUFFER_LEAST = 8 << 10, RECORDING_CPUS_MOST = 8192 };

/* A child for argp; its input is a recording_options of zeros. */
extern const struct argp recording_argp;

void recording_options_free(recording_options *o);

#endif
