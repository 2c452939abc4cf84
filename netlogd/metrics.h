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
struct http *metrics_start(server *srv, int fd);

#endif
