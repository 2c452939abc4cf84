/*
 * A sensor's records, as nlagent collects them: it subscribes, and again when the agent was away, and says so by events
 * of its own in the stream. See agents.h.
 */
#ifndef NLV_AGENTS_STREAM_H
#define NLV_AGENTS_STREAM_H

#include <gio/gio.h>
#include <netlogger.h>
#include <stdbool.h>

typedef struct stream stream;

typedef struct stream_callbacks {
    void (*record)(void *user, const stream *from, const nl_record *record);
    void (*read)(void *user); /* after the records that came at once */
    void (*state)(void *user, const stream *of);
    void *user;
} stream_callbacks;

/* NULL with the reason in *problem, to be freed with g_free. */
stream *stream_new(const char *url, const char *sensor, stream_callbacks callbacks);

/* Ends it (a stream *). Nobody is waited for. */
void stream_free(gpointer s);

/* Reads no more for the moment, or does again. */
void stream_hold(stream *s, bool hold);

bool stream_is(const stream *s, const char *url, const char *sensor);
const char *stream_url(const stream *s);
const char *stream_sensor(const stream *s);

/* How it is, in words. */
const char *stream_state(const stream *s);

/* Whether a record is about the stream, and of no sensor. */
bool stream_is_own_event(const nl_record *record);

/* Starts nlagent with these arguments up to NULL, its output and what it says to be read. NULL with the reason. */
GSubprocess *stream_start_nlagent(const char *const *arguments);

/* The last line of what a program said, without its name; to be freed with g_free. NULL is allowed. */
char *stream_last_line(GBytes *said);

#endif
