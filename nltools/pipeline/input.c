/* Reads the inputs of a pass: text and foreign formats, NetLogger's blocks, and directories. */
#include "config.h"

#include "pipeline/chunks.h"

#include "base/error.h"

#include <string.h>

/* ---- blocks, and text between them; the library's decoder finds the blocks ---- */

typedef struct block_input {
    pipeline *p;
    uint64_t base; /* offset in the input at which the decoder has begun */
} block_input;

static void input_on_block(void *user, const nl_block_view *block)
{
    block_input *b = user;
    pipeline *p = b->p;
    if (chunk_filling(p)->is_converted)
        chunk_dispatch_converted(p);
    chunk *c = chunk_filling(p);
    if (c->in.size > 0 &&
        (c->in.size + block->bytes.size > CHUNK_SIZE || c->expanded + block->expanded > CHUNK_EXPANDED_MAX ||
         c->offset + c->in.size != b->base + block->offset)) {
        chunk_dispatch(p);
        c = chunk_filling(p);
    }
    if (c->in.size == 0)
        c->offset = b->base + block->offset;
    c->blocks = true;
    c->expanded += block->expanded;
    nl_buffer_append(&c->in, block->bytes.data, block->bytes.size);
}

static void input_on_malformed(void *user, const nl_malformed *what)
{
    block_input *b = user;
    chunk *c = chunk_convert_here(b->p);
    c->offset = b->base;
    sink_malformed(&c->s, what->line, what->offset, what->reason, what->text.data, what->text.size);
}

static void input_on_lost(void *user, const nl_lost *what)
{
    const pipeline *p = ((block_input *)user)->p;
    nl_lost named = *what;
    named.source = p->name;
    if (!p->pass->is_first)
        program_lost(p->pass->reading, &named);
}

/* Converts the text records that the decoder has found between the blocks. */
static void input_take_text(pipeline *p, nl_decoder *decoder)
{
    const nl_record *record;
    while (!p->stopped && nl_decoder_next(decoder, &record) == NL_OK) {
        chunk *c = chunk_convert_here(p);
        sink_put(&c->s, record, false);
        if (c->s.bytes.size >= CHUNK_SIZE)
            chunk_dispatch_converted(p);
    }
}

/* Reads the rest of an input that may contain blocks. */
static nl_status input_read_blocks(pipeline *p)
{
    block_input b = {.p = p, .base = p->offset};
    program_reading *reading = p->pass->reading;
    bool first = p->pass->is_first;
    nl_decoder_options options = {.source = p->name,
                                  .format = p->pass->from->format,
                                  .fraction = reading->fraction,
                                  .on_malformed = input_on_malformed,
                                  .on_lost = input_on_lost,
                                  .sequences = first ? NULL : program_reading_numbers(reading),
                                  .once = first ? NULL : program_archive_numbers(reading, p->name),
                                  .user = &b};
    nl_decoder *decoder = nl_decoder_new(&options);
    nl_decoder_on_unread_block(decoder, input_on_block, &b);
    nl_decoder_feed(decoder, p->cut.in.data, p->cut.in.size);
    input_take_text(p, decoder);
    const char *data;
    size_t size;
    nl_status status = NL_END;
    while (!p->stopped && !p->failed && (status = program_source_read(p->source, &data, &size)) == NL_OK) {
        nl_decoder_feed(decoder, data, size);
        input_take_text(p, decoder);
    }
    nl_decoder_finish(decoder);
    input_take_text(p, decoder);
    chunk_convert_here(p)->s.unterminated += nl_decoder_get_stats(decoder)->unterminated;
    reading->repeated += nl_decoder_get_stats(decoder)->repeated;
    chunk_dispatch_converted(p);
    nl_decoder_free(decoder);
    return status;
}

/* ---- text and foreign formats ---- */

/* Skips `size` bytes that contain no records. Dispatches chunk c, which contains only the reports about these bytes. */
static void input_pass_over(pipeline *p, chunk *c, size_t size)
{
    c->offset = p->offset;
    c->lines = cutter_count_lines(p->cut.in.data, size);
    p->offset += size;
    cutter_remove(&p->cut, size);
    chunk_dispatch(p);
}

