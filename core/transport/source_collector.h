/* A collector as a source of the records that it takes. */
#ifndef NETLOGGER_TRANSPORT_SOURCE_COLLECTOR_H
#define NETLOGGER_TRANSPORT_SOURCE_COLLECTOR_H

#include <netlogger.h>

#include "transport/dial.h"

/* The options of a collector's URL that is read, besides those of TLS (nl_dialer_rows). */
typedef struct nl_subscription_options {
    const char *where, *since; /* NULL: not given */
    nl_format format;
} nl_subscription_options;

extern const nl_option nl_subscription_rows[];

/*
 * Connects to the collector that url (x-netlog, x-netlogs, unix) names and subscribes, as its options where, since and
 * format say; takes 20 s at most. Gives the channel, from which the stream is read, its dialer, to be freed after the
 * channel was closed (both also when it fails), and appends to stream what has come of it already. NL_FAILED with the
 * reason in nl_error_message().
 */
nl_status nl_collector_subscribe(const nl_url *url, nl_dialer **dialer, nl_channel *channel, nl_buffer *stream);

#endif
