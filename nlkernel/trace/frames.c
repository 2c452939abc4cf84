#include "config.h"

#include "trace/frames.h"

#include <glib.h>
#include <string.h>

enum { FLAG_END_STREAM = 0x1, FLAG_END_HEADERS = 0x4, FLAG_PADDED = 0x8, FLAG_PRIORITY = 0x20 };

/* One direction of a connection. */
typedef struct frames_direction {
    hpack *table;
    bool begun;            /* an event with frames has arrived */
    uint8_t type, flags;   /* type and flags of the frame whose payload follows */
    uint32_t stream, left; /* left: number of bytes of the payload that are missing */
    size_t begin;          /* offset of the frame's payload in `payload` */
    GByteArray *payload;   /* the header block so far, and the payload of the current frame */
    bool in_block;         /* a frame CONTINUATION must follow */
    bool is_cut;           /* the block is too long */
    bool is_push;          /* the block belongs to a request that the server begins */
    stream_frame block;    /* the frame that began the block */
} frames_direction;

struct frames {
    frames_direction directions[2]; /* by trace_kind: TRACE_SEND, TRACE_RECEIVE */
};

frames *frames_new(void)
{
    frames *f = g_new0(frames, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(f->directions); i++) {
        f->directions[i].table = hpack_new();
        f->directions[i].payload = g_byte_array_new();
    }
    return f;
}

void frames_free(frames *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(f->directions); i++) {
        hpack_free(f->directions[i].table);
        g_byte_array_free(f->directions[i].payload, TRUE);
    }
    g_free(f);
}

static uint32_t read_number(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Ends the current header block. Frees the memory of a large block. */
static void end_block(frames_direction *d)
{
    enum { KEPT_SIZE = 4096 };
    if (d->payload->len > KEPT_SIZE) {
        g_byte_array_free(d->payload, TRUE);
        d->payload = g_byte_array_new();
    }
    g_byte_array_set_size(d->payload, 0);
    d->in_block = d->is_cut = false;
}

/* Forgets the headers after missing or invalid frames. */
static void forget_headers(frames_direction *d)
{
    end_block(d);
    hpack_forget(d->table);
}

/* ---- frames with headers ---- */

/* Removes the padding, the priority and the promised stream from the payload of the current frame, so that only a part
 * of the header block remains. Returns false if the frame is invalid. */
static bool strip_payload(frames_direction *d)
{
    enum { PRIORITY_SIZE = 5, PROMISE_SIZE = 4 };
    size_t size = d->payload->len - d->begin, before = 0, after = 0;
    if (d->type != TRACE_FRAME_CONTINUATION && (d->flags & FLAG_PADDED) != 0) {
        if (size == 0)
            return false;
        after = d->payload->data[d->begin];
        before = 1;
    }
    if (d->type == TRACE_FRAME_HEADERS && (d->flags & FLAG_PRIORITY) != 0)
        before += PRIORITY_SIZE;
    if (d->type == TRACE_FRAME_PUSH)
        before += PROMISE_SIZE;
    if (before + after > size)
        return false;
    g_byte_array_set_size(d->payload, d->payload->len - (guint)after);
    if (before > 0)
        g_byte_array_remove_range(d->payload, (guint)d->begin, (guint)before);
    return true;
}

static void finish_headers(frames_direction *d, frames_take *take, void *user)
{
    if (!d->is_cut && !strip_payload(d)) {
        forget_headers(d);
        return;
    }
    d->in_block = (d->flags & FLAG_END_HEADERS) == 0;
    if (d->in_block)
        return;
    if (d->is_cut) {
        hpack_forget(d->table);
        d->block.headers = (hpack_headers){.has_unknown = true};
    } else {
        hpack_read(d->table, d->payload->data, d->payload->len, &d->block.headers);
    }
    bool is_pushed = d->is_push || d->block.stream == 0;
    end_block(d);
    if (!is_pushed)
        take(user, &d->block);
}

/* ---- all frames ---- */

static bool has_headers(uint8_t type)
{
    return type == TRACE_FRAME_HEADERS || type == TRACE_FRAME_PUSH || type == TRACE_FRAME_CONTINUATION;
}

/* Handles the end of a captured payload. */
static void finish_frame(frames_direction *d, frames_take *take, void *user)
{
    enum { ERROR_SIZE = 4 };
    if (has_headers(d->type)) {
        finish_headers(d, take, user);
        return;
    }
    stream_frame reset = {.stream = d->stream, .sequence = d->block.sequence, .resets = true};
    if (d->payload->len >= ERROR_SIZE)
        reset.error = read_number(d->payload->data);
    end_block(d);
    if (reset.stream != 0)
        take(user, &reset);
}

static void begin_frame(frames_direction *d, const struct trace_frame *frame, frames_take *take, void *user)
{
    const uint8_t *head = frame->head;
    d->type = head[3];
    d->flags = head[4];
    d->stream = read_number(head + 5) & INT32_MAX;
    bool continues = d->in_block && d->type == TRACE_FRAME_CONTINUATION && d->stream == d->block.stream;
    if (d->in_block != continues || (d->type == TRACE_FRAME_CONTINUATION && !continues))
        forget_headers(d); /* invalid, because no other frame may come before the end of a block */
    if (has_headers(d->type) || d->type == TRACE_FRAME_RESET) {
        d->left = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
        d->begin = d->payload->len;
        if (!continues) {
            d->is_push = d->type == TRACE_FRAME_PUSH;
            d->block = (stream_frame){.stream = d->stream,
                                      .sequence = frame->sequence,
                                      .has_headers = true,
                                      .ends_stream = (d->flags & FLAG_END_STREAM) != 0};
        }
        if (d->left == 0)
            finish_frame(d, take, user);
    } else if (d->type == TRACE_FRAME_DATA && d->stream != 0) {
        const stream_frame data = {
            .stream = d->stream, .sequence = frame->sequence, .ends_stream = (d->flags & FLAG_END_STREAM) != 0};
        take(user, &data);
    }
}

static void read_payload(frames_direction *d, const uint8_t *data, uint32_t size, frames_take *take, void *user)
{
    if (d->payload->len + size > FRAMES_BLOCK_MAX)
        d->is_cut = true;
    if (!d->is_cut)
        g_byte_array_append(d->payload, data, size);
    d->left -= size;
    if (d->left == 0)
        finish_frame(d, take, user);
}

bool frames_miss(const frames *f, const struct trace_event *event)
{
    return event->http2 == TRACE_FRAMES_AFTER_GAP && event->captured > 0 &&
           f->directions[event->kind == TRACE_SEND ? TRACE_SEND : TRACE_RECEIVE].begun;
}

void frames_read(frames *f, const struct trace_event *event, frames_take *take, void *user)
{
    frames_direction *d = &f->directions[event->kind == TRACE_SEND ? TRACE_SEND : TRACE_RECEIVE];
    const uint8_t *at = event->data, *end = at + event->captured;
    if (at == end)
        return;
    d->begun = true;
    if (event->http2 == TRACE_FRAMES_AFTER_GAP) {
        d->left = 0;
        forget_headers(d);
    }
    while (at < end) {
        struct trace_frame frame;
        size_t size = (size_t)(end - at);
        if (d->left > 0) {
            uint32_t part = (uint32_t)MIN(size, d->left);
            read_payload(d, at, part, take, user);
            at += part;
        } else if (size >= sizeof frame) {
            memcpy(&frame, at, sizeof frame);
            at += sizeof frame;
            begin_frame(d, &frame, take, user);
        } else {
            break;
        }
    }
}
