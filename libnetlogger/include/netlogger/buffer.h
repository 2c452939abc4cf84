/*
 * A growing array of bytes, for functions that return bytes of any length.
 *
 * {0} is an empty buffer. The owner frees the buffer with nl_buffer_free. Two threads must not use one buffer at the
 * same time.
 */
#ifndef NETLOGGER_BUFFER_H
#define NETLOGGER_BUFFER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef struct nl_buffer {
    char *data;
    size_t size;     /* bytes in use */
    size_t capacity; /* bytes allocated */
} nl_buffer;

/* Appends a copy of size bytes at data. data may be NULL if size is 0. Returns false, and leaves the buffer unchanged,
 * if memory runs out. */
NL_API bool nl_buffer_append(nl_buffer *buffer, const void *data, size_t size);

/* Frees the bytes. The buffer is empty afterwards and can be used again. */
NL_API void nl_buffer_free(nl_buffer *buffer);

NL_END_DECLS
#endif
