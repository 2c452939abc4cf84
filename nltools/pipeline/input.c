/* Reads the inputs of a pass: text and foreign formats, NetLogger's blocks, and directories. */
#include "config.h"

#include "pipeline/chunks.h"

#include "base/error.h"

#include <string.h>

/* ---- parts of a file that its indexes select ---- */

/*
 * Chooses the first part of a log to read. Only logs in the library's formats have indexes, which define the parts.
 * Returns false and sets the error on failure.
 */
static bool input_begin_parts(pipeline *p)
{
    const pass *pass = p->pass;
    if (pass->where == NULL || nl_source_file(p->source) < 0 || (pass->from != NULL && !pass->from->blocks))
        return true;
    nl_pieces_open(&p->pieces, p->source, INT64_MIN, INT64_MAX, pass->where);
    nl_pieces_search(&p->pieces, p->source, SIZE_MAX);
    pass->reading->skipped = pass->reading->skipped || nl_pieces_are_skipped(&p->pieces);
    p->offset = p->pieces.begin;
    p->lines = p->pieces.lines;
    return nl_source_take_range(p->source, p->pieces.begin, p->pieces.end) == NL_OK;
}

/* Returns whether `status` means only that a part of the file ends. */
static bool input_is_part(const pipeline *p, nl_status status)
{
    return status == NL_END && !p->stopped && !p->failed && !program_was_stopped() &&
           nl_pieces_are_left(&p->pieces, p->source);
}

/* Chooses the next part of the file. `midway` is true if the previous part did not end with a whole record. Returns
 * false and sets the error on failure. */
static bool input_begin_next_part(pipeline *p, bool midway)
{
    nl_pieces_choose(&p->pieces, p->source, midway);
    return nl_source_take_range(p->source, p->pieces.begin, p->pieces.end) == NL_OK;
}

/* ---- blocks, and text between blocks; the library's decoder finds the blocks ---- */

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

/* Notes that the decoder continues at `offset` in the input, after `lines` lines. Returns true. */
static bool input_jump(block_input *b, nl_decoder *decoder, uint64_t offset, uint64_t lines)
{
    b->base = 0; /* from this call on, the decoder counts from the start of the input */
    nl_decoder_jump(decoder, offset, lines);
    return true;
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
    if (nl_pieces_are_skipped(&p->pieces))
        input_jump(&b, decoder, p->offset, 0);
    nl_decoder_feed(decoder, p->cut.in.data, p->cut.in.size);
    input_take_text(p, decoder);
    const char *data;
    size_t size;
    nl_status status = NL_END;
    do {
        while (!p->stopped && !p->failed && (status = program_source_read(p->source, &data, &size)) == NL_OK) {
            nl_decoder_feed(decoder, data, size);
            input_take_text(p, decoder);
        }
    } while (input_is_part(p, status) && input_begin_next_part(p, nl_decoder_is_midway(decoder)) &&
             input_jump(&b, decoder, p->pieces.begin, p->pieces.lines));
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

/* Passes over the skipped part of the input before the chosen part. */
static void input_pass_over_part(pipeline *p)
{
    chunk *c = chunk_convert_here(p);
    c->offset = p->offset;
    c->lines = p->pieces.lines;
    p->offset = p->pieces.begin - p->cut.in.size;
    chunk_dispatch(p);
}

/* Moves the first `size` bytes, which are whole records, into chunk c, and dispatches the chunk. Swaps the buffers to
 * avoid a copy. */
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

/* Divides the unprocessed bytes into chunks. `all` is true after the last byte of the input. Returns false if the
 * remaining bytes may contain blocks. */
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

/*
 * Reads a source. If its format is unknown, reports its lines as malformed. Returns the final status of reading.
 */
static nl_status input_read_source(pipeline *p)
{
    const char *data;
    size_t size;
    nl_status status = NL_OK;
    while (status == NL_OK && !p->stopped && !p->failed) {
        status = program_source_read(p->source, &data, &size);
        const bool ended = status != NL_OK;
        if (!ended)
            nl_buffer_append(&p->cut.in, data, size);
        else if (status == NL_FAILED)
            input_drop_partial_line(p);
        const bool midway = p->cut.in.size > 0 && p->cut.in.data[p->cut.in.size - 1] != '\n',
                   all = ended && !(midway && input_is_part(p, status));
        if (!cutter_detect(&p->cut, ended))
            continue;
        if (p->cut.from == NULL)
            p->cut.from = netlogger_importer_kind(NL_FORMAT_UNKNOWN);
        p->pass->from = p->cut.from;
        if ((all || p->cut.in.size >= p->cut.wanted) && !input_cut(p, all))
            return input_read_blocks(p);
        if (input_is_part(p, status) && input_begin_next_part(p, midway)) {
            input_pass_over_part(p);
            status = NL_OK;
        }
    }
    return p->stopped || p->failed ? NL_END : status;
}

bool input_read(pipeline *p)
{
    p->cut.from = p->pass->from;
    p->cut.piece_size = CHUNK_SIZE;
    cutter_reset(&p->cut);
    nl_status status = input_begin_parts(p) ? input_read_source(p) : NL_FAILED;
    return status != NL_FAILED || pipeline_report_input(p);
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
