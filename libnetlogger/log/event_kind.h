/*
 * The kinds of nl_event_write: a level and names, and for each row of types that events of the kind came with a site
 * as every NL_EVENT has one, so that they go into the ring like NL_EVENT's.
 *
 * The first NL_EVENT_KINDS_MAX of them are the process's and stay, as their sites are known by number to readers of
 * rings. One that is made again is the same one. Any other is its maker's alone and has no site: its events go into
 * the ring as whole records.
 */
#ifndef NETLOGGER_LOG_EVENT_KIND_H
#define NETLOGGER_LOG_EVENT_KIND_H

#include <netlogger.h>

#define NL_EVENT_KINDS_MAX 4096

typedef struct nl_event_variant nl_event_variant;

struct nl_event_kind {
    nl_level level;
    nl_string event;  /* a copy, NUL-terminated, like the names */
    nl_string *names; /* field_count of them */
    size_t field_count;
    bool is_shared;
    nl_event_variant *variants; /* the latest first; more come while others look, none goes */
    nl_event_kind *next;        /* with the same hash */
};

/*
 * The site for events with values of these types, made when there is none. NULL when there can be none: the kind is not
 * shared, its events came with too many different types, or this thread is inside the library, where it was
 * interrupted by a signal.
 */
nl_event_site *nl_event_kind_site(nl_event_kind *kind, const nl_field *values);

#endif
