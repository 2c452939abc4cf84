/*
 * Work for those who ask, which must not delay those who log: reading requests, matching records with subscribers'
 * expressions, reading the past, sending.
 *
 * Such work is cut into tasks of half a millisecond. Tasks run one after the other, in the order in which they were
 * added, when no client has anything to be read and nothing is to be written or acknowledged. They run for a
 * millisecond at most before clients are looked at again. While clients keep the loop busy, tasks get a millisecond of
 * each 20.
 *
 * The server's thread alone.
 */
#ifndef NETLOGD_BACKGROUND_H
#define NETLOGD_BACKGROUND_H

#include <event2/event.h>

typedef struct background background;

/* What run does should take half a millisecond at most; it adds the task again when there is more to do. */
typedef struct background_task {
    void (*run)(void *user);
    void *user;
    struct background_task *next, **link; /* in the queue; link is NULL outside */
} background_task;

enum { BACKGROUND_SLICE_NS = 500000 }; /* what a task may take */

/* priority is the one of the events in base that nobody waits for. Lack of memory ends the program. */
background *background_new(struct event_base *base, int priority);

/* Frees it; no task is left in the queue. */
void background_free(background *b);

/* Adds a task to the end of the queue, unless it is in it. */
void background_add(background *b, background_task *task);

/* Takes a task out of the queue, if it is in it. */
void background_remove(background *b, background_task *task);

#endif
