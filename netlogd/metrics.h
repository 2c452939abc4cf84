/*
 * netlogd's counts for Prometheus: GET /metrics over HTTP, in the text format 0.0.4, for this machine and allowed
 * networks. All figures are sums over all clients, so that their number does not grow with clients.
 */
#ifndef NETLOGD_METRICS_H
#define NETLOGD_METRICS_H

#include "settings.h"

/* Opens the socket that the settings name. Returns -1 after it has reported why it cannot. */
int metrics_bind(const settings *s);

/* Answers on that socket, which it takes over, from now on. */
void metrics_start(int fd);
void metrics_free(void);

#endif
