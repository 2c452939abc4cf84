/*
 * Which events are meant: patterns over the names that this kernel has.
 *
 *   sched:sched_switch    one event
 *   sched:*               shell patterns on either side of the colon
 *   sched                 without a colon: all of a system, or events of that name in any
 *
 * sched.sched_switch, as records have it, is sched:sched_switch too. One thread.
 */
#ifndef NLKERNEL_CHOICE_H
#define NLKERNEL_CHOICE_H

#include "events.h"

typedef struct event_name {
    char *system, *event;
    bool chosen, named; /* by any pattern, by its very name */
} event_name;

typedef struct event_names {
    event_name *list; /* in order of system, then event */
    size_t count;
} event_names;

/* All events of this kernel that can be recorded. False with the reason in nl_error_message(). */
bool event_names_read(event_names *names, const tracing *t);
void event_names_free(event_names *names);

/* Marks those that a pattern means. False with the reason, and names that are like it, when there are none. */
bool event_names_choose(event_names *names, const char *pattern);

/* Reads what is known of the chosen ones, and leaves room for so many more in the list. False with the reason. */
enum { KERNEL_EVENTS_TRACED_MAX = 4 };
bool kernel_events_read(kernel_events *events, const event_names *names, const tracing *t);

#endif
