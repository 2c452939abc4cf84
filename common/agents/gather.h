/*
 * Gathers the records that many agents deliver. Each agent has a thread, so that a slow or failed agent does not
 * delay other agents. The thread opens a broken delivery again after a pause, which doubles from 1 s to 30 s.
 * Nlagent.Lost and Nlagent.Back records report broken and reopened deliveries. Only one thread may call the functions.
 */
#ifndef NLAGENT_GATHER_H
#define NLAGENT_GATHER_H

#include "agents/client.h"

typedef struct gathering gathering;

/* The subscriptions, which are the same for every agent. */
typedef struct gather_options {
    client_options client;
    char *const *sensors;         /* the last element is NULL */
    const char *const *arguments; /* arguments of Subscribe: name, value, name, value ... NULL */
    /* Receives each record, one at a time, in any thread. Returns false to end all deliveries. */
    bool (*put)(void *user, const nl_record *record);
    /*
     * Called after all records that arrived together were passed to put; may be NULL. The return value has the same
     * meaning as that of put.
     */
    bool (*flush)(void *user);
    void *user;
    bool once; /* end all deliveries if a delivery cannot be opened at the first attempt */
} gather_options;

gathering *gather_new(const gather_options *o);

/*
 * Adds an agent unless it was already added. Returns false and sets the error if the URL is invalid or no thread
 * starts.
 */
bool gather_add(gathering *g, const char *url);

/* Adds the records that a running collector receives. Returns false and sets the error if no thread starts. */
bool gather_add_collector(gathering *g, const char *url);

/* Returns whether the gathering has ended, because put or flush has returned false, a collector failed, or `once` is
 * set and a delivery could not be opened. If so, sets this thread's error to the reason, which may be NL_ERROR_NONE. */
bool gather_is_over(gathering *g);

/* Ends all deliveries, and closes their subscriptions and connections. */
void gather_free(gathering *g);

#endif
