/* What a log asks of its writer besides the public calls. */
#ifndef NETLOGGER_TRANSPORT_WRITER_INTERNAL_H
#define NETLOGGER_TRANSPORT_WRITER_INTERNAL_H

#include <netlogger.h>

/* As nl_writer_open, of a parsed URL; ident is the program's name for syslog, or NULL. */
nl_writer *nl_writer_open_url(const nl_url *url, const nl_writer_options *options, const char *ident);

/* Reads a destination's options (?buffer=64k&append=no&format=nlb&zstd=3&timeout=10) over what options holds. */
nl_status nl_writer_read_options(const nl_url *url, nl_writer_options *options);

/* In the child after fork: forgets what the parent has buffered, and lets go of its connection. */
void nl_writer_after_fork(nl_writer *writer);

/* Forgets what is buffered; returns how many records that was. */
size_t nl_writer_drop_buffer(nl_writer *writer);

/* The bytes that are buffered. */
size_t nl_writer_buffered(const nl_writer *writer);

#endif
