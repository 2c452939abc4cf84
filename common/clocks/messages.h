/*
 * Finds messages for correction.c: matches the records of sending and receiving by their events and IDs. If memory runs
 * out, the program ends. One thread.
 */
#ifndef NETLOGGER_TIMEKEEPING_MESSAGES_H
#define NETLOGGER_TIMEKEEPING_MESSAGES_H

#include "clocks/correction.h"
#include "clocks/name_table.h"

/* A message that was both sent and received. */
typedef struct message {
    uint32_t from, to; /* numbers of hosts */
    int64_t sent_ns, received_ns;
} message;

typedef struct messages messages;

/* The options must outlive the result, which the caller frees. */
messages *messages_new(const correction_options *options);

/* Adds a record of a host. */
void messages_put(messages *m, const nl_record *record, uint32_t host);

/* Finds the next message from *at, which is 0 at first. Returns false after the last. */
bool messages_next(const messages *m, size_t *at, message *found);

void messages_free(messages *m);

/* Returns whether, by their names, the second event is the receipt of a message that the first event sends. */
bool messages_is_pair(const char *sent, const char *received);

#endif
