/*
 * The critical path of a request, found backwards from the last event. Where several things had to happen before an
 * event, the path follows the event that happened last (CRISP, USENIX ATC 2022).
 *
 * The module owns the nodes and strands of the latest request (critical_path.c). request_graph.c is its only caller.
 * One thread at a time may use a critical_path.
 */
#ifndef NETLOGGER_REQUESTS_CRITICAL_PATH_H
#define NETLOGGER_REQUESTS_CRITICAL_PATH_H

#include "requests/clock_alignment.h"
#include "requests/precedence.h"

typedef struct critical_path critical_path;

critical_path *critical_path_new(void);
void critical_path_free(critical_path *p); /* NULL is allowed */

/*
 * Sets g->path, which is valid until the next call, and the spans' path_ns. If spans were shifted, also sets the
 * request's times. The parents of spans must be set. event_span[i] is the index of the span around the point event i,
 * or REQUEST_NONE. `edges` may be NULL.
 */
void critical_path_find(critical_path *p, request_graph *g, const uint32_t *event_span, const precedence *edges,
                        const clock_alignment *alignment);

/* Appends the edges between the events of the latest request, see request_graph_find_edges. */
void critical_path_find_edges(const critical_path *p, GArray *edges);

#endif
