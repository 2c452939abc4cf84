/* A subscription to a collector's records, as a source. */
#ifndef NETLOGGER_TRANSPORT_SOURCE_COLLECTOR_H
#define NETLOGGER_TRANSPORT_SOURCE_COLLECTOR_H

#include <netlogger.h>

#include "transport/dial.h"

/* The options of a collector's URL for reading, besides nl_dialer_rows. */
typedef struct nl_subscription_options {
    const char *where, *since; /* or NULL */
    nl_format format;
} nl_subscription_options;

extern const nl_option nl_subscription_rows[];

/*
 * Connects to a collector (x-netlog, x-netlogs, unix), and subscribes with the URL's options. Takes at most 20 s. Sets
 * the channel and the dialer. The caller closes the channel and then frees the dialer, even on failure. Appends the
 * first bytes of the subscribed records to stream. Returns NL_OK or NL_FAILED.
 */
nl_status nl_collector_subscribe(const nl_url *url, nl_dialer **dialer, nl_channel *channel, nl_buffer *stream);

#endif
