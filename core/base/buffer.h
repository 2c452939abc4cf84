/* What core and the programs add to the public nl_buffer. */
#ifndef NETLOGGER_BASE_BUFFER_H
#define NETLOGGER_BASE_BUFFER_H

#include <netlogger.h>

/*
 * Makes sure that capacity is at least size + extra bytes. Returns false, and leaves the buffer unchanged, if memory
 * runs out.
 */
bool nl_buffer_reserve(nl_buffer *buffer, size_t extra);

#endif
