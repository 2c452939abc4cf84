/*
 * Reads inputs from NATS JetStream in the server's event loop. Like a client's bytes, each message goes through a
 * decoder into the outputs. netlogd acknowledges the message when the outputs have stored its records.
 *
 * netlogd also acknowledges a message with malformed input, after it has counted and reported the input, so that NATS
 * does not deliver the message again.
 *
 * The module owns the list of inputs. Only the server's thread may call it.
 */
#ifndef NETLOGD_NATS_READER_H
#define NETLOGD_NATS_READER_H

#include "request.h"
#include "transport/url.h"

typedef struct nats_counts {
    uint64_t places;   /* number of inputs */
    uint64_t away;     /* number of inputs from which netlogd cannot read at present */
    uint64_t records;  /* number of received records */
    uint64_t messages; /* number of received messages */
    uint64_t again;    /* number of messages that NATS had delivered before */
    uint64_t waiting;  /* number of messages that are not acknowledged yet */
} nats_counts;

/*
 * Checks a URL of an input. Returns the name of the input: the URL with durable= and share= but without secrets. The
 * caller frees the name with free(). On failure, sets the error and returns NULL.
 */
char *nats_reader_check(const nl_url *url);

/* Begins to read the inputs in the settings. */
void nats_readers_start(void);

/* Stops reading messages because an output is blocked, or resumes reading. */
void nats_readers_pause(bool pause);

/* Acknowledges all messages after the outputs have settled their records. */
void nats_readers_acknowledge(void);

nats_counts nats_readers_count(void);

/* Appends a record for each input to the reply to a request. */
void nats_readers_describe(request *r);

/* Sends the pending acknowledgements to the servers, and frees all inputs. */
void nats_readers_free(void);

#endif
