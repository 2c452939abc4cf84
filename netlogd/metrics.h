/*
 * netlogd's counts for Prometheus: GET /metrics over HTTP, in its text format 0.0.4. Asked by this machine, or from an
 * allowed network. One figure for all clients together, so that what is kept does not grow with them; netlogctl has
 * them one by one.
 */
#ifndef NETLOGD_METRICS_H
#define NETLOGD_METRICS_H

#include "server.h"

/* Binds what the settings say, before the program lets the terminal go; -1 after having said why not. */
int metrics_bind(const settings *s);

/* Answers on that socket from then on. */
struct evhttp *metrics_start(server *srv, int fd);

/* How long one who asks may take over it, seconds; 0: as long as he likes. */
void metrics_set_timeout(struct evhttp *http, unsigned seconds);

#endif
