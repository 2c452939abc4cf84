/*
 * Sends requests to agents, as SOAP over HTTP with or without TLS. The functions block for a bounded time. Only one
 * thread at a time may use a client.
 */
#ifndef NLAGENT_CLIENT_H
#define NLAGENT_CLIENT_H

#include "agents/soap.h"
#include "transport/dial.h"

/* Options of the connections to all agents. Each member may be NULL. */
typedef struct client_options {
    const char *ca, *cert, *key; /* PEM files, for https */
    const char *token;
} client_options;

typedef struct client client;

/*
 * Returns a client for http://HOST[:PORT] or https://HOST[:PORT], which is not yet connected. Returns NULL and sets the
 * error on failure.
 */
client *client_new(const char *url, const client_options *o);
void client_free(client *c); /* NULL is allowed */

/*
 * Sends a message and reads the reply. The caller frees the reply with soap_call_free, even after a failure. Returns
 * false and sets the error on failure, and if the reply is a fault.
 */
bool client_call(client *c, const nl_buffer *message, soap_call *reply);

/*
 * Opens a delivery, which is a connection on which records arrive. Sets `begin` to the bytes that have already arrived.
 * The caller closes the channel with nl_channel_close before it calls client_free. Returns false and sets the error on
 * failure.
 */
bool client_open_delivery(client *c, const char *subscription, const char *format, nl_channel *channel,
                          nl_buffer *begin);

#endif
