/*
 * A connection to a cluster of NATS servers, and the streams that a nats_place names.
 *
 * libnats has its own threads, and reconnects automatically to any server of the cluster. This module converts libnats'
 * results to NetLogger's errors.
 */
#ifndef NETLOGD_NATS_LINK_H
#define NETLOGD_NATS_LINK_H

#include "place.h"

#include <nats/nats.h>
#include <semaphore.h>

typedef struct nats_link {
    const nats_place *place; /* owned by the caller */
    natsConnection *connection;
    jsCtx *js;
    unsigned shards; /* set by nats_link_find_streams */
    sem_t closed;
} nats_link;

/*
 * Tries to connect for some seconds. on_reconnected, which may be NULL, is called in a thread of libnats after each
 * reconnection. On failure, sets the error and returns NULL. Sets *refused to true if the options of `place` are
 * invalid, TLS fails, or the servers reject the credentials.
 */
nats_link *nats_link_open(const nats_place *place, natsConnectionHandler on_reconnected, void *user, bool *refused);

/*
 * Creates missing streams. Sets *wrong to true if existing streams cannot be used. On failure, sets the error and
 * returns NL_FAILED.
 */
nl_status nats_link_find_streams(nats_link *link, bool *wrong);

/* Ends a subscription. Its callbacks do not run afterwards. `subscription` may be NULL. */
void nats_subscription_end(natsSubscription *subscription);

/*
 * Waits up to a second for the server to receive everything, and then frees the connection. Its callbacks do not run
 * afterwards. `link` may be NULL.
 */
void nats_link_close(nats_link *link);

/* Sets the error to `what` and the reason. Returns NL_FAILED. `server_code` is JetStream's error code, or 0. */
nl_status nats_failure(const char *what, natsStatus status, jsErrCode server_code);

#endif
