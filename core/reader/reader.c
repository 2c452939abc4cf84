#include "config.h"

#include "reader/decoder_internal.h"
#include "reader/reader.h"

#include "base/error.h"
#include "base/memory.h"
#include "reader/pieces.h"
#include "transport/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WAIT_MS = 1000,
    SEGMENTS = 8, /* segments of a value index to search in one call of a non-blocking seek */
    LOOKS = 256,  /* headers to check in one call of a non-blocking seek */
};

struct nl_reader {
    nl_source *source;
    nl_decoder *decoder;
    nl_status outcome; /* result after the decoder's last record */
    nl_error failure;  /* the error, if outcome is NL_FAILED; stored because decoding may replace the thread's error */
    bool nonblocking;

    bool seeking; /* the indexes were opened */
    nl_pieces pieces;
    bool searched; /* the search of the value index has ended, and `pieces` contains the first part to read */
};

nl_reader *nl_reader_open_source(nl_source *source, const nl_decoder_options *options, bool nonblocking)
{
    nl_reader *reader = nl_memory_check(calloc(1, sizeof *reader));
    if (reader == NULL) {
        nl_source_close(source);
        return NULL;
    }
    reader->source = source;
    reader->decoder = nl_decoder_new(options);
    reader->nonblocking = nonblocking;
    if (reader->decoder != NULL)
        return reader;
    nl_reader_close(reader);
    return NULL;
}

/*
 * Like nl_reader_open, with options for the decoder; NULL selects the defaults. If options->source is NULL, the
 * source's name is url_text.
 */
static nl_reader *nl_reader_open_decoding(const char *url_text, const nl_decoder_options *options, bool follow,
                                          bool nonblocking)
{
    nl_decoder_options decoding = options != NULL ? *options : (nl_decoder_options){0};
    nl_url *url = nl_url_parse_for(url_text, NL_URL_READ);
    nl_source *source = url != NULL ? nl_source_open(url, follow, nonblocking) : NULL;
    nl_url_free(url);
    if (decoding.source == NULL)
        decoding.source = url_text;
    return source != NULL ? nl_reader_open_source(source, &decoding, nonblocking) : NULL;
}

nl_reader *nl_reader_open(const char *url, const nl_reader_options *options)
{
    if (options == NULL)
        return nl_reader_open_decoding(url, NULL, false, false);
    return nl_reader_open_decoding(url,
                                   &(nl_decoder_options){
                                       .format = options->format,
                                       .fraction = options->fraction,
                                       .max_record_size = options->max_record_size,
                                       .on_malformed = options->on_malformed,
                                       .on_lost = options->on_lost,
                                       .user = options->user,
                                   },
                                   options->follow, options->nonblocking);
}

void nl_reader_close(nl_reader *reader)
{
    if (reader == NULL)
        return;
    nl_decoder_free(reader->decoder);
    nl_source_close(reader->source);
    nl_pieces_free(&reader->pieces);
    free(reader);
}

/*
 * Handles the end of the input, or a read error. The decoder first returns its last record; after a read error, it
 * drops an incomplete record.
 */
static void finish(nl_reader *reader, nl_status outcome)
{
    reader->outcome = outcome;
    if (outcome == NL_FAILED) {
        nl_error_save(&reader->failure);
        nl_decoder_abort(reader->decoder);
    } else {
        nl_decoder_finish(reader->decoder);
    }
}

/* ---- pieces of the index ---- */

static nl_status begin_chosen(nl_reader *reader)
{
    const nl_pieces *p = &reader->pieces;
    if (p->begin != nl_source_position(reader->source))
        nl_decoder_jump(reader->decoder, p->begin, p->lines);
    return nl_source_take_range(reader->source, p->begin, p->end);
}

static nl_status begin_more_pieces(nl_reader *reader)
{
    nl_pieces_choose(&reader->pieces, reader->source, nl_decoder_is_midway(reader->decoder));
    return begin_chosen(reader);
}

/* ---- reading ---- */

/* Begins to read the file that has replaced the followed file. Does not use the index, which belongs to the old
 * file. */
static void begin_replacement(nl_reader *reader)
{
    reader->pieces.next = reader->pieces.index.count;
    finish(reader, NL_OK);
}

