/*
 * Growing bytes.
 *
 * A buffer is data[0..size) with room for capacity bytes; it grows as it is appended to and never shrinks by itself.
 * {0} is an empty buffer. Its owner frees it. Not for two threads at once.
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

/* Makes room for extra more bytes after size. False, with the buffer as it was, when there is no memory for that. */
NL_API bool nl_buffer_reserve(nl_buffer *buffer, size_t extra);

/*
 * Copies size bytes at data to the end; data may be NULL when size is 0. False, with the buffer as it was, when there
 * is no memory for that.
 */
NL_API bool nl_buffer_append(nl_buffer *buffer, const void *data, size_t size);

/* Frees the bytes; the buffer is empty and usable again. */
NL_API void nl_buffer_free(nl_buffer *buffer);

NL_END_DECLS
#endif
