/*
 * Runs work that must not delay clients that log: reading requests, evaluating expressions, reading stored records and
 * sending replies.
 *
 * This work is divided into tasks of half a millisecond. The tasks run one after another, in the order in which they
 * were added. The tasks run when no client has sent bytes and no record is waiting to be written or acknowledged. They
 * run for at most 1 millisecond before the loop checks for clients again. While clients keep the loop busy, the tasks
 * run for 1 of every 20 milliseconds.
 *
 * The module owns the queue of tasks; the caller owns each task. Only the server's thread may call it.
 */
#ifndef NETLOGD_BACKGROUND_H
#define NETLOGD_BACKGROUND_H

#include <event2/event.h>

/* A task. `run` should return within BACKGROUND_SLICE_NS. If work is left, `run` adds the task again. */
typedef struct background_task {
    void (*run)(void *user);
    void *user;
    struct background_task *next, **link; /* links in the queue; link is NULL if the task is not in the queue */
} background_task;

enum { BACKGROUND_SLICE_NS = 500000 };

/* Starts the module. `priority` is the priority of the least urgent events in `base`. */
void background_start(struct event_base *base, int priority);

/* Ends the module. The queue must be empty. */
void background_free(void);

/* Adds a task to the end of the queue, unless it is already in the queue. */
void background_add(background_task *task);

/* Removes a task from the queue, if it is in the queue. */
void background_remove(background_task *task);

#endif
