/*
 * The input of nlstat and nldiag: the records that count, and their requests.
 *
 * A subject reads sources and passes each record that counts to its user. The lifelines come from a file or from the
 * first records, which wait in a sample until the lifelines are known. The sample is bounded in records, fields and
 * bytes. One thread at a time.
 */
#ifndef NLSTAT_SUBJECT_H
#define NLSTAT_SUBJECT_H

#include "program/program.h"
#include "requests/drawing.h"

/* Settings of subject_option_rows, program_where_options, program_reading_options and program_strict_options. */
typedef struct subject_options {
    char **ids;         /* ended by NULL; NULL: found in the log */
    const char *config; /* file of lifelines, or NULL */
    size_t memory_max;  /* bytes */
    program_where where;
    program_reading reading;
} subject_options;

/* --id, --config and --memory. */
extern const nl_option subject_option_rows[];

/* The groups of a program whose settings have a subject_options named subject, after its own group. */
#define SUBJECT_GROUPS(settings)                                                                                       \
    {"Which records", subject_option_rows, offsetof(settings, subject)},                                               \
        {"Which records", program_where_options, offsetof(settings, subject.where)},                                   \
        {"Reading", program_reading_options, offsetof(settings, subject.reading)},                                     \
        {"Reading", program_strict_options, offsetof(settings, subject.reading)},                                      \
    {                                                                                                                  \
        0                                                                                                              \
    }

typedef struct subject subject;

typedef struct subject_user {
    void (*begin)(void *user, const drawing *d); /* called once, first; d is valid until subject_free */
    void (*take)(void *user, const nl_record *record);
    void *user;
} subject_user;

/* Returns a new subject; options must outlive it. Ends the program if the file of lifelines cannot be read. */
subject *subject_new(subject_options *options, subject_user user);
void subject_free(subject *s);

/* Reads a source to its end. Returns false after reporting an unreadable part. */
bool subject_read(subject *s, const char *source);

/* Finds the lifelines and passes on the records that still wait. Call it after the last record. */
void subject_settle(subject *s);

/* Returns whether records were read. If not, reports the reason (program_has_records). */
bool subject_has_records(const subject *s);

/* Frees the options' members. Returns whether all input was sound, see program_reading_finish. */
bool subject_options_finish(subject_options *o);

#endif
