/* Decompresses gzip (RFC 1952) with any number of members. Only one thread at a time may use a source. */
#ifndef NETLOGGER_PROGRAM_GZIP_H
#define NETLOGGER_PROGRAM_GZIP_H

#include "transport/source.h"

/* Returns whether these bytes begin gzip data. */
bool gzip_begins(const char *bytes, size_t size);

/*
 * Adds a step to the source, which decompresses gzip and passes other content on unchanged. Copies `name`, which is the
 * name of the source in messages.
 */
void gzip_add(nl_source *source, const char *name);

#endif
