/*
 * Reads logs for the commands that evaluate or join logs. The options --where, --since and --until select records. Not
 * thread-safe.
 */
#ifndef NLKERNEL_LOG_INPUT_H
#define NLKERNEL_LOG_INPUT_H

#include "program/program.h"

/* The state of reading. Initially all zero. log_input_finish frees the members. */
typedef struct log_input {
    program_reading reading;
    program_where where;
} log_input;

/* The option groups of a command whose settings contain a log_input called input. */
#define LOG_INPUT_GROUPS(settings)                                                                                     \
    {"Selecting records", program_where_options, offsetof(settings, input.where)},                                     \
    {                                                                                                                  \
        "Reading", program_reading_options, offsetof(settings, input.reading)                                          \
    }

/* Passes the selected records of the SOURCE `name` to `take`. On failure, prints the error and returns false. */
bool log_input_read(log_input *input, const char *name, void (*take)(void *user, const nl_record *record), void *user);

/* Prints warnings about malformed input and missing records, and frees the members of `input`. Returns an exit
 * status. */
int log_input_finish(log_input *input);

#endif
