/*
 * The order of a lifeline's events, learned from a sample of a log: which events come before which in a request. Where
 * a request branches, events of different branches have no order.
 *
 * In one program, an event comes before another if it does so in nearly all requests, and if a span that contains the
 * first (event_names.h) also contains the second or ends with it. Between programs, the order is that of explicit
 * parents, of messages by their names (clocks/messages.h), or else of precedence.h. No state.
 */
#ifndef NLV_EVENT_ORDER_H
#define NLV_EVENT_ORDER_H

#include "requests/drawing.h"
#include "requests/trace.h"

/*
 * Learns the order of the lifelines of d without an order, from a sorted sample. arranges: also lists the events of
 * each branch one after the other. Lifelines whose events have the order of their list, or with more than
 * DRAWING_ORDERED_MAX events, or with again=, stay without.
 */
void event_order_learn(drawing *d, const trace *t, bool arranges);

enum { EVENT_ORDER_NONE = -1 };

/* Sets, for each of rows events, the event that begins the span that it ends, and the event that ends the span that it
 * begins, or EVENT_ORDER_NONE. */
void event_order_pairs(char *const *events, guint rows, int *begin_of, int *end_of);

/* Returns whether the drawing has a lifeline whose order can be learned. */
bool event_order_can_learn(const drawing *d);

#endif
