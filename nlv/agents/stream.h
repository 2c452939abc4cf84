/*
 * A subscription to one sensor of an agent. A separate thread receives the records (agents/gather.h), and reconnects if
 * the agent becomes unreachable. The thread decodes the records and passes them to a feed. The thread also notifies the
 * main loop of the first record of each event, and of changes of the stream's state.
 *
 * All functions and callbacks run in the main loop's thread.
 */
#ifndef NLV_AGENTS_STREAM_H
#define NLV_AGENTS_STREAM_H

#include "agents/find.h"
#include "model/feed.h"

#include <glib.h>

typedef struct stream stream;

typedef struct stream_callbacks {
    void (*record)(void *user, const stream *from,
                   const nl_record *record); /* called with the first record of each event */
    void (*state)(void *user, const stream *of);
    void *user;
} stream_callbacks;

/* Subscribes to a sensor. Returns NULL and sets the error on failure. `options` must remain valid until the program
 * ends. The stream keeps a reference to the feed. */
stream *stream_new(const agents_options *options, const char *url, const char *sensor, feed *into,
                   stream_callbacks callbacks);

/* Ends a stream (stream *) without waiting for the agent. */
void stream_free(gpointer s);

bool stream_is(const stream *s, const char *url, const char *sensor);
const char *stream_url(const stream *s);
const char *stream_sensor(const stream *s);

/* Returns the state as text for the user, which is valid until the next change of the state. */
const char *stream_state(const stream *s);

/* Returns whether the state is a failure of the sensor or of the connection. */
bool stream_has_failed(const stream *s);

#endif
