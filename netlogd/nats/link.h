/*
 * A connection to a cluster of NATS servers, and the streams of a place in it.
 *
 * libnats has threads of its own, and connects again by itself, to any server of the cluster, when the connection is
 * lost. Results of its calls become words here.
 */
#ifndef NETLOGD_NATS_LINK_H
#define NETLOGD_NATS_LINK_H

#include "place.h"

#include <nats/nats.h>
#include <semaphore.h>

typedef struct nats_link {
    const nats_place *place; /* the caller's */
    natsConnection *connection;
    jsCtx *js;
    unsigned shards; /* once nats_link_find_streams has succeeded */
    sem_t closed;
} nats_link;

/*
 * Connects within some seconds. on_reconnected, which may be NULL, is called in one of libnats' threads when the
 * connection was lost and is there again. NULL with the reason in nl_error_message(), and *refused says whether the
 * servers are there and let nobody in with these credentials.
 */
nats_link *nats_link_open(const nats_place *place, natsConnectionHandler on_reconnected, void *user, bool *refused);

/* Makes the streams that are not there; *wrong says whether those that are there cannot be used at all. */
nl_status nats_link_find_streams(nats_link *link, bool *wrong);

/* Ends a subscription: no callback of it runs afterwards. NULL is allowed. */
void nats_subscription_end(natsSubscription *subscription);

/* Waits until what was sent has reached the server, if that takes no longer than a second, and frees it: no callback of
 * the connection runs afterwards. NULL is allowed. */
void nats_link_close(nats_link *link);

/* NL_FAILED with "what: why" in nl_error_message(); server_code is JetStream's, 0 when it said nothing. */
nl_status nats_failure(const char *what, natsStatus status, jsErrCode server_code);

#endif
