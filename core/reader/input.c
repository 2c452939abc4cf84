#include "config.h"

#include "reader/input.h"
#include "base/buffer.h"

#include <string.h>

void nl_input_feed(nl_input *in, const char *data, size_t size)
{
    in->piece = data;
    if (in->in_held) {
        in->later = data;
        in->later_end = data + size;
        return;
    }
    in->at = data;
    in->end = data + size;
    in->end_offset += size;
}

/* Copies the rest of the piece to `held`, so that the next piece can follow these bytes. */
static void hold(nl_input *in)
{
    size_t left = nl_input_left(in);
    in->held.size = 0;
    if (!nl_buffer_append(&in->held, in->at, left))
        left = 0; /* the decoder then stops reading */
    in->piece = in->later = in->later_end = in->end;
    in->in_held = true;
    in->at = in->held.data;
    in->end = in->at + left;
}

bool nl_input_pull(nl_input *in, size_t need)
{
    size_t left = nl_input_left(in);
    if (left >= need)
        return true;
    if (!in->in_held) {
        if (left > 0)
            hold(in);
        return false;
    }
    size_t more = (size_t)(in->later_end - in->later);
    if (more == 0)
        return false;
    more = more < need - left ? more : need - left;
    if (in->at != in->held.data)
        memmove(in->held.data, in->at, left);
    in->held.size = left;
    bool good = nl_buffer_append(&in->held, in->later, more);
    in->later += more;
    in->end_offset += more;
    in->at = in->held.data;
    in->end = in->at + in->held.size;
    if (good && left + more >= need)
        return true;
    in->piece = in->later; /* the piece may be invalid at the next call */
    return false;
}

void nl_input_put_back(nl_input *in, const char *data, size_t size)
{
    size_t left = nl_input_left(in);
    if (!in->in_held) {
        in->piece = in->later = in->at;
        in->later_end = in->end;
        in->end_offset -= left;
        in->in_held = true;
        in->held.size = left = 0;
        in->at = in->held.data;
    }
    size_t before = left > 0 ? (size_t)(in->at - in->held.data) : 0;
    in->held.size = before + left;
    if (!nl_buffer_reserve(&in->held, size))
        return;
    if (left > 0)
        memmove(in->held.data + size, in->held.data + before, left);
    memcpy(in->held.data, data, size);
    in->held.size = size + left;
    in->at = in->held.data;
    in->end = in->at + in->held.size;
}

void nl_input_release(nl_input *in)
{
    size_t left = nl_input_left(in);
    if (!in->in_held || left > (size_t)(in->later - in->piece))
        return;
    in->in_held = false;
    in->at = in->later - left;
    in->end = in->later_end;
    in->end_offset += (uint64_t)(in->later_end - in->later);
}
