/* A collector as a source of the records that it takes. */
#ifndef NETLOGGER_TRANSPORT_SOURCE_COLLECTOR_H
#define NETLOGGER_TRANSPORT_SOURCE_COLLECTOR_H

#include <netlogger.h>

/*
 * Connects to the collector that url (x-netlog, unix) names and subscribes, as its options where, since and format
 * say; takes 10 s at most. The non-blocking socket, from which the stream is read, or -1 with the reason in
 * nl_error_message().
 */
int nl_collector_subscribe(const nl_url *url);

#endif
