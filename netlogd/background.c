#include "config.h"

#include "background.h"

#include "base/memory.h"
#include "base/monotonic.h"

enum {
    TURN_NS = 1000000, /* time for tasks before the loop checks for clients */
    SHARE_MS = 20,     /* maximum time between turns */
};

static background_task *first, **end = &first; /* the queue */
static struct event *turn;                     /* runs tasks when no more urgent events are pending */
static struct event *share;                    /* runs tasks if `turn` never becomes active */

static void schedule(void)
{
    if (first == NULL)
        return;
    event_active(turn, EV_TIMEOUT, 0);
    if (!event_pending(share, EV_TIMEOUT, NULL))
        event_add(share, &(struct timeval){.tv_usec = SHARE_MS * 1000});
}

static void on_background(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    int64_t until_ns = nl_monotonic_ns() + TURN_NS;
    event_del(share);
    do {
        background_task *task = first;
        if (task == NULL)
            break;
        background_remove(task);
        task->run(task->user);
    } while (nl_monotonic_ns() < until_ns);
    schedule();
}

void background_start(struct event_base *base, int priority)
{
    turn = nl_memory_check(event_new(base, -1, 0, on_background, NULL));
    share = nl_memory_check(event_new(base, -1, 0, on_background, NULL));
    event_priority_set(turn, priority);
}

void background_free(void)
{
    event_free(turn);
    event_free(share);
}

void background_add(background_task *task)
{
    if (task->link != NULL)
        return;
    task->next = NULL;
    task->link = end;
    *end = task;
    end = &task->next;
    if (first == task)
        schedule();
}

void background_remove(background_task *task)
{
    if (task->link == NULL)
        return;
    *task->link = task->next;
    if (task->next != NULL)
        task->next->link = task->link;
    else
        end = task->link;
    task->link = NULL;
}
