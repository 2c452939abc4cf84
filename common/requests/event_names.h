/*
 * The numbered names of a log's events. The module determines which names begin or end a span.
 *
 * A name that consists of the name of a span and a word such as "start" begins that span, if another event of the log
 * ends it. The words may stand before or after the name, in lower case, upper case or capitalized: Query.start and
 * Query.end, QUERY_START and QUERY_END, START_x and STOP_x, QueryBegin and QueryEnd, DnsRequest and DnsReply.
 *
 * The table holds up to EVENT_NAMES_MAX names; all other names share one number. Only one thread at a time may use a
 * table.
 */
#ifndef NETLOGGER_REQUESTS_EVENT_NAMES_H
#define NETLOGGER_REQUESTS_EVENT_NAMES_H

#include <netlogger.h>

enum { EVENT_NAMES_MAX = 1 << 16 };

/* The text of all names beyond a maximum. */
#define NAME_OTHER "(other)"

/* The text of an event without a name. */
#define EVENT_NAME_NONE "(none)"

typedef enum event_side { EVENT_SIDE_NONE, EVENT_SIDE_BEGIN, EVENT_SIDE_END } event_side;

typedef struct event_names event_names;

event_names *event_names_new(void);
void event_names_free(event_names *t); /* NULL is allowed */

/* Returns the number of a name, from 0. A name without data has the text EVENT_NAME_NONE. */
uint32_t event_names_add(event_names *t, nl_string name);

/* Returns the text of a number, which ends with NUL and is valid until event_names_free. */
const char *event_names_text(const event_names *t, uint32_t name);

/*
 * Returns whether events of this name begin or end a span. They do so only if event_names_add has also seen a name of
 * the other side. Sets *span to the number of the span's name, or to `name` if its events neither begin nor end a span.
 */
event_side event_names_side(const event_names *t, uint32_t name, uint32_t *span);

size_t event_names_count(const event_names *t);

#endif
