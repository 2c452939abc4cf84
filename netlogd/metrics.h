/*
 * Serves netlogd's counts to Prometheus: GET /metrics over HTTP, in the text format 0.0.4. Only clients that use
 * loopback or are in allowed networks may connect. All metrics are sums over all clients, so the number of metrics does
 * not grow with the number of clients.
 */
#ifndef NETLOGD_METRICS_H
#define NETLOGD_METRICS_H

#include "settings.h"

/* Opens the socket that the settings name. On failure, reports the error and returns -1. */
int metrics_bind(const settings *s);

/* Begins to reply to requests on the socket, and takes ownership of it. */
void metrics_start(int fd);
void metrics_free(void);

#endif
