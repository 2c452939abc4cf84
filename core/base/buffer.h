/* Additions to the public nl_buffer. */
#ifndef NETLOGGER_BASE_BUFFER_H
#define NETLOGGER_BASE_BUFFER_H

#include <netlogger.h>

/*
 * Raises the capacity to at least size + extra bytes. If memory runs out, returns false, sets the error and leaves the
 * buffer unchanged.
 */
bool nl_buffer_reserve(nl_buffer *buffer, size_t extra);

#endif
