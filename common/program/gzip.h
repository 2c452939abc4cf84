/* Decompression of gzip (RFC 1952), of any number of members. One thread at a time for a source. */
#ifndef NETLOGGER_PROGRAM_GZIP_H
#define NETLOGGER_PROGRAM_GZIP_H

#include "transport/source.h"

/* Returns whether these bytes begin gzip data. */
bool gzip_begins(const char *bytes, size_t size);

/* Adds a step that decompresses gzip to a source with that name; other content passes unchanged. */
void gzip_add(nl_source *source, const char *name);

#endif
