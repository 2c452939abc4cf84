/*
 * Finds messages for correction.c. Matches the send and receive records by their event names and IDs. If memory runs
 * out, the program ends. Only one thread may use a table.
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

/* Creates the table of messages, which the caller frees. The options must outlive the table. */
messages *messages_new(const correction_options *options);

/* Adds a record of a host. */
void messages_put(messages *m, const nl_record *record, uint32_t host);

/* Finds the next message from position *at, which is 0 at first. Returns false after the last message. */
bool messages_next(const messages *m, size_t *at, message *found);

void messages_free(messages *m);

/*
 * Returns whether, according to the two names, the second event is the receipt of a message that the first event
 * sends.
 */
bool messages_is_pair(const char *sent, const char *received);

#endif
