/*
 * netlogd's counts for Prometheus: GET /metrics over HTTP, in the text format 0.0.4, for this machine and allowed
 * networks. All figures are sums over all clients, so their number does not grow with the number of clients.
 */
#ifndef NETLOGD_METRICS_H
#define NETLOGD_METRICS_H

#include "settings.h"

/* Opens the socket that the settings name. Returns -1 after reporting an error. */
int metrics_bind(const settings *s);

/* Starts to reply to requests on the socket, and takes ownership of it. */
void metrics_start(int fd);
void metrics_free(void);

#endif
