/*
 * The event kinds of nl_event_write. A kind consists of a level and names. For each sequence of value types, a kind has
 * a site like that of an NL_EVENT. Events with such a site have the same form in the ring as those of NL_EVENT.
 *
 * The process shares and keeps the first NL_EVENT_KINDS_MAX kinds, because readers of rings know sites by number.
 * Further kinds belong to their creator and have no site. The events of these kinds go into the ring as whole records.
 */
#ifndef NETLOGGER_LOG_EVENT_KIND_H
#define NETLOGGER_LOG_EVENT_KIND_H

#include <netlogger.h>

#define NL_EVENT_KINDS_MAX 4096

typedef struct nl_event_variant nl_event_variant;

struct nl_event_kind {
    nl_level level;
    nl_string event;  /* a copy with a NUL */
    nl_string *names; /* an array of field_count copies, each with a NUL */
    size_t field_count;
    bool is_shared;
    nl_event_variant *variants; /* newest first; the list only grows, because other threads may read it */
    nl_event_kind *next;        /* the next kind with the same hash */
};

/*
 * Returns the site for values of these types. If the site does not exist, creates it first. Returns NULL if the kind is
 * not shared or the function cannot create a new site; the caller then writes the event as a whole record. The function
 * cannot create a site if the kind has 16 other sequences of types, or a value has an invalid type. It also fails if
 * memory runs out, or if a signal handler has interrupted the library in this thread.
 */
nl_event_site *nl_event_kind_site(nl_event_kind *kind, const nl_field *values);

#endif
