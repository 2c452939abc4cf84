/* An input that is a stream of bytes being cut into chunks of whole records. */
#include "config.h"

#include "pipeline/pipeline_inside.h"

#include <string.h>

enum {
    RECORD_LIMIT = 64 << 20, /* of what is no record by then the rest of the line is passed over */
    REPORT_LIMIT = 1 << 20,  /* bytes that are kept of it */
    DETECT_SIZE = 64 << 10,  /* bytes that tell the format */
};

/* Passes over the rest of what is too long to be a record. False when all that was read belongs to it. */
static bool pass_over_line(pipeline *p, chunk *c)
{
    const char *newline = c->in.size > 0 ? memchr(c->in.data, '\n', c->in.size) : NULL;
    size_t size = newline != NULL ? (size_t)(newline + 1 - c->in.data) : c->in.size;
    c->in.size -= size;
    memmove(c->in.data, c->in.data + size, c->in.size);
    p->offset += size;
    p->skipping = newline == NULL;
    return !p->skipping;
}

/* There is no whole record in so many bytes: the first line of them is given up. */
static void give_up_line(pipeline *p)
{
    chunk *c = pipeline_filling(p);
    nl_buffer text = c->in;
    c->in = (nl_buffer){0};
    c->offset = p->offset;
    pipeline_in_place(p);
    sink_malformed(&c->s, 1, 0, "record is longer than 64 MiB", text.data,
                   text.size < REPORT_LIMIT ? text.size : REPORT_LIMIT);
    c->lines = 1;
    pipeline_dispatch(p);
    nl_buffer *rest = &pipeline_filling(p)->in;
    nl_buffer_free(rest);
    *rest = text;
    pass_over_line(p, pipeline_filling(p));
}

static size_t whole_lines(const char *data, size_t size)
{
    const char *newline = size > 0 ? memrchr(data, '\n', size) : NULL;
    return newline != NULL ? (size_t)(newline + 1 - data) : 0;
}

/* Sends the first bytes of what was read on their way; the rest begins the next chunk. */
static void cut_at(pipeline *p, size_t size)
{
    chunk *c = pipeline_filling(p);
    size_t rest = c->in.size - size;
    c->in.size = size;
    c->offset = p->offset;
    p->offset += size;
    const char *after = c->in.data + size; /* stays there: a chunk keeps its memory, and there are several */
    pipeline_dispatch(p);
    nl_buffer_append(&pipeline_filling(p)->in, after, rest);
}

/* Takes the head of the input when it is there. False while it is not. */
static bool take_head(pipeline *p, bool all)
{
    const importer_kind *from = p->pass->from;
    chunk *c = pipeline_filling(p);
    if (from->head == NULL || p->import_shared != NULL)
        return true;
    nl_buffer in = c->in;
    c->in = (nl_buffer){0};
    c = pipeline_in_place(p);
    size_t size = from->head(in.data, in.size, all, &p->import_shared, &c->s);
    c->lines = pipeline_count_lines(in.data, size);
    p->offset += size;
    if (size > 0 || c->s.report_count > 0)
        pipeline_dispatch(p);
    else
        c->in_place = false;
    memmove(in.data, in.data + size, in.size - size);
    in.size -= size;
    c = pipeline_filling(p);
    nl_buffer_free(&c->in);
    c->in = in;
    return p->import_shared != NULL;
}

/* ---- blocks of the binary format, and text among them: the library's decoder finds them ---- */

typedef struct block_cutter {
    pipeline *p;
    uint64_t base; /* of what the decoder counts, in the input */
} block_cutter;

static void pipeline_cut_on_block(void *user, const nl_block_view *block)
{
    block_cutter *b = user;
    pipeline *p = b->p;
    if (pipeline_filling(p)->in_place)
        pipeline_dispatch_in_place(p);
    chunk *c = pipeline_filling(p);
    if (c->in.size > 0 &&
        (c->in.size + block->bytes.size > PIPELINE_CHUNK_SIZE ||
         c->expanded + block->expanded > PIPELINE_EXPANDED_MAX || c->offset + c->in.size != b->base + block->offset)) {
        pipeline_dispatch(p);
        c = pipeline_filling(p);
    }
    if (c->in.size == 0)
        c->offset = b->base + block->offset;
    c->blocks = true;
    c->expanded += block->expanded;
    nl_buffer_append(&c->in, block->bytes.data, block->bytes.size);
}

/* What the decoder of blocks could not read. */
static void cut_on_malformed(void *user, const nl_malformed *what)
{
    block_cutter *b = user;
    chunk *c = pipeline_in_place(b->p);
    c->offset = b->base;
    sink_malformed(&c->s, what->line, what->offset, what->reason, what->text.data, what->text.size);
}

