/*
 * Lists the streams that a connection has recently sent. While the connection is open, these streams count as in use,
 * so that no output forgets them. This is necessary because a connection that forwards the streams of many programs may
 * send any of them again.
 *
 * The list has space for USED_STREAMS_MAX streams. Further streams replace the oldest entries. The connection owns the
 * list. Only the server's thread may call these functions.
 */
#ifndef NETLOGD_USED_STREAMS_H
#define NETLOGD_USED_STREAMS_H

#include <stddef.h>

enum { USED_STREAMS_MAX = 1024, USED_STREAMS_FREE = 64 };

/* Initialize the structure with zeros. */
typedef struct used_streams {
    unsigned char (*names)[16];
    size_t count, capacity, next; /* next: index of the name to be replaced */
} used_streams;

/* Adds a stream to the list, because it was used. */
void used_streams_note(used_streams *used, const unsigned char name[16]);

/* Touches all noted streams in all outputs (outputs_touch_stream). */
void used_streams_touch(const used_streams *used);

/* Returns the number of bytes of memory that the list needs, not counting the first USED_STREAMS_FREE streams. */
size_t used_streams_size(const used_streams *used);

void used_streams_free(used_streams *used);

#endif
