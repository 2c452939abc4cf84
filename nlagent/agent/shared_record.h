/*
 * A record that several subscriptions share: one line of ULM, as the sensor wrote it.
 *
 * nlagentd passes the line on without reading it. shared_record_decode reads it, once for all users, for a function
 * that needs the fields: an expression, a summary, or a reply in another format. One thread.
 */
#ifndef NLAGENT_SHARED_RECORD_H
#define NLAGENT_SHARED_RECORD_H

#include <netlogger.h>

typedef struct shared_record {
    unsigned users;
    bool is_failure;     /* an event of nlagentd whose REASON says why the sensor's records do not come */
    int64_t received_ns; /* when nlagentd received it, since 1970 */
    nl_record *decoded;  /* NULL until shared_record_decode */
    size_t size;         /* with the newline */
    char line[];
} shared_record;

/* Copies a line, which is given without its newline, for one user. */
shared_record *shared_record_new(const char *line, size_t size);

/* Encodes a record for one user. */
shared_record *shared_record_encode(const nl_record *record);

/* Returns the fields, which belong to r, or NULL if the line is not a record. */
const nl_record *shared_record_decode(shared_record *r);

/* Ends the use by one user; the last one frees the record. NULL is allowed. */
void shared_record_release(shared_record *r);

/* Returns how many lines this process has decoded. */
uint64_t shared_record_decoded_count(void);

#endif
