/* The options of a destination, for logs and nlwrite. */
#ifndef NETLOGGER_TRANSPORT_WRITER_INTERNAL_H
#define NETLOGGER_TRANSPORT_WRITER_INTERNAL_H

#include <netlogger.h>

#include "transport/url.h"
#include "transport/writer.h"

/* As nl_writer_open, for a parsed URL. ident is the program's name for syslog, or NULL. */
nl_writer *nl_writer_open_url(const nl_url *url, const nl_writer_options *options, const char *ident);

/* Rows for nl_writer_options. */
extern const nl_option nl_writer_rows[];

/* Sets options from those of a URL (?append=no&format=nlb&zstd=3&timeout=10s). */
nl_status nl_writer_read_options(const nl_url *url, nl_writer_options *options);

/* Chooses the format if it is unknown. */
void nl_writer_options_settle(nl_writer_options *options, const nl_url *url);

#endif