/* Moves the first `size` bytes, which are whole records, into chunk c and dispatches it. Swaps the buffers to avoid a
 * copy. */
static void input_dispatch_records(pipeline *p, chunk *c, size_t size, bool last)
{
    nl_buffer filled = p->cut.in;
    p->cut.in = c->in;
    nl_buffer_append(&p->cut.in, filled.data + size, filled.size - size);
    c->in = filled;
    c->in.size = size;
    c->offset = p->offset;
    c->last = last;
    p->offset += size;
    chunk_dispatch(p);
}

/*
 * Divides the bytes that have arrived into chunks. `all` is true if no more bytes will arrive. Returns false if the
 * remaining bytes may contain blocks.
 */
static bool input_cut(pipeline *p, bool all)
{
    cut found;
    do {
        const nl_buffer *in = &p->cut.in;
        if (p->pass->from->blocks && in->size > 0 && memchr(in->data, '\0', in->size) != NULL)
            return false;
        chunk *c = chunk_convert_here(p);
        size_t size;
        found = cutter_next(&p->cut, all, &c->s, &size);
        if (found == CUT_OTHER) {
            input_pass_over(p, c, size);
            continue;
        }
        c->is_converted = false;
        if (found == CUT_RECORDS)
            input_dispatch_records(p, c, size, all);
    } while (found == CUT_OTHER || (found == CUT_RECORDS && !all && p->cut.in.size >= p->cut.wanted));
    return true;
}

/* Drops an incomplete line after a read failure, because it may look like a valid shorter line. */
static void input_drop_partial_line(pipeline *p)
{
    nl_buffer *in = &p->cut.in;
    const char *newline = in->size > 0 ? memrchr(in->data, '\n', in->size) : NULL;
    if (p->pass->from != NULL && p->pass->from->blocks)
        in->size = newline != NULL ? (size_t)(newline + 1 - in->data) : 0;
}

/* Reads a source. Returns NL_MALFORMED if its format is unknown, and the final status of reading otherwise. */
static nl_status input_read_source(pipeline *p)
{
    const char *data;
    size_t size;
    nl_status status = NL_OK;
    while (status == NL_OK && !p->stopped && !p->failed) {
        status = program_source_read(p->source, &data, &size);
        bool all = status != NL_OK;
        if (!all)
            nl_buffer_append(&p->cut.in, data, size);
        else if (status == NL_FAILED)
            input_drop_partial_line(p);
        if (!cutter_detect(&p->cut, all))
            continue;
        if ((p->pass->from = p->cut.from) == NULL)
            return NL_MALFORMED;
        if ((all || p->cut.in.size >= p->cut.wanted) && !input_cut(p, all))
            return input_read_blocks(p);
    }
    return p->stopped || p->failed ? NL_END : status;
}

bool input_read(pipeline *p)
{
    p->cut.from = p->pass->from;
    p->cut.piece_size = CHUNK_SIZE;
    cutter_reset(&p->cut);
    nl_status status = input_read_source(p);
    if (status == NL_MALFORMED)
        nl_error_set(NL_ERROR_INVALID, "%s: unrecognized format; name it with --from-format", p->name);
    return (status != NL_MALFORMED && status != NL_FAILED) || pipeline_report_input(p);
}

/* ---- directories ---- */

/* Writes the importer's output so far. The importer continues with the same sink. */
static void input_commit_part(sink *s)
{
    pipeline *p = s->drain_user;
    if (p->own->kind->flush != NULL)
        p->own->kind->flush(p->own, s);
    chunk_commit(p, chunk_filling(p));
    chunk_convert_here(p);
    s->stopped = p->stopped || p->failed;
}

bool input_read_directory(pipeline *p)
{
    sink *s = &chunk_convert_here(p)->s;
    s->drain = input_commit_part;
    s->drain_user = p;
    bool good = p->pass->from->read_path(p->name, s);
    input_commit_part(s);
    s->drain = NULL;
    return good || pipeline_report_input(p);
}
