/*
 * Connects the window to agents: searches directories, and combines the records of sensors into one growing log. Each
 * search and each subscription has its own thread (common/agents), so that no directory or agent delays the window.
 *
 * Does not use GTK. All functions and callbacks run in the main loop's thread.
 */
#ifndef NLV_AGENTS_H
#define NLV_AGENTS_H

#include "model/feed.h"
#include "requests/drawing.h"

typedef struct agents agents;

/* A sensor of an agent, as listed in a directory. */
typedef struct agents_row {
    char *host, *url, *sensor, *events;
} agents_row;

typedef struct agents_callbacks {
    /* A search has ended. `rows` (agents_row) are sorted, and valid during the call. `problem` is "" on success. */
    void (*found)(void *user, const GPtrArray *rows, const char *problem);
    /* The state of an added sensor has changed. `message` is the new state. `is_error` is true if the state is a
     * failure. */
    void (*changed)(void *user, const char *url, const char *sensor, const char *message, bool is_error);
    /* The loadlines to draw have changed (agents_loadlines). */
    void (*drawn)(void *user);
    void *user;
} agents_callbacks;

agents *agents_new(agents_callbacks callbacks);

/* Ends all subscriptions and all searches, and frees `a`. Does not wait for peers. */
void agents_free(agents *a);

/*
 * Searches a directory, whose URL is http://HOST:PORT or ldap://HOST. If `directory` is NULL or "", searches the
 * directory that $NLAGENT_DIRECTORY names. If this variable is not set, searches the agent that $NLAGENT names
 * (default: this host). Cancels the previous search. `expression` has the syntax of nlagent find; "" finds all sensors.
 */
void agents_find(agents *a, const char *directory, const char *expression);

/*
 * agents_add subscribes to a sensor until agents_remove. If the agent becomes unreachable, the subscription reconnects
 * later. On failure, agents_add passes the reason to the callback `changed` and returns false.
 */
bool agents_add(agents *a, const char *url, const char *sensor);
void agents_remove(agents *a, const char *url, const char *sensor);

/* Returns the state of a sensor as text, or NULL if the sensor was not added. */
const char *agents_state(const agents *a, const char *url, const char *sensor);

/* Calls `function` for each sensor that was added. */
void agents_each(const agents *a, void (*function)(void *user, const char *url, const char *sensor, const char *state),
                 void *user);

/* Returns the feed that receives all records. The caller gets no reference of its own. */
feed *agents_feed(agents *a);

/* Returns a drawing with the sensors' loadlines. The caller owns the drawing. The drawing's list of quiet events
 * contains all events that the sensors have logged. */
drawing *agents_loadlines(const agents *a);

#endif
