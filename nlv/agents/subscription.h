/*
 * A subscription to one sensor of an agent. A separate thread receives the records (agents/gather.h), and reconnects if
 * the agent becomes unreachable. The thread decodes the records and passes them to a feed. The thread also notifies the
 * main loop of the first record of each event, and of changes of the subscription's state.
 *
 * All functions and callbacks run in the main loop's thread.
 */
#ifndef NLV_AGENTS_SUBSCRIPTION_H
#define NLV_AGENTS_SUBSCRIPTION_H

#include "agents/find.h"
#include "model/feed.h"

#include <glib.h>

typedef struct subscription subscription;

typedef struct subscription_callbacks {
    void (*record)(void *user, const subscription *from,
                   const nl_record *record); /* called with the first record of each event */
    void (*state)(void *user, const subscription *of);
    void *user;
} subscription_callbacks;

/* Subscribes to a sensor. Returns NULL and sets the error on failure. `options` must remain valid until the program
 * ends. The subscription keeps a reference to the feed. */
subscription *subscription_new(const agents_options *options, const char *url, const char *sensor, feed *into,
                               subscription_callbacks callbacks);

/* Ends a subscription (subscription *) without waiting for the agent. */
void subscription_free(gpointer s);

bool subscription_is(const subscription *s, const char *url, const char *sensor);
const char *subscription_url(const subscription *s);
const char *subscription_sensor(const subscription *s);

/* Returns the state as text for the user, which is valid until the next change of the state. */
const char *subscription_state(const subscription *s);

/* Returns whether the state is a failure of the sensor or of the connection. */
bool subscription_has_failed(const subscription *s);

#endif
