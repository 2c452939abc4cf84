#include "config.h"

#include "time_scan.h"

#include "file.h"
#include "record/zstd_magic.h"
#include "base/memory.h"
#include "reader/decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { CHUNK = 64 << 10 };

typedef struct scan {
    nl_decoder *decoder;
    nl_time_piece piece;
    uint64_t from;      /* start of the piece */
    uint64_t fed;       /* end of the bytes that were read */
    uint64_t lines_end; /* offset after the last newline */
    uint64_t block_end; /* offset after the last block; 0: no block */
    ZSTD_DStream *unpacker;
    char *unpacked;
    uint64_t frame_end; /* offset after the last frame that is followed by the start of a record */
    void (*take)(void *user, const nl_record *record); /* NULL: blocks are not decoded */
    void *user;
} scan;

static void time_scan_on_block(void *user, const nl_block_view *block)
{
    scan *s = user;
    nl_time_piece times = {.min_ns = block->min_time_ns, .max_ns = block->max_time_ns, .records = block->record_count};
    if (s->take == NULL)
        nl_time_piece_add(&s->piece, &times);
    s->block_end = s->from + block->offset + block->bytes.size;
}

static void time_scan_decode(scan *s, const char *data, size_t size)
{
    const nl_record *record;
    nl_decoder_feed(s->decoder, data, size);
    while (nl_decoder_next(s->decoder, &record) == NL_OK) {
        nl_time_piece_add(&s->piece,
                          &(nl_time_piece){.min_ns = record->time_ns, .max_ns = record->time_ns, .records = 1});
        if (s->take != NULL)
            s->take(s->user, record);
    }
}

static void time_scan_read_plain(scan *s, const char *data, size_t size)
{
    time_scan_decode(s, data, size);
    const char *newline = memrchr(data, '\n', size);
    if (newline != NULL)
        s->lines_end = s->fed + (uint64_t)(newline + 1 - data);
    s->fed += size;
}

/* Decompresses frames until a frame ends at `minimum` or later. Returns false if frames are damaged. */
static bool time_scan_read_frames(scan *s, const char *data, size_t size, uint64_t minimum)
{
    ZSTD_inBuffer in = {data, size, 0};
    size_t result = 1;
    bool full = false; /* the output buffer is full, and more data may follow */
    while ((in.pos < size || full) && s->frame_end < minimum) {
        ZSTD_outBuffer out = {s->unpacked, ZSTD_DStreamOutSize(), 0};
        result = ZSTD_decompressStream(s->unpacker, &out, &in);
        if (ZSTD_isError(result))
            return false;
        full = result != 0 && out.pos == out.size;
        if (out.pos > 0)
            time_scan_decode(s, s->unpacked, out.pos);
        if (result == 0 && !nl_decoder_is_midway(s->decoder))
            s->frame_end = s->fed + in.pos;
    }
    s->fed += size;
    return true;
}

/* Returns the end of the last whole record, block or frame. */
static uint64_t end_of(const scan *s)
{
    if (s->unpacker != NULL)
        return s->frame_end;
    if (!nl_decoder_is_midway(s->decoder))
        return s->fed;
    return s->block_end > 0 ? s->block_end : s->lines_end;
}

static void begin_frames(scan *s)
{
    s->unpacker = nl_memory_check(ZSTD_createDStream());
    s->unpacked = nl_memory_check(malloc(ZSTD_DStreamOutSize()));
    ZSTD_initDStream(s->unpacker);
}

static bool read_pieces(scan *s, int fd, uint64_t minimum, uint64_t limit)
{
    char data[CHUNK];
    while (s->fed < limit && end_of(s) < minimum) {
        size_t length = limit - s->fed < CHUNK ? (size_t)(limit - s->fed) : CHUNK;
        ssize_t got = pread(fd, data, length, (off_t)s->fed);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        if (s->fed == s->from && nl_zstd_begins(data, (size_t)got))
            begin_frames(s);
        if (s->unpacker == NULL)
            time_scan_read_plain(s, data, (size_t)got);
        else if (!time_scan_read_frames(s, data, (size_t)got, minimum))
            return false;
    }
    return true;
}

bool time_scan_records(int fd, uint64_t from, uint64_t minimum, uint64_t limit, nl_time_piece *piece,
                       void (*take)(void *user, const nl_record *record), void *user)
{
    scan s = {.piece = NL_TIME_PIECE_EMPTY,
              .from = from,
              .fed = from,
              .lines_end = from,
              .frame_end = from,
              .take = take,
              .user = user};
    s.decoder = nl_decoder_new(&(nl_decoder_options){.max_record_size = OUTPUT_FILE_LONGEST});
    if (take != NULL)
        nl_decoder_on_block(s.decoder, false, time_scan_on_block, &s);
    else
        nl_decoder_on_unread_block(s.decoder, time_scan_on_block, &s);
    bool good = read_pieces(&s, fd, minimum, limit);
    *piece = s.piece;
    if (nl_decoder_get_stats(s.decoder)->malformed > 0)
        *piece = NL_TIME_PIECE_UNKNOWN;
    piece->end = end_of(&s);
    nl_decoder_free(s.decoder);
    ZSTD_freeDStream(s.unpacker);
    free(s.unpacked);
    return good && piece->end > from;
}

bool time_scan(int fd, uint64_t from, uint64_t minimum, uint64_t limit, nl_time_piece *piece)
{
    return time_scan_records(fd, from, minimum, limit, piece, NULL, NULL);
}
