/*
 * Records that several subscriptions share. A record is one ULM line. If the sensor writes ULM, the record contains the
 * sensor's line unchanged.
 *
 * nlagentd can pass on the line without decoding. Expressions, summaries and replies in another format need the
 * record's fields, so shared_record_decode parses the line once for all users. Not thread-safe.
 */
#ifndef NLAGENT_SHARED_RECORD_H
#define NLAGENT_SHARED_RECORD_H

#include <netlogger.h>

typedef struct shared_record {
    unsigned users;
    bool is_failure; /* the record is an nlagentd event whose REASON field explains why the sensor's records are missing
                      */
    int64_t received_ns; /* time at which nlagentd received the record, in nanoseconds since 1970 */
    nl_record *decoded;  /* NULL before the first call of shared_record_decode */
    size_t size;         /* size of `line` in bytes, including the newline */
    char line[];
} shared_record;

/* Returns a record with a copy of a line. `line` has no newline. The record has one user, the caller. */
shared_record *shared_record_new(const char *line, size_t size);

/* Returns a shared record with the text of a decoded record. The shared record has one user, the caller. */
shared_record *shared_record_encode(const nl_record *record);

/* Returns the decoded record, which r owns, or NULL if the line is not a valid record. */
const nl_record *shared_record_decode(shared_record *r);

/* Removes one user. Frees the record if it has no more users. `r` may be NULL. */
void shared_record_release(shared_record *r);

/* Returns the number of lines that this process has decoded. */
uint64_t shared_record_decoded_count(void);

#endif
