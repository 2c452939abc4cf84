/*
 * Streams of many agents into one place. Each agent has a thread, so that one that is dead or slow holds up none; what
 * breaks off is tried again after 1 s, 2 s ... half a minute, and said in the stream itself: Nlagent.Lost,
 * Nlagent.Back.
 */
#ifndef NLAGENT_GATHER_H
#define NLAGENT_GATHER_H

#include "agents/client.h"

typedef struct gathering gathering;

/* What is subscribed to, at every agent alike. */
typedef struct gather_options {
    client_options client;
    char *const *sensors;         /* up to NULL */
    const char *const *arguments; /* of Subscribe: name, value, name, value ... NULL */
    /* Takes a record, one at a time; false: nobody wants more, and it all ends. */
    bool (*put)(void *user, const nl_record *record);
    void *user;
    bool once; /* a stream that cannot be had at the first time ends it all */
} gather_options;

gathering *gather_new(const gather_options *o);

/* Adds an agent; nothing happens when it is there already. Returns false when the URL is invalid. */
bool gather_add(gathering *g, const char *url);

/* Adds what a running collector takes, for as long as it runs. */
bool gather_add_collector(gathering *g, const char *url);

/* Whether it is over. Then sets this thread's error to the reason, NL_ERROR_NONE for no particular reason. */
bool gather_is_over(gathering *g);

/* Ends it: subscriptions are ended with their connections. */
void gather_free(gathering *g);

#endif
