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
    bool events_elsewhere; /* the command line need not name any */
    bool only_command;     /* record only the command, and what it starts */
    bool quiet;
    const char *activation; /* a file of commands, which is watched; NULL: none */
    const char *tracefs;
    char **command; /* NULL: none */
} recording_options;

enum { RECORDING_BUFFER_DEFAULT = 16 << 20, RECORDING_BUFFER_MIN = 8 << 10, RECORDING_CPUS_MAX = 8192 };

/* The rows of all commands that record, about a recording_options. */
extern const nl_option recording_rows[];

/* Exits with a message when the options, or they and the command, exclude each other. */
void recording_options_check(const recording_options *o);

void recording_options_free(recording_options *o);

#endif
