/*
 * netlogd's counts for Prometheus: GET /metrics over HTTP, in the text format 0.0.4, for this machine and allowed
 * networks. All figures are sums over all clients, so the number of figures does not grow with the clients.
 */
#ifndef NETLOGD_METRICS_H
#define NETLOGD_METRICS_H

#include "settings.h"

/* Opens the socket that the settings name. Returns -1 after reporting an error. */
int metrics_bind(const settings *s);

/* Replies on the socket, which it then owns, from now on. */
void metrics_start(int fd);
void metrics_free(void);

#endif
