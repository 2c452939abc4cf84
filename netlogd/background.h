/*
 * Work for requests and subscribers, which must not delay clients that log: reading requests, matching records with
 * subscribers' expressions, reading stored records, and sending.
 *
 * Such work is divided into tasks of half a millisecond. The tasks run one after the other, in the order in which they
 * were added, when no client has sent bytes and no record must be written or acknowledged, for at most a millisecond
 * before the loop checks for clients again. While clients keep the loop busy, the tasks get one millisecond in 20.
 *
 * The module owns the queue of tasks; the caller owns each task. The server's thread only.
 */
#ifndef NETLOGD_BACKGROUND_H
#define NETLOGD_BACKGROUND_H

#include <event2/event.h>

/* run should take at most BACKGROUND_SLICE_NS; if work is left, it adds the task again. */
typedef struct background_task {
    void (*run)(void *user);
    void *user;
    struct background_task *next, **link; /* in the queue; link is NULL outside */
} background_task;

enum { BACKGROUND_SLICE_NS = 500000 };

/* priority is the priority of the least urgent events in base. */
void background_start(struct event_base *base, int priority);

/* The queue must be empty. */
void background_free(void);

/* Adds a task to the end of the queue, unless the queue has it. */
void background_add(background_task *task);

/* Removes a task from the queue, if the queue has it. */
void background_remove(background_task *task);

#endif
