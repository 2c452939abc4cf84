/*
 * What the lifelines of a log are: read from a file, or found from the log's first records, which wait until that is
 * done. One thread at a time.
 */
#ifndef NLSTAT_SUBJECT_H
#define NLSTAT_SUBJECT_H

#include "requests/drawing.h"

enum { SUBJECT_SAMPLE = 100000 /* records that wait */ };

typedef struct subject subject;

/* What a subject tells its user: first, once, what the lifelines are, valid until subject_free; then each record. */
typedef struct subject_user {
    void (*begin)(void *user, const drawing *d);
    void (*take)(void *user, const nl_record *record);
    void *user;
} subject_user;

/*
 * config is a file of nlv's (drawing.h), or NULL; then ids are the fields that name an object, NULL at the end, or NULL
 * when these are to be found too. A file that cannot be read ends the program, which says why.
 */
subject *subject_new(const char *config, const char *const *ids, subject_user user);
void subject_free(subject *s);

/* The next record of the log; it is copied when it has to wait. */
void subject_add(subject *s, const nl_record *record);

/* After the last record: what still waits is told. */
void subject_settle(subject *s);

/* How many records had events that the sample, from which the lifelines were found, did not have. */
uint64_t subject_late(const subject *s);

#endif
