/*
 * Where netlogd reads shards of NATS JetStream: the messages that wait, one after the other, for the server's thread.
 *
 * Each shard of the share has a durable consumer. It is asked for messages while few enough are here; what is here is
 * reported to be in progress every few seconds, so that the server, which gives what it hears nothing of for ACK_WAIT
 * to somebody again, keeps it for us however long the outputs cannot be written; and each message is acknowledged once
 * all that came with it is settled. What was given to a netlogd that was killed comes first, in order, when it is back:
 * a shard is not asked for more until the server has missed its acknowledgements.
 *
 * Two netlogds must not read the same shard: each would have half of its streams, take the other half for lost, and not
 * know what the other has written when it is given that again. So whoever reads one answers on the subject
 * netlogd-reads.STREAM.DURABLE, and one that is answered waits until that other has gone.
 *
 * Everything that waits for the network is done by a thread of its own and libnats' threads. The functions are for the
 * server's thread.
 */
#ifndef NETLOGD_NATS_INTAKE_H
#define NETLOGD_NATS_INTAKE_H

#include "place.h"

typedef struct nats_intake nats_intake;

/* A message. It is the intake's, and its data last until it is acknowledged. */
typedef struct nats_message nats_message;

typedef struct nats_intake_state {
    uint64_t messages; /* taken so far */
    uint64_t again;    /* of these, given to somebody before */
    uint64_t waiting;  /* here, and not acknowledged */
    char reason[256];  /* nothing comes; empty: all is well */
} nats_intake_state;

/* Begins to connect; place is taken over. Not before the last fork. */
nats_intake *nats_intake_open(nats_place *place);

/* A descriptor that can be read when there is a message to take, or another reason why there is none. */
int nats_intake_descriptor(const nats_intake *intake);

/* The next message, in the order of its shard; NULL when there is none now. */
nats_message *nats_intake_next(nats_intake *intake);

/* Its bytes, and a name for reports: STREAM, its number there. */
nl_string nats_message_data(const nats_message *m);
const char *nats_message_name(const nats_message *m, char name[NATS_NAME_SIZE]);

/* The message, which was taken, is not acknowledged: the server gives it again after 30 s. */
void nats_message_refuse(nats_message *m);

/* All that was taken is settled: it is never to come again, unless it was refused. */
void nats_intake_acknowledge(nats_intake *intake);

void nats_intake_describe(nats_intake *intake, nats_intake_state *state);

/* Says at the servers that what was acknowledged is, and gives back what was not. NULL is allowed. */
void nats_intake_close(nats_intake *intake);

#endif
