/*
 * A sensor's records, subscribed to in this process: a thread of its own (agents/gather.h) asks the agent, and again
 * when the agent was away, and reports that by events of its own in the stream. See agents.h. All functions and
 * callbacks are of the main loop's thread.
 */
#ifndef NLV_AGENTS_STREAM_H
#define NLV_AGENTS_STREAM_H

#include "agents/find.h"

#include <glib.h>

typedef struct stream stream;

typedef struct stream_callbacks {
    void (*record)(void *user, const stream *from, const nl_record *record);
    void (*read)(void *user); /* after the records that came at once */
    void (*state)(void *user, const stream *of);
    void *user;
} stream_callbacks;

/* NULL with the reason in nl_error_message(). options must last as long as the program. */
stream *stream_new(const agents_options *options, const char *url, const char *sensor, stream_callbacks callbacks);

/* Ends it (a stream *), without waiting for the agent. */
void stream_free(gpointer s);

/* Takes no more records for the moment, or does again. */
void stream_hold(stream *s, bool hold);

bool stream_is(const stream *s, const char *url, const char *sensor);
const char *stream_url(const stream *s);
const char *stream_sensor(const stream *s);

/* Its state, as text for people. */
const char *stream_state(const stream *s);

/* Whether a record is about the stream, and of no sensor. */
bool stream_is_own_event(const nl_record *record);

#endif
