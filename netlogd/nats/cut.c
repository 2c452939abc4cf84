#include "config.h"

#include "cut.h"

#include "place.h"
#include "program/program.h"
#include "record/encoder.h"

#include <string.h>

enum { LARGEST = 17 << 20 }; /* approximate maximum size of a block in bytes */

/* The block that is being examined. */
typedef struct open_block {
    nl_block_view view;
    size_t end; /* end of the block in the data */
    bool there;
    uint64_t seen;        /* number of records */
    uint64_t run;         /* number of records since the program last changed */
    nl_buffer host, prog; /* host and program of the latest record */
    nl_buffer runs; /* an array of uint64_t: the lengths of all runs but the last; a run is a sequence of records of one
                       program */
} open_block;

typedef struct cutting {
    const nats_cutter *cutter;
    const char *data;
    bool more; /* the receiver accepts further blocks */
    open_block block;
    nl_buffer subject;
} cutting;

static bool cut_is_same(const nl_buffer *a, nl_string b)
{
    return a->size == b.size && (b.size == 0 || memcmp(a->data, b.data, b.size) == 0);
}

static void set(nl_buffer *buffer, nl_string text)
{
    buffer->size = 0;
    nl_buffer_append(buffer, text.data, text.size);
}

static const char *subject_of(cutting *c, nl_string host, nl_string prog)
{
    c->subject.size = 0;
    nats_subject_add(&c->subject, host);
    nats_subject_add(&c->subject, prog);
    nl_buffer_append(&c->subject, "", 1);
    return c->subject.data;
}

static void give(cutting *c, nl_string bytes, uint64_t first, uint64_t count)
{
    nl_string host = {c->block.host.data, c->block.host.size}, prog = {c->block.prog.data, c->block.prog.size};
    nats_cut cut = {.bytes = bytes, .first = first, .count = count, .end = c->block.end};
    if (c->cutter->whole)
        host = prog = (nl_string){0};
    cut.subject = subject_of(c, host, prog);
    memcpy(cut.stream, c->block.view.stream, sizeof cut.stream);
    c->more = c->cutter->take(c->cutter->user, &cut) && c->more;
}

/* ---- a block in parts ---- */

/* Encodes records [from, to) of the open block as a new block, and stores their host and program. */
static void encode(cutting *c, uint64_t from, uint64_t to, nl_buffer *out)
{
    const nl_block_view *view = &c->block.view;
    nl_encoder *encoder =
        nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB, .zstd_level = c->cutter->zstd_level});
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *record;
    nl_encoder_set_stream(encoder, view->stream, view->first_sequence + from);
    nl_decoder_feed(decoder, view->bytes.data, view->bytes.size);
    for (uint64_t i = 0; i < to && nl_decoder_next(decoder, &record) == NL_OK; i++) {
        if (i == from) {
            set(&c->block.host, record->host);
            set(&c->block.prog, record->prog);
        }
        if (i >= from)
            nl_encoder_put(encoder, record);
    }
    nl_encoder_finish(encoder, out);
    nl_decoder_free(decoder);
    nl_encoder_free(encoder);
}

/* Passes on records [from, to), in halves if they do not fit into one message. Omits a record that is too large. */
static void pass_on_part(cutting *c, uint64_t from, uint64_t to)
{
    nl_buffer part = {0};
    encode(c, from, to, &part);
    if (part.size <= c->cutter->message_size_max) {
        give(c, (nl_string){part.data, part.size}, c->block.view.first_sequence + from, to - from);
    } else if (to - from > 1) {
        uint64_t middle = from + (to - from) / 2;
        pass_on_part(c, from, middle);
        pass_on_part(c, middle, to);
    } else {
        program_error("a record of %.*s takes %zu bytes, which is too large for a NATS message; record omitted",
                      (int)c->block.prog.size, c->block.prog.data, part.size);
    }
    nl_buffer_free(&part);
}

/* Passes on all runs, even if the receiver accepts no further blocks, because blocks are delivered completely. */
static void give_runs(cutting *c)
{
    open_block *block = &c->block;
    uint64_t from = 0, run;
    for (size_t at = 0; at < block->runs.size; at += sizeof run, from += run) {
        memcpy(&run, block->runs.data + at, sizeof run);
        pass_on_part(c, from, from + run);
    }
    pass_on_part(c, from, block->seen);
}

/* ---- whole blocks ---- */

/* Passes on the open block after its last record. */
static void finish_block(cutting *c)
{
    open_block *block = &c->block;
    if (!block->there)
        return;
    block->there = false;
    if (block->view.bytes.size <= c->cutter->message_size_max && block->runs.size == 0)
        give(c, block->view.bytes, block->view.first_sequence, block->view.record_count);
    else if (block->seen > 0)
        give_runs(c);
}

static void cut_on_block(void *user, const nl_block_view *view)
{
    cutting *c = user;
    open_block *block = &c->block;
    finish_block(c);
    if (!c->more) /* the previous block was the last block that the receiver accepts */
        return;
    block->view = *view;
    block->end = (size_t)(view->bytes.data + view->bytes.size - c->data);
    block->there = true;
    block->seen = block->run = 0;
    block->host.size = block->prog.size = block->runs.size = 0;
}

static void add_to_run(open_block *block, const nl_record *record, bool whole)
{
    if (block->seen > 0 && !whole &&
        (!cut_is_same(&block->host, record->host) || !cut_is_same(&block->prog, record->prog))) {
        nl_buffer_append(&block->runs, (const char *)&block->run, sizeof block->run);
        block->run = 0;
    }
    if (block->run == 0) {
        set(&block->host, record->host);
        set(&block->prog, record->prog);
    }
    block->run++;
    block->seen++;
}

size_t nats_cut_blocks(const nats_cutter *cutter, const char *data, size_t size)
{
    cutting c = {.cutter = cutter, .data = data, .more = true};
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.format = NL_FORMAT_NLB});
    const nl_record *record;
    nl_decoder_on_block(decoder, false, cut_on_block, &c);
    nl_decoder_feed(decoder, data, size);
    while (c.more && nl_decoder_next(decoder, &record) == NL_OK)
        add_to_run(&c.block, record, cutter->whole);
    finish_block(&c);
    size_t done = c.block.end;
    /* If this many bytes do not contain the end of a block, they are damaged. */
    if (c.more && size - done > LARGEST)
        done = size;
    nl_decoder_free(decoder);
    nl_buffer_free(&c.block.host);
    nl_buffer_free(&c.block.prog);
    nl_buffer_free(&c.block.runs);
    nl_buffer_free(&c.subject);
    return done;
}
