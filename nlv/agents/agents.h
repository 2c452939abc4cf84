/*
 * The agents that the window uses: searches in directories, and the records of sensors as one log that grows. Each
 * search and each stream has a thread (common/agents), so that no directory or agent delays the window.
 *
 * No GTK. All functions and callbacks run in the main loop's thread.
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
    /* A search has ended. rows (agents_row) are sorted and valid during the call; problem is "" if the search
     * succeeded. */
    void (*found)(void *user, const GPtrArray *rows, const char *problem);
    /* The state of a sensor that was added, as text. */
    void (*changed)(void *user, const char *url, const char *sensor, const char *message);
    /* The loadlines to draw have changed: see agents_loadlines. */
    void (*drawn)(void *user);
    void *user;
} agents_callbacks;

agents *agents_new(agents_callbacks callbacks);

/* Ends all streams and searches without waiting for a peer. */
void agents_free(agents *a);

/*
 * Searches a directory, http://HOST:PORT or ldap://HOST; NULL or "": $NLAGENT_DIRECTORY, or this host. Cancels the
 * previous search. expression: as for nlagent find; "": all sensors.
 */
void agents_find(agents *a, const char *directory, const char *expression);

/*
 * Subscribes to a sensor until it is removed. Subscribes again whenever the agent was unreachable. Returns false after
 * passing the reason to the callback changed.
 */
bool agents_add(agents *a, const char *url, const char *sensor);
void agents_remove(agents *a, const char *url, const char *sensor);

/* Returns the state of a sensor; NULL if it was not added. */
const char *agents_state(const agents *a, const char *url, const char *sensor);

/* Calls function for each sensor that was added. */
void agents_each(const agents *a, void (*function)(void *user, const char *url, const char *sensor, const char *state),
                 void *user);

/* Returns the feed that gets all records. The caller gets no reference of its own. */
feed *agents_feed(agents *a);

/*
 * Returns the loadlines of the sensors, which the caller owns. Their quiet events are all events that the sensors have
 * logged.
 */
drawing *agents_loadlines(const agents *a);

#endif
