/*
 * Learns the order of a lifeline's events from a sample of a log: for each event, the events of a request that come
 * before it. Where a request branches, the events of different branches have no order.
 *
 * Within one program, an event comes before another event if it comes first in nearly all requests. In addition, each
 * span (event_names.h) that contains the first event must also contain the second event or end with the second event.
 * Between programs, the order follows from the names of messages (clocks/messages.h). If the names show no order, it
 * follows from the graphs of the sample's requests (requests/request_graph.h). In these graphs, an event comes before
 * another event if edges lead from the first event to the second event in nearly all requests. An event that begins the
 * span that another event's record names as parent also comes before this other event. This module has no state.
 */
#ifndef NLV_EVENT_ORDER_H
#define NLV_EVENT_ORDER_H

#include "requests/drawing.h"
#include "requests/trace.h"

/*
 * From a sorted sample, learns the order of each lifeline of d that has no order yet. If `arranges` is true, also
 * reorders the lifeline's events so that the events of each branch are adjacent. Skips lifelines whose events follow
 * the order of their list, lifelines with more than DRAWING_ORDERED_MAX events, and lifelines with again=.
 */
void event_order_learn(drawing *d, const trace *t, bool arranges);

enum { EVENT_ORDER_NONE = -1 };

/*
 * Finds the pairs of events that begin and end a span, among `rows` events. If event i ends a span, sets begin_of[i] to
 * the event that begins the span. If event i begins a span, sets end_of[i] to the event that ends the span. Sets all
 * other elements to EVENT_ORDER_NONE.
 */
void event_order_pairs(char *const *events, guint rows, int *begin_of, int *end_of);

/* Returns whether the drawing has a lifeline whose order event_order_learn can learn. */
bool event_order_can_learn(const drawing *d);

#endif
