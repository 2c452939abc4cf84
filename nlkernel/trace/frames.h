/*
 * Reads the frames of an HTTP/2 connection (RFC 9113), for nlkernel trace. The events contain the heads of all frames
 * and the payloads of frames with headers (bpf/trace.h). The module joins the parts of a header block, and decodes the
 * block with the table of its direction (hpack.h). After a gap, fields of headers may be unknown.
 *
 * The module skips the headers of a block that is longer than FRAMES_BLOCK_MAX bytes. Frames may contain any bytes. Not
 * thread-safe.
 */
#ifndef NLKERNEL_TRACE_FRAMES_H
#define NLKERNEL_TRACE_FRAMES_H

#include "bpf/trace.h"
#include "trace/hpack.h"

enum { FRAMES_BLOCK_MAX = 65536 };

typedef struct frames frames;

/* A frame of a stream, or a header block of one or several frames. */
typedef struct stream_frame {
    uint32_t stream;   /* not 0 */
    uint32_t sequence; /* TCP sequence number of the first byte */
    bool has_headers;  /* `headers` is valid */
    bool ends_stream;  /* the sender sends no more frames of the stream */
    bool resets;       /* a peer ends the stream early */
    uint32_t error;    /* if `resets`, the error code */
    hpack_headers headers;
} stream_frame;

/* Receives a frame. The function must not call frames_free. */
typedef void frames_take(void *user, const stream_frame *frame);

frames *frames_new(void);
void frames_free(frames *f); /* NULL is allowed */

/* Returns whether frames are missing between earlier events of the event's direction and this event. */
bool frames_miss(const frames *f, const struct trace_event *event);

/*
 * Reads an event whose member http2 is not TRACE_NOT_HTTP2. Passes each frame of a stream to `take` with `user`, except
 * frames that only control the flow.
 */
void frames_read(frames *f, const struct trace_event *event, frames_take *take, void *user);

#endif
