/*
 * Chooses events of this kernel by patterns. The pattern sched:sched_switch chooses one event. The system, the event or
 * both may be shell patterns, as in sched:*. A pattern without a colon or dot, such as sched, matches names of systems
 * and names of events. sched.sched_switch, the name in records, is equivalent to sched:sched_switch. Not thread-safe.
 */
#ifndef NLKERNEL_CHOICE_H
#define NLKERNEL_CHOICE_H

#include "events.h"

typedef struct event_name {
    char *system, *event;
    bool chosen; /* a pattern matches the event */
    bool named;  /* a pattern is the full name of the event */
} event_name;

typedef struct event_names {
    event_name *list; /* sorted by system, then by event */
    size_t count;
} event_names;

/* Reads the names of all events that this kernel can enable. Returns false and sets the error on failure. */
bool event_names_read(event_names *names, const tracing *t);
void event_names_free(event_names *names);

/* Chooses the events that match a pattern. If no event matches, returns false and sets the error. If there is a similar
 * name, the error suggests this name. */
bool event_names_choose(event_names *names, const char *pattern);

/* Returns whether an event matches a pattern. */
bool event_name_matches(const char *system, const char *event, const char *pattern);

/*
 * Reads the descriptions of the chosen events. Leaves space in the list for KERNEL_EVENTS_TRACED_MAX more events. Skips
 * events whose descriptions cannot be read. If such an event was chosen by its full name, frees the list, sets the
 * error and returns false.
 */
enum { KERNEL_EVENTS_TRACED_MAX = 4 };
bool kernel_events_read(kernel_events *events, const event_names *names, const tracing *t);

#endif
