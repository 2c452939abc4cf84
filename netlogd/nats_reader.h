/*
 * Inputs from NATS JetStream, in the server's event loop: each message goes through a decoder into the outputs, as a
 * client's bytes do, and is acknowledged as a client's blocks are.
 *
 * Malformed input in a message is counted, reported and acknowledged, so that NATS does not deliver it again. The
 * module owns the list of inputs. The server's thread only.
 */
#ifndef NETLOGD_NATS_READER_H
#define NETLOGD_NATS_READER_H

#include "request.h"
#include "transport/url.h"

typedef struct nats_counts {
    uint64_t places;   /* inputs */
    uint64_t away;     /* inputs from which netlogd currently cannot read */
    uint64_t records;  /* received */
    uint64_t messages; /* received */
    uint64_t again;    /* messages that NATS had delivered before */
    uint64_t waiting;  /* messages that are not acknowledged yet */
} nats_counts;

/*
 * Checks a URL. Returns its name, with durable and share but without secrets, which the caller frees with free(), or
 * NULL after setting the error.
 */
char *nats_reader_check(const nl_url *url);

/* Starts to read the inputs of the settings. */
void nats_readers_start(void);

/* Stops reading messages because an output is blocked, or starts again. */
void nats_readers_pause(bool pause);

/* Acknowledges all messages, after the outputs are settled. */
void nats_readers_acknowledge(void);

nats_counts nats_readers_count(void);

/* Appends a record for each input to the reply to a request. */
void nats_readers_describe(request *r);

/* Sends the pending acknowledgements to the servers, and frees all inputs. */
void nats_readers_free(void);

#endif
