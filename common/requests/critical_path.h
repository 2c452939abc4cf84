/*
 * Finds the critical path of a request, backwards from its last event. If an event had to wait for several other
 * events, the path continues with the latest of these events (CRISP, USENIX ATC 2022).
 *
 * The module owns the nodes and strands of the latest request (critical_path.c). request_graph.c is its only caller.
 * Only one thread at a time may use a critical_path.
 */
#ifndef NETLOGGER_REQUESTS_CRITICAL_PATH_H
#define NETLOGGER_REQUESTS_CRITICAL_PATH_H

#include "requests/clock_alignment.h"
#include "requests/precedence.h"

typedef struct critical_path critical_path;

critical_path *critical_path_new(void);
void critical_path_free(critical_path *p); /* NULL is allowed */

/*
 * Sets g->path, which is valid until the next call, and path_ns of the spans. If spans were shifted, also updates
 * g->from_ns and g->to_ns. The parents of spans must be set. event_span[i] is the index of the span that contains the
 * point event i, or REQUEST_NONE. If `edges` is NULL, infers no edges.
 */
void critical_path_find(critical_path *p, request_graph *g, const uint32_t *event_span, const precedence *edges,
                        const clock_alignment *alignment);

/* Appends the edges between the events of the latest request (see request_graph_find_edges). */
void critical_path_find_edges(const critical_path *p, GArray *edges);

#endif
