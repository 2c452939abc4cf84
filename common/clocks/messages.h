/*
 * Finds messages for correction.c. The sending and the receipt of a message are two records, which the module matches
 * by their event names and IDs. The module ignores messages beyond the first 16,777,216. If memory runs out, the
 * program ends. Only one thread at a time may use a table.
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

/* Returns whether two event names form a pair such as Ping.Send and Ping.Receive. */
bool messages_is_pair(const char *sent, const char *received);

#endif
