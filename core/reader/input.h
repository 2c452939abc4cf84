/*
 * The bytes that a decoder has and has not used yet.
 *
 * They are [at, end): of the piece that was fed, or of bytes that were held because a block needs all of its own in one
 * place; then the rest of the piece comes after them. Whoever uses bytes moves at.
 */
#ifndef NETLOGGER_READER_INPUT_H
#define NETLOGGER_READER_INPUT_H

#include <netlogger.h>

typedef struct nl_input {
    const char *at, *end;
    uint64_t end_offset; /* of end, from the start of the input */
    bool finished;       /* no more pieces come */

    nl_buffer held;
    bool in_held;                  /* at and end are in held: */
    const char *piece;             /* the piece's first byte */
    const char *later, *later_end; /* the rest of the piece */
} nl_input;

static inline size_t nl_input_left(const nl_input *in)
{
    return (size_t)(in->end - in->at);
}

static inline uint64_t nl_input_offset(const nl_input *in, const char *at)
{
    return in->end_offset - (uint64_t)(in->end - at);
}

/* Whether the piece was used up, so that another may be fed. */
static inline bool nl_input_is_used_up(const nl_input *in)
{
    return in->in_held ? in->later == in->later_end : in->at == in->end;
}

void nl_input_feed(nl_input *in, const char *data, size_t size);

/* Goes on to the piece when what was held is used up. */
static inline void nl_input_advance(nl_input *in)
{
    if (!in->in_held || in->at != in->end)
        return;
    in->in_held = false;
    in->at = in->later;
    in->end = in->later_end;
    in->end_offset += nl_input_left(in);
}

/*
 * Sees to it that there are need bytes in one place. False when there are not that many; the piece is then used up,
 * what there is of it is held. Pointers into the input are invalid afterwards.
 */
bool nl_input_pull(nl_input *in, size_t need);

/* Puts bytes that were taken before, by copying them, in front of what is left. */
void nl_input_put_back(nl_input *in, const char *data, size_t size);

/* Goes on in the piece when it has all that is left. */
void nl_input_release(nl_input *in);

#endif
