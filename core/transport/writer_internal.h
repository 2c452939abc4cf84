/* What a log takes over from writers: how a destination's options are read. */
#ifndef NETLOGGER_TRANSPORT_WRITER_INTERNAL_H
#define NETLOGGER_TRANSPORT_WRITER_INTERNAL_H

#include <netlogger.h>

#include "transport/url.h"
#include "transport/writer.h"

/* As nl_writer_open, of a parsed URL; ident is the program's name for syslog, or NULL. */
nl_writer *nl_writer_open_url(const nl_url *url, const nl_writer_options *options, const char *ident);

/* Reads one of url's options. NL_OK, as for those that are TLS's own; NL_END when a writer knows none of that name;
 * NL_FAILED when the value is none. */
nl_status nl_writer_read_option(const nl_url *url, const nl_url_option *option, nl_writer_options *options);

/* Reads a destination's options (?append=no&format=nlb&zstd=3&timeout=10) over what options holds. */
nl_status nl_writer_read_options(const nl_url *url, nl_writer_options *options);

#endif
