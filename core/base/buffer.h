/* Additions to the public nl_buffer. */
#ifndef NETLOGGER_BASE_BUFFER_H
#define NETLOGGER_BASE_BUFFER_H

#include <netlogger.h>

/* Raises capacity to at least size + extra bytes. Returns false and changes nothing if memory runs out. */
bool nl_buffer_reserve(nl_buffer *buffer, size_t extra);

#endif