static void on_lost(void *user, const nl_lost *what)
{
    block_cutter *b = user;
    nl_lost named = *what;
    named.source = b->p->name;
    if (!b->p->pass->is_first)
        program_lost(b->p->pass->reading, &named);
}

/* The text among the blocks is converted here. */
static void cut_take_records(pipeline *p, nl_decoder *decoder)
{
    const nl_record *record;
    while (!p->stopped && nl_decoder_next(decoder, &record) == NL_OK) {
        chunk *c = pipeline_in_place(p);
        sink_put(&c->s, record, false);
        if (c->s.bytes.size >= PIPELINE_CHUNK_SIZE)
            pipeline_dispatch_in_place(p);
    }
}

/* The rest of the input, of which some was read already: it may hold blocks. */
static nl_status cut_blocks(pipeline *p)
{
    block_cutter b = {.p = p, .base = p->offset};
    bool first = p->pass->is_first;
    nl_decoder_options options = {.source = p->name,
                                  .format = p->pass->from->format,
                                  .fraction = p->pass->reading->fraction,
                                  .on_malformed = cut_on_malformed,
                                  .on_lost = on_lost,
                                  .sequences = first ? NULL : program_reading_numbers(p->pass->reading),
                                  .once = first ? NULL : program_archive_numbers(p->pass->reading, p->name),
                                  .user = &b};
    nl_decoder *decoder = nl_decoder_new(&options);
    nl_decoder_on_unread_block(decoder, pipeline_cut_on_block, &b);
    chunk *c = pipeline_filling(p);
    nl_buffer begun = c->in;
    c->in = (nl_buffer){0};
    nl_decoder_feed(decoder, begun.data, begun.size);
    cut_take_records(p, decoder);
    const char *data;
    size_t size;
    nl_status status = NL_END;
    while (!p->stopped && !p->failed && (status = program_source_read(p->source, &data, &size)) == NL_OK) {
        nl_decoder_feed(decoder, data, size);
        cut_take_records(p, decoder);
    }
    nl_decoder_finish(decoder);
    cut_take_records(p, decoder);
    pipeline_in_place(p)->s.unterminated += nl_decoder_get_stats(decoder)->unterminated;
    p->pass->reading->repeated += nl_decoder_get_stats(decoder)->repeated;
    pipeline_dispatch_in_place(p);
    nl_decoder_free(decoder);
    nl_buffer_free(&begun);
    return status;
}

/* ---- the whole input ---- */

/* Cuts what was read. all: nothing more comes. False when the rest is not to be cut so: it may hold blocks. */
static bool cut(pipeline *p, bool all)
{
    const importer_kind *from = p->pass->from;
    if (p->skipping && !pass_over_line(p, pipeline_filling(p)))
        return true;
    if (!take_head(p, all))
        return true;
    chunk *c = pipeline_filling(p);
    if (c->in.size == 0 && !all)
        return true;
    size_t size = all ? c->in.size : (from->cut != NULL ? from->cut : whole_lines)(c->in.data, c->in.size);
    if (from->blocks && c->in.size > 0 && memchr(c->in.data, '\0', c->in.size) != NULL)
        return false;
    c->last = all;
    p->wanted = PIPELINE_CHUNK_SIZE;
    if (size > 0 || all)
        cut_at(p, size);
    else if (c->in.size > RECORD_LIMIT)
        give_up_line(p);
    else /* what was looked through already is looked through a few times at most */
        p->wanted = 2 * c->in.size;
    return true;
}

/* Finds out the format from what was read; the output begins when it is known. */
static bool settle_format(pipeline *p)
{
    const nl_buffer *in = &pipeline_filling(p)->in;
    if (p->pass->from == NULL)
        p->pass->from =
            in->size == 0 ? netlogger_importer_kind(NL_FORMAT_ULM) : importer_kind_detect(in->data, in->size);
    if (p->pass->from == NULL)
        return false;
    if (!p->begun)
        pipeline_write_edge(p, p->pass->to->begin);
    p->begun = true;
    return true;
}

nl_status pipeline_read_all(pipeline *p)
{
    const char *data;
    size_t size;
    nl_status status = NL_OK;
    while (!p->stopped && !p->failed && (status = program_source_read(p->source, &data, &size)) == NL_OK) {
        nl_buffer_append(&pipeline_filling(p)->in, data, size);
        bool detected = p->pass->from != NULL;
        if (pipeline_filling(p)->in.size < (detected ? p->wanted : DETECT_SIZE))
            continue;
        if (!settle_format(p))
            return NL_MALFORMED;
        if (!cut(p, false))
            return cut_blocks(p);
    }
    if (p->stopped || p->failed)
        return NL_END;
    if (!settle_format(p))
        return NL_MALFORMED;
    return cut(p, status == NL_END || status == NL_FAILED) ? status : cut_blocks(p);
}
