/*
 * The unread bytes of a decoder: [at, end). The bytes are usually in the piece that was fed. If a block began in an
 * earlier piece, `held` contains the first bytes of the block, and `later` points to the bytes of the current piece
 * that come after the bytes in `held`. The code that reads the bytes advances `at`.
 */
#ifndef NETLOGGER_READER_INPUT_H
#define NETLOGGER_READER_INPUT_H

#include <netlogger.h>

typedef struct nl_input {
    const char *at, *end;
    uint64_t end_offset; /* offset of end in the input */
    bool finished;       /* there are no more pieces */

    nl_buffer held;
    bool in_held;                  /* `at` and `end` point into `held` */
    const char *piece;             /* start of the piece */
    const char *later, *later_end; /* rest of the piece, after the bytes in `held` */
} nl_input;

/* Returns the number of contiguous unread bytes. */
static inline size_t nl_input_left(const nl_input *in)
{
    return (size_t)(in->end - in->at);
}

/* Returns the offset in the input of a position in [in->at, in->end]. */
static inline uint64_t nl_input_offset(const nl_input *in, const char *at)
{
    return in->end_offset - (uint64_t)(in->end - at);
}

/* Returns whether all bytes were read, so that another piece may be fed. */
static inline bool nl_input_is_used_up(const nl_input *in)
{
    return in->in_held ? in->later == in->later_end : in->at == in->end;
}

/* Adds a piece of `size` bytes, which must stay valid until its bytes were read or copied. */
void nl_input_feed(nl_input *in, const char *data, size_t size);

/* Continues with the piece if all bytes of `held` were read. */
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
 * Makes at least `need` bytes contiguous. Returns false if fewer bytes are available; in this case, copies the rest of
 * the piece to `held`. Pointers into the input are then invalid.
 */
bool nl_input_pull(nl_input *in, size_t need);

/* Copies `size` bytes in front of the unread bytes. Does nothing if memory runs out. */
void nl_input_put_back(nl_input *in, const char *data, size_t size);

/* Continues in the piece, instead of `held`, if the piece contains all unread bytes. */
void nl_input_release(nl_input *in);

#endif
