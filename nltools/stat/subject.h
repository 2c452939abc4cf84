/*
 * Reads the input of nlstat and nldiag: the selected records and their lifelines.
 *
 * A subject reads sources and passes each selected record to its user. The lifelines come from a file, or the subject
 * infers them from the first records, which wait in a sample. The sample has a maximum number of records, fields and
 * bytes. Not thread-safe.
 */
#ifndef NLSTAT_SUBJECT_H
#define NLSTAT_SUBJECT_H

#include "program/absent_fields.h"
#include "program/program.h"
#include "requests/drawing.h"
#include "requests/request_filter.h"

/* The settings of subject_option_rows, PROGRAM_RANGE_OPTIONS, program_reading_options and program_strict_options. */
typedef struct subject_options {
    char **ids;         /* ID fields, NULL-terminated; NULL: infer them from the log */
    const char *config; /* file with the lifelines, or NULL */
    size_t memory_max;  /* maximum memory in bytes */
    bool has_sources;   /* there are several sources, which must not contain the same records */
    program_where where;
    request_filter *requests;  /* NULL: all requests */
    absent_fields *absent;     /* fields that `requests` names and no record has; NULL before the first source */
    absent_fields *absent_ids; /* fields that `ids` names and no record has */
    bool has_events;           /* a record has an event name */
    char *repeated;            /* message about a source that has the records of another source, or NULL */
    char *reason;              /* the result of subject_reason_no_requests */
    program_reading reading;
} subject_options;

/* The message about requests that consist only of selected records. */
#define SUBJECT_SELECTED_RECORDS                                                                                       \
    "requests consist only of the records that match --where; any(EXPRESSION) selects whole requests"

/* The option rows of --id, --config, --memory and --where. */
extern const nl_option subject_option_rows[];

/* The option groups of a program whose settings have a member `subject` of type subject_options. List these groups
 * after the program's own group. */
#define SUBJECT_GROUPS(settings)                                                                                       \
    {"Selecting records", subject_option_rows, offsetof(settings, subject)},                                           \
        {"Selecting records", PROGRAM_RANGE_OPTIONS, offsetof(settings, subject.where)},                               \
        {"Reading", program_reading_options, offsetof(settings, subject.reading)},                                     \
        {"Reading", program_strict_options, offsetof(settings, subject.reading)},                                      \
    {                                                                                                                  \
        0                                                                                                              \
    }

/* Reads a source to its end, and passes the selected records to `take`, without determining lifelines. Adds the number
 * of these records to *count. If a part cannot be read, reports the problem and returns false. */
bool subject_read_records(subject_options *o, const char *source, void (*take)(void *user, const nl_record *record),
                          void *user, uint64_t *count);

typedef struct subject subject;

typedef struct subject_user {
    void (*begin)(void *user, const drawing *d); /* called once, before any record; d is valid until subject_free */
    void (*take)(void *user, const nl_record *record);
    void *user;
} subject_user;

/*
 * Returns a new subject; `options` must outlive it. Exits with a message if the file with the lifelines cannot be read.
 */
subject *subject_new(subject_options *options, subject_user user);
void subject_free(subject *s);

/* Adds a record from the caller instead of subject_read. */
void subject_add(subject *s, const nl_record *record);

/* Reads a source to its end. If a part cannot be read, reports the problem and returns false. */
bool subject_read(subject *s, const char *source);

/* Infers the lifelines if they are still unknown, and passes on waiting records. Call the function after the last
 * record. */
void subject_settle(subject *s);

/* Returns whether records were read. If not, reports the reason (program_has_records). */
bool subject_has_records(const subject *s);

/* Returns why the records have no requests. The text is valid until subject_options_finish. */
const char *subject_reason_no_requests(subject_options *o);

/* Frees the members of the options. Returns whether all input was valid (program_reading_finish). */
bool subject_options_finish(subject_options *o);

#endif
