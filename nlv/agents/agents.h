/*
 * Agents, as the window has them: looked up in a directory, and their sensors' records as one log that grows. Threads
 * ask (common/agents), one for each look-up and each stream: nothing that a directory or an agent does, or fails to do,
 * holds up the window. No GTK; all functions and callbacks are of the main loop's thread.
 */
#ifndef NLV_AGENTS_H
#define NLV_AGENTS_H

#include "model/feed.h"
#include "requests/drawing.h"

typedef struct agents agents;

/* A sensor of an agent, as a directory has it. */
typedef struct agents_row {
    char *host, *url, *sensor, *events;
} agents_row;

typedef struct agents_callbacks {
    /* A look-up has ended: rows (agents_row), sorted, are valid during the call; problem is "" when it worked. */
    void (*found)(void *user, const GPtrArray *rows, const char *problem);
    /* How a sensor that was added is; words say it. */
    void (*changed)(void *user, const char *url, const char *sensor, const char *message);
    /* What is to be drawn of sensors is another now: see agents_loadlines. */
    void (*drawn)(void *user);
    void *user;
} agents_callbacks;

agents *agents_new(agents_callbacks callbacks);

/* Ends what is under way, without waiting for anybody. */
void agents_free(agents *a);

/*
 * Looks up in a directory, http://HOST:PORT or ldap://HOST; NULL or "": where $NLAGENT_DIRECTORY says, or here. What
 * was asked before is given up. expression is that of nlagent find; "": all.
 */
void agents_find(agents *a, const char *directory, const char *expression);

/* Adds a sensor, which is subscribed to until it is removed: an agent that is gone is tried again. False when there are
 * too many, or there is nothing to do it with, with the reason in words for changed. */
bool agents_add(agents *a, const char *url, const char *sensor);
void agents_remove(agents *a, const char *url, const char *sensor);

/* How a sensor is that was added; NULL: it was not. */
const char *agents_state(const agents *a, const char *url, const char *sensor);

/* Calls function for each that was added. */
void agents_each(const agents *a, void (*function)(void *user, const char *url, const char *sensor, const char *state),
                 void *user);

/* The feed that gets all records; the agents keep their reference. */
feed *agents_feed(agents *a);

/* What is drawn of the sensors that are there now: loadlines, the caller's. All events that ever came are its quiet
 * ones. */
drawing *agents_loadlines(const agents *a);

#endif
