/*
 * The order of a lifeline's events, learned from a sample of a log: which events come before which in a request. Where
 * a request branches, events of different branches have no order.
 *
 * In one program, an event comes before another if it does so in nearly all requests, and if a span that contains the
 * first (event_names.h) also contains the second or ends with it. Between programs, the order follows from explicit
 * parents, from the names of messages (clocks/messages.h), or otherwise from precedence.h. No state.
 */
#ifndef NLV_EVENT_ORDER_H
#define NLV_EVENT_ORDER_H

#include "requests/drawing.h"
#include "requests/trace.h"

/*
 * Learns the order of those lifelines of d that have none, from a sorted sample. If arranges is true, also reorders
 * their events so that the events of each branch are adjacent. Sets no order for lifelines whose events follow the
 * order of their list, that have more than DRAWING_ORDERED_MAX events, or that have again=.
 */
void event_order_learn(drawing *d, const trace *t, bool arranges);

enum { EVENT_ORDER_NONE = -1 };

/*
 * Finds the pairs of events that begin and end a span, among `rows` events. Sets begin_of for an event that ends a span
 * and end_of for an event that begins one; otherwise to EVENT_ORDER_NONE.
 */
void event_order_pairs(char *const *events, guint rows, int *begin_of, int *end_of);

/* Returns whether the drawing has a lifeline whose order can be learned. */
bool event_order_can_learn(const drawing *d);

#endif
