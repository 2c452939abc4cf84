#include "config.h"

#include "background.h"

#include "base/monotonic.h"
#include "program/program.h"

#include <stdlib.h>

enum {
    TURN_NS = 1000000, /* of tasks, before clients are looked at */
    SHARE_MS = 20,     /* between turns at the latest */
};

struct background {
    background_task *first, **end; /* of the queue */
    struct event *turn;            /* when nothing more urgent is to be done */
    struct event *share;           /* when that does not come */
};

static void schedule(background *b)
{
    if (b->first == NULL)
        return;
    event_active(b->turn, EV_TIMEOUT, 0);
    if (!event_pending(b->share, EV_TIMEOUT, NULL))
        event_add(b->share, &(struct timeval){.tv_usec = SHARE_MS * 1000});
}

static void on_background(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    background *b = user;
    int64_t until_ns = nl_monotonic_ns() + TURN_NS;
    event_del(b->share);
    do {
        background_task *task = b->first;
        if (task == NULL)
            break;
        background_remove(b, task);
        task->run(task->user);
    } while (nl_monotonic_ns() < until_ns);
    schedule(b);
}

background *background_new(struct event_base *base, int priority)
{
    background *b = calloc(1, sizeof *b);
    if (b == NULL || (b->turn = event_new(base, -1, 0, on_background, b)) == NULL ||
        (b->share = event_new(base, -1, 0, on_background, b)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    b->end = &b->first;
    event_priority_set(b->turn, priority);
    return b;
}

void background_free(background *b)
{
    event_free(b->turn);
    event_free(b->share);
    free(b);
}

void background_add(background *b, background_task *task)
{
    if (task->link != NULL)
        return;
    task->next = NULL;
    task->link = b->end;
    *b->end = task;
    b->end = &task->next;
    if (b->first == task)
        schedule(b);
}

void background_remove(background *b, background_task *task)
{
    if (task->link == NULL)
        return;
    *task->link = task->next;
    if (task->next != NULL)
        task->next->link = task->link;
    else
        b->end = task->link;
    task->link = NULL;
}
