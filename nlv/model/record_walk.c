#include "config.h"

#include "model/record_walk.h"

#include "base/buffer.h"
#include "model/batch.h"

#include <string.h>

enum { PIECE_SIZE = 256 << 10, PIECE_SIZE_MAX = 4 << 20 };

struct record_walk {
    const source *source;
    guint file;          /* index of the current file */
    uint64_t at;         /* offset of the next piece in this file */
    nl_decoder *decoder; /* NULL: no current piece */
    nl_buffer bytes;     /* the current piece: whole lines, or a block */
    uint64_t offset;     /* offset of the piece in its file */
    log_block block;     /* the piece, if the file has blocks */
    uint32_t taken;      /* number of records of the block that the walk has returned */
    uint64_t byte_count; /* see record_walk_bytes */
};

record_walk *record_walk_new(const source *s)
{
    record_walk *w = g_new0(record_walk, 1);
    w->source = s;
    return w;
}

void record_walk_free(record_walk *w)
{
    nl_decoder_free(w->decoder);
    nl_buffer_free(&w->bytes);
    g_free(w);
}

uint64_t record_walk_bytes(const record_walk *w)
{
    return w->byte_count;
}

/* Returns the offset up to which the loader has read a file. */
static uint64_t end_of_file(const record_walk *w, const log_file *f)
{
    return MAX(f->scanned, w->file == w->source->current ? w->source->at : 0);
}

static bool read_bytes(record_walk *w, const log_file *f, uint64_t offset, size_t size)
{
    w->bytes.size = 0;
    nl_buffer_reserve(&w->bytes, size + 64);
    w->bytes.size = (size_t)log_file_read_at(f->fd, w->bytes.data, size, offset);
    w->offset = offset;
    return w->bytes.size == size;
}

/* Reads whole lines into w->bytes. Appends a newline to a last line without a newline. Returns false if there were no
 * lines to read. */
static bool read_lines(record_walk *w, const log_file *f)
{
    const uint64_t end = end_of_file(w, f);
    w->at = MAX(w->at, f->forgotten);
    for (size_t wanted = PIECE_SIZE; w->at < end && wanted <= PIECE_SIZE_MAX; wanted *= 4) {
        const size_t size = (size_t)MIN(wanted, end - w->at);
        if (!read_bytes(w, f, w->at, size))
            return false;
        const char *last = memrchr(w->bytes.data, '\n', size);
        if (w->at + size == end)
            w->bytes.data[w->bytes.size++] = '\n';
        else if (last != NULL)
            w->bytes.size = (size_t)(last + 1 - w->bytes.data);
        else if (wanted < PIECE_SIZE_MAX)
            continue;
        w->at = MIN(w->at + w->bytes.size, end);
        return true;
    }
    return false;
}

static bool read_block(record_walk *w, const log_file *f)
{
    const guint i = log_file_find_block(f, w->at);
    if (i >= f->blocks->len)
        return false;
    w->block = g_array_index(f->blocks, log_block, i);
    if (w->block.offset >= end_of_file(w, f) || !read_bytes(w, f, w->block.offset, w->block.size))
        return false;
    w->taken = 0;
    w->at = w->block.offset + w->block.size;
    return true;
}

/* Reads the next piece. Continues with the next file when a file is complete. Returns false if there is no further
 * piece now.
 */
static bool next_piece(record_walk *w)
{
    const GPtrArray *files = w->source->files;
    for (; w->file < files->len; w->file++, w->at = 0) {
        const log_file *f = g_ptr_array_index(files, w->file);
        const bool has_blocks = f->format == NL_FORMAT_NLB;
        if (f->is_numbered && (has_blocks ? read_block : read_lines)(w, f)) {
            w->decoder = nl_decoder_new(
                &(nl_decoder_options){.format = has_blocks ? NL_FORMAT_UNKNOWN : f->format, .fraction = f->fraction});
            w->byte_count += w->bytes.size;
            nl_decoder_feed(w->decoder, w->bytes.data, w->bytes.size);
            return true;
        }
        if (w->file >= w->source->current || w->file + 1 == files->len)
            return false;
    }
    return false;
}

static nl_status next_in_piece(record_walk *w, const nl_record **record)
{
    nl_status status = nl_decoder_next(w->decoder, record);
    if (status == NL_AGAIN && nl_decoder_is_midway(w->decoder)) {
        nl_decoder_finish(w->decoder);
        status = nl_decoder_next(w->decoder, record);
    }
    return status;
}

const nl_record *record_walk_next(record_walk *w, uint64_t *place)
{
    while (w->decoder != NULL || next_piece(w)) {
        const log_file *f = g_ptr_array_index(w->source->files, w->file);
        const log_block *b = &w->block;
        const nl_record *record;
        while (next_in_piece(w, &record) == NL_OK) {
            const char *raw = record->raw.data;
            if (f->format != NL_FORMAT_NLB) {
                const bool is_inside = raw >= w->bytes.data && raw < w->bytes.data + w->bytes.size;
                *place = place_make(f->number, w->offset + (is_inside ? (uint64_t)(raw - w->bytes.data) : 0));
                return record;
            }
            const uint32_t number = w->taken++;
            if (number < b->skip || number - b->skip >= b->count)
                continue;
            *place = place_make(f->number, b->first + number - b->skip);
            return record;
        }
        nl_decoder_free(w->decoder);
        w->decoder = NULL;
    }
    return NULL;
}
