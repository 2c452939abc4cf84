/* Which records are messages: sendings and receivings that belong together, by their events and ids. Of correction.c:
 * aborts when there is no memory, one thread. */
#ifndef NETLOGGER_TIMEKEEPING_MESSAGES_H
#define NETLOGGER_TIMEKEEPING_MESSAGES_H

#include "clocks/correction.h"
#include "clocks/name_table.h"

/* A message that was both sent and received. */
typedef struct message {
    uint32_t from, to; /* hosts, by their numbers */
    int64_t sent_ns, received_ns;
} message;

typedef struct messages messages;

/* options are to outlive it. */
messages *messages_new(const correction_options *options);

/* Takes a record of the host of that number. */
void messages_put(messages *m, const nl_record *record, uint32_t host);

/* The next message, from *at on, which is 0 at first. False when there are no more. */
bool messages_next(const messages *m, size_t *at, message *found);

void messages_free(messages *m);

#endif
