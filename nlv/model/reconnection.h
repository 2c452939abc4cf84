/*
 * Opens the stream of a collector again, for example after the collector was restarted. A separate thread tries to
 * connect, because a collector may take long to answer. It waits RECONNECTION_MIN_S after the first failure, and twice
 * as long after each further failure, up to RECONNECTION_MAX_S.
 */
#ifndef NLV_RECONNECTION_H
#define NLV_RECONNECTION_H

#include "transport/source.h"

enum { RECONNECTION_MIN_S = 2, RECONNECTION_MAX_S = 60 };

typedef struct reconnection reconnection;

/* Starts to connect to the collector of a URL. */
reconnection *reconnection_start(const char *url);

/* Returns the stream, which the caller owns, or NULL if nlv is not connected yet. */
nl_source *reconnection_take(reconnection *r);

/* Stops connecting, and closes a stream that was not taken. Does not wait for the collector. NULL is allowed. */
void reconnection_free(reconnection *r);

#endif
