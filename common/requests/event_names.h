/*
 * The numbered names of a log's events. The module determines which names begin or end a span.
 *
 * A name such as Query.start consists of a span name and a word. Such an event begins the span if the log also has the
 * event that ends it. The word may be before or after the span name, in lower case, in upper case or capitalized:
 * Query.start and Query.end, QUERY_START and QUERY_END, START_x and STOP_x, QueryBegin and QueryEnd, DnsRequest and
 * DnsReply. A log may also have only the words, such as Start and Done; the word that begins the span is then the span
 * name.
 *
 * The table has at most EVENT_NAMES_MAX names. All further names share one number. Only one thread at a time may use a
 * table.
 */
#ifndef NETLOGGER_REQUESTS_EVENT_NAMES_H
#define NETLOGGER_REQUESTS_EVENT_NAMES_H

#include <netlogger.h>

enum { EVENT_NAMES_MAX = 1 << 16 };

/* The text of all names beyond the limit of a table. */
#define NAME_OTHER "(other)"

/* The text of an event without a name. */
#define EVENT_NAME_NONE "(none)"

typedef enum event_side { EVENT_SIDE_NONE, EVENT_SIDE_BEGIN, EVENT_SIDE_END } event_side;

typedef struct event_names event_names;

event_names *event_names_new(void);
void event_names_free(event_names *t); /* NULL is allowed */

/*
 * Returns the number of a name, from 0. Adds the name if it is new. An empty name gets the text EVENT_NAME_NONE.
 */
uint32_t event_names_add(event_names *t, nl_string name);

/* Returns the text of the name with this number. The text ends with NUL and is valid until event_names_free. */
const char *event_names_text(const event_names *t, uint32_t name);

/*
 * Returns whether events with this name begin or end a span. A name begins or ends a span only if the table also has
 * the name of the other side. Sets *span to the number of the span's name, or to `name` if the result is
 * EVENT_SIDE_NONE.
 */
event_side event_names_side(const event_names *t, uint32_t name, uint32_t *span);

size_t event_names_count(const event_names *t);

#endif
