#include "config.h"

#include "model/block_cutter.h"

#include <string.h>

enum {
    PIECE_SIZE = 1 << 20,
    STRETCH_SIZE = 64 << 10, /* maximum size of a part of text in bytes; small, because nlv decodes a part from its
                                start to fetch a record */
    LINE_SLACK = 64,         /* maximum number of bytes in a line after its record */
};

struct block_cutter {
    program_reading *reading;
    char *name;
    const log_file *file;
    nl_decoder *decoder;
    uint64_t base;   /* offset of the decoder's first byte */
    uint64_t offset; /* the decoder has received all bytes before this offset */
    uint64_t first;  /* position of the next record */
    log_block text;  /* the part of text that is still growing; its size is 0 if there is no such part */
    GArray *found;   /* result of the current call */
    bool finished;
};

static void report_malformed(void *user, const nl_malformed *what)
{
    const block_cutter *c = user;
    nl_malformed absolute = *what;
    absolute.offset += c->base;
    program_malformed(c->reading, &absolute);
}

static void report_lost(void *user, const nl_lost *what)
{
    const block_cutter *c = user;
    program_lost(c->reading, what);
}

static void end_text(block_cutter *c)
{
    if (c->text.size > 0)
        g_array_append_val(c->found, c->text);
    c->text.size = 0;
}

/* Adds a block to c->found unless all its records are repeated. Sets `skip` to the number of repeated records at its
 * start. */
static void add_block(void *user, const nl_block_view *view)
{
    block_cutter *c = user;
    end_text(c);
    uint64_t skip = view->repeated > 0 ? view->first_new - view->first_sequence : 0;
    uint64_t count = view->in_parts ? view->record_count - skip : view->record_count - view->repeated;
    log_block b = {c->base + view->offset, c->first, (uint32_t)view->bytes.size, (uint32_t)skip, (uint32_t)count};
    c->first += count;
    if (count > 0)
        g_array_append_val(c->found, b);
}

block_cutter *block_cutter_new(program_reading *reading, const char *name, const log_file *file, uint64_t offset,
                               uint64_t first)
{
    block_cutter *c = g_new0(block_cutter, 1);
    *c = (block_cutter){
        .reading = reading, .name = g_strdup(name), .file = file, .base = offset, .offset = offset, .first = first};
    nl_decoder_options options = {.source = name,
                                  .fraction = file->fraction,
                                  .on_malformed = report_malformed,
                                  .on_lost = report_lost,
                                  .sequences = program_reading_numbers(reading),
                                  .once = program_archive_numbers(reading, name),
                                  .user = c};
    c->decoder = nl_decoder_new(&options);
    nl_decoder_on_unread_block(c->decoder, add_block, c);
    return c;
}

void block_cutter_free(block_cutter *c)
{
    if (c == NULL)
        return;
    program_reading_close_decoder(c->reading, c->decoder, c->name);
    g_free(c->name);
    g_free(c);
}

uint64_t block_cutter_offset(const block_cutter *c)
{
    return c->offset;
}

bool block_cutter_is_finished(const block_cutter *c)
{
    return c->finished;
}

/*
 * Returns the offset of a text record. c->offset is the end of the latest piece. Either the whole record is in the
 * piece, or the record began in an earlier piece and ends at the first newline of this piece. At the end of the file,
 * the newline may be missing.
 */
static uint64_t find_text(const block_cutter *c, nl_string raw, const char *piece, size_t size)
{
    uint64_t start = c->offset - size;
    if (size > 0 && raw.data >= piece && raw.data < piece + size)
        return start + (uint64_t)(raw.data - piece);
    const char *newline = size > 0 ? memchr(piece, '\n', size) : NULL;
    uint64_t end = newline != NULL ? start + (uint64_t)(newline - piece) : c->offset;
    uint64_t from = end - MIN(end, raw.size + LINE_SLACK);
    char *bytes = g_malloc((size_t)(end - from) + 1);
    size_t got = (size_t)log_file_read_at(c->file->fd, bytes, (size_t)(end - from), from);
    const char *found = memmem(bytes, got, raw.data, raw.size);
    uint64_t offset = found != NULL ? from + (uint64_t)(found - bytes) : from;
    g_free(bytes);
    return offset;
}

/* Returns the size in bytes of a text record with the blanks and the newline after the record. `size` is the size of
 * the record alone. Returns `size` if no newline follows within LINE_SLACK bytes. */
static uint32_t size_with_newline(const block_cutter *c, uint64_t offset, size_t size)
{
    char after[LINE_SLACK];
    size_t got = (size_t)log_file_read_at(c->file->fd, after, sizeof after, offset + size), blank = 0;
    while (blank < got && (after[blank] == ' ' || after[blank] == '\t' || after[blank] == '\r'))
        blank++;
    return (uint32_t)(blank < got && after[blank] == '\n' ? size + blank + 1 : size);
}

static void block_cutter_add_text(block_cutter *c, nl_string raw, const char *piece, size_t size)
{
    uint64_t offset = find_text(c, raw, piece, size);
    if (c->text.size > 0 && (offset < c->text.offset || offset - c->text.offset > STRETCH_SIZE))
        end_text(c);
    if (c->text.size == 0)
        c->text = (log_block){.offset = offset, .first = c->first};
    c->text.size = (uint32_t)(offset - c->text.offset) + size_with_newline(c, offset, raw.size);
    c->text.count++;
    c->first++;
}

static void block_cutter_take_records(block_cutter *c, const char *piece, size_t size, GArray *found)
{
    const nl_record *record;
    c->found = found;
    while (nl_decoder_next(c->decoder, &record) == NL_OK)
        block_cutter_add_text(c, record->raw, piece, size);
}

void block_cutter_read(block_cutter *c, uint64_t size, GArray *found)
{
    char *piece = g_malloc(PIECE_SIZE);
    for (uint64_t end = c->offset + size; c->offset < end;) {
        size_t got = (size_t)log_file_read_at(c->file->fd, piece, (size_t)MIN(end - c->offset, PIECE_SIZE), c->offset);
        if (got == 0)
            break;
        c->offset += got;
        nl_decoder_feed(c->decoder, piece, got);
        block_cutter_take_records(c, piece, got, found);
    }
    end_text(c);
    g_free(piece);
}

void block_cutter_finish(block_cutter *c, GArray *found)
{
    c->finished = true;
    nl_decoder_finish(c->decoder);
    block_cutter_take_records(c, NULL, 0, found);
    end_text(c);
}

void block_cutter_decode_odd(const block_cutter *c, const log_block *b, const char *bytes, log_block_take *take,
                             void *user)
{
    block_cutter at_block = {.reading = c->reading, .base = b->offset};
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){
        .source = c->name, .fraction = c->file->fraction, .on_malformed = report_malformed, .user = &at_block});
    log_block_decode(b, c->file, &decoder, bytes, take, user);
    nl_decoder_free(decoder);
}