/*
 * Feeds the decoder, or handles the end of the input. Returns NL_AGAIN if a non-blocking reader has no input yet,
 * otherwise NL_OK.
 */
static nl_status feed(nl_reader *reader)
{
    const char *data;
    size_t size;
    nl_status status = nl_source_read(reader->source, &data, &size);
    if (status == NL_OK)
        nl_decoder_feed(reader->decoder, data, size);
    else if (status == NL_END && nl_pieces_are_left(&reader->pieces, reader->source) &&
             begin_more_pieces(reader) == NL_OK)
        return NL_OK;
    else if (status == NL_END && nl_source_was_replaced(reader->source))
        begin_replacement(reader);
    else if (status != NL_AGAIN)
        finish(reader, status);
    else if (reader->nonblocking)
        return NL_AGAIN;
    else
        nl_source_wait(reader->source, WAIT_MS);
    return NL_OK;
}

nl_status nl_reader_next(nl_reader *reader, const nl_record **record)
{
    for (;;) {
        nl_status status = nl_decoder_next(reader->decoder, record);
        if (status == NL_OK || status == NL_FAILED)
            return status;
        if (status == NL_END) {
            if (reader->outcome == NL_FAILED)
                nl_error_restore(&reader->failure);
            if (reader->outcome != NL_OK)
                return reader->outcome;
            nl_decoder_restart(reader->decoder);
        }
        status = feed(reader);
        if (status != NL_OK)
            return status;
    }
}

/*
 * Moves begin to the first block that has records at or after from_ns, or to the first position without a whole block.
 * Returns false if there are more blocks to check after `count` blocks.
 */
static bool find_time(nl_pieces *p, int fd, size_t count)
{
    char bytes[NL_BLOCK_HEADER_SIZE];
    nl_block_header header;
    struct stat status;
    if (fstat(fd, &status) != 0)
        return true;
    uint64_t end = p->end < (uint64_t)status.st_size ? p->end : (uint64_t)status.st_size;
    for (size_t i = 0; i < count; i++) {
        ssize_t got = pread(fd, bytes, sizeof bytes, (off_t)p->begin);
        if (got != (ssize_t)sizeof bytes || nl_block_parse_header(bytes, sizeof bytes, &header) != NL_OK)
            return true;
        if (header.record_count > 0 && header.max_time_ns >= p->from_ns)
            return true;
        if (nl_block_total_size(&header) > end - p->begin)
            return true;
        p->begin += nl_block_total_size(&header);
    }
    return false;
}

nl_status nl_reader_seek_matches(nl_reader *reader, int64_t from_ns, int64_t to_ns, const nl_filter *filter)
{
    int fd = nl_source_position(reader->source) == 0 ? nl_source_file(reader->source) : -1;
    if (fd < 0)
        return NL_OK;
    if (!reader->seeking)
        nl_pieces_open(&reader->pieces, reader->source, from_ns, to_ns, filter);
    reader->seeking = true;
    reader->pieces.from_ns = from_ns;
    reader->pieces.to_ns = to_ns;
    if (!reader->searched &&
        !nl_pieces_search(&reader->pieces, reader->source, reader->nonblocking ? SEGMENTS : SIZE_MAX))
        return NL_AGAIN;
    reader->searched = true;
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* only headers are read */
    bool found = find_time(&reader->pieces, fd, reader->nonblocking ? LOOKS : SIZE_MAX);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return found ? begin_chosen(reader) : NL_AGAIN;
}

bool nl_reader_skips(const nl_reader *reader)
{
    return nl_pieces_are_skipped(&reader->pieces);
}

nl_status nl_reader_seek(nl_reader *reader, int64_t from_ns)
{
    return nl_reader_seek_matches(reader, from_ns, INT64_MAX, NULL);
}

const nl_decoder_stats *nl_reader_get_stats(const nl_reader *reader)
{
    return nl_decoder_get_stats(reader->decoder);
}

uint64_t nl_reader_size(const nl_reader *reader)
{
    return nl_source_size(reader->source);
}

uint64_t nl_reader_position(const nl_reader *reader)
{
    return nl_source_position(reader->source);
}
