/*
 * The options and the reading of programs that look at all of a log's lifelines: which they are, which records count,
 * how much memory. One thread at a time.
 */
#ifndef NLSTAT_SUBJECT_OPTIONS_H
#define NLSTAT_SUBJECT_OPTIONS_H

#include "program/program.h"
#include "stat/subject.h"

typedef struct subject_options {
    char **ids; /* NULL at the end; NULL when they are to be found */
    const char *config;
    size_t memory; /* bytes */
    program_where where;
    program_reading reading;
} subject_options;

/* --id, --config, --memory, and program.h's --where, --since, --until, --fraction, --reject, --strict. */
extern const nl_option subject_own_options[];

/* The groups of a program whose settings hold a subject_options named subject, after its own group. */
#define SUBJECT_GROUPS(settings)                                                                                       \
    {"Which records", subject_own_options, offsetof(settings, subject)},                                               \
        {"Which records", program_where_options, offsetof(settings, subject.where)},                                   \
        {"Reading", program_reading_options, offsetof(settings, subject.reading)},                                     \
        {"Reading", program_strict_options, offsetof(settings, subject.reading)},                                      \
    {                                                                                                                  \
        0                                                                                                              \
    }

/* How many steps of objects fit into the half of the memory. */
size_t subject_steps(const subject_options *o);

/* Gives take each record of a SOURCE that counts. False after having said what could not be read. */
bool subject_read(subject_options *o, const char *source, void (*take)(void *user, const nl_record *record),
                  void *user);

/* Frees what they hold; returns whether all that was read was sound, as program_reading_finish has it. */
bool subject_options_finish(subject_options *o);

#endif
