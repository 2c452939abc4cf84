/*
 * Asking agents: SOAP over HTTP, plain or within TLS. Blocking, within a time; one thread at a time for a client.
 */
#ifndef NLAGENT_CLIENT_H
#define NLAGENT_CLIENT_H

#include "agents/soap.h"
#include "transport/dial.h"

enum { CLIENT_DEFAULT_PORT = 14831, CLIENT_TIMEOUT_MS = 15000 };

/* What connections to all agents have in common. Each may be NULL. */
typedef struct client_options {
    const char *ca, *cert, *key; /* PEM files, of https */
    const char *token;
} client_options;

typedef struct client client;

/* For http://HOST[:PORT] or https://HOST[:PORT]; connects nothing yet. NULL on failure. */
client *client_new(const char *url, const client_options *o);
void client_free(client *c);

/*
 * Sends a message, and reads the answer into answer, to be freed with soap_call_free in any case. Returns
 * false and sets the error when the request failed; the message of a fault is its text.
 */
bool client_call(client *c, const nl_buffer *message, soap_call *answer);

/*
 * Opens a stream: a connection whose bytes from here on are records; what came of them already is in begin. It is the
 * caller's, for nl_channel_close, and must not outlast the client. Returns false on failure.
 */
bool client_open_stream(client *c, const char *subscription, const char *format, nl_channel *channel, nl_buffer *begin);

#endif
