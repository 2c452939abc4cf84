/*
 * Reads the shards of a NATS JetStream stream, and queues their messages, in order, for the server's thread.
 *
 * Each shard that netlogd reads has a durable consumer. The intake requests more messages while it has only a few
 * messages. If 10 seconds pass without a report about a message, JetStream delivers the message again, possibly to
 * another client. Therefore, the intake reports every few seconds that its messages are in progress, even while the
 * outputs are blocked. It acknowledges a message when the outputs have settled the message's records. After a kill,
 * JetStream again delivers the messages that the killed netlogd had not acknowledged. To get these messages first and
 * in order, the intake requests no other messages of a shard until JetStream has noticed the missing acknowledgements.
 *
 * Two netlogd processes must not read the same shard. Each process would get only some of the records of each stream,
 * and would report the other records as lost. A starting reader therefore asks on the subject
 * netlogd-reads.STREAM.DURABLE whether another netlogd reads its shards. If the starting reader receives a reply, it
 * waits until the other reader has ended.
 *
 * The intake's own thread and libnats' threads do all work that waits for the network. Only the server's thread may
 * call the functions.
 */
#ifndef NETLOGD_NATS_INTAKE_H
#define NETLOGD_NATS_INTAKE_H

#include "place.h"

#include "base/error.h"

typedef struct nats_intake nats_intake;

/* A message, which the intake owns. Its data are valid until the message is acknowledged. */
typedef struct nats_message nats_message;

typedef struct nats_intake_state {
    uint64_t messages; /* number of messages received so far */
    uint64_t again;    /* number of received messages that NATS had delivered before */
    uint64_t waiting;  /* number of messages that are not acknowledged */
    nl_error problem;  /* why no messages arrive */
} nats_intake_state;

/* Begins to connect. Takes ownership of `place`. The process must not fork afterwards. */
nats_intake *nats_intake_open(nats_place *place);

/* Returns a descriptor that is readable when a message or a new state is available. */
int nats_intake_descriptor(const nats_intake *intake);

/* Returns the next message, in the order of its shard, or NULL if no message is available. */
nats_message *nats_intake_next(nats_intake *intake);

/*
 * nats_message_data returns the bytes of a message. nats_message_name writes and returns a name for reports, which
 * consists of the message's subject and its number in the JetStream stream.
 */
nl_string nats_message_data(const nats_message *m);
const char *nats_message_name(const nats_message *m, char name[NATS_NAME_SIZE]);

/* Marks a received message as rejected. The intake does not acknowledge it, and NATS delivers it again after 30 s. */
void nats_message_refuse(nats_message *m);

/*
 * Acknowledges all messages that nats_intake_next has returned, except rejected messages. Call it after the outputs
 * have settled their records.
 */
void nats_intake_acknowledge(nats_intake *intake);

void nats_intake_describe(nats_intake *intake, nats_intake_state *state);

/* Sends the pending acknowledgements, returns the other messages to NATS, and frees `intake`, which may be NULL. */
void nats_intake_close(nats_intake *intake);

#endif
