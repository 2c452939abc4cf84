#include "config.h"

#include "model/log_file.h"

#include "program/program.h"
#include "program/temporary_file.h"
#include "record/format.h"
#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DETECT_SIZE = 256 << 10,
    HEAD_SIZE = 64 << 10,
    LINE_GUESS = 4 << 10,
    LINE_SIZE_MAX = 2 << 20,
    PIECE_SIZE = 1 << 20,
    SAMPLE_PIECE_SIZE = 64 << 10,
    TEXT_RECORD_SIZE = 128,   /* typical size of a line in bytes */
    SAMPLE_EXPANSION_MAX = 8, /* maximum size of a sample in memory, divided by the requested number of bytes */
    OPEN_BLOCKS = 16, /* maximum number of open blocks; in a collector's log, the blocks of many producers alternate */
    OPEN_BLOCK_SIZE_MAX = 1 << 20, /* maximum size in bytes of a block that stays open */
};

ssize_t log_file_read_at(int fd, char *to, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, to + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* ---- opening ---- */

/* Returns the format of a text log that begins with these bytes; NL_FORMAT_UNKNOWN if they are not text. */
static nl_format detect_text(const char *data, size_t size, nl_fraction fraction)
{
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.fraction = fraction});
    const nl_record *record;
    nl_format format = NL_FORMAT_UNKNOWN;
    nl_decoder_feed(decoder, data, size);
    nl_status status = nl_decoder_next(decoder, &record);
    if (status == NL_AGAIN) {
        nl_decoder_finish(decoder);
        status = nl_decoder_next(decoder, &record);
    }
    if (status == NL_OK && nl_format_is_text(record->raw_format))
        format = record->raw_format;
    nl_decoder_free(decoder);
    return format;
}

/* Detects the format from the first bytes. `complete` is true if there are no further bytes. */
static void detect_format(log_file *f, bool complete)
{
    char *start = g_malloc(DETECT_SIZE);
    size_t size = (size_t)log_file_read_at(f->fd, start, DETECT_SIZE, 0);
    bool has_nul = memchr(start, '\0', size) != NULL, is_cut = memchr(start, '\n', size) == NULL && !complete;
    if (!has_nul && size > 0)
        f->format = detect_text(start, size, f->fraction);
    if (f->format == NL_FORMAT_UNKNOWN && size > 0 && (has_nul || size == DETECT_SIZE || !is_cut))
        f->format = NL_FORMAT_NLB;
    g_free(start);
}

static log_file *log_file_new(int fd, nl_fraction fraction)
{
    log_file *f = g_new0(log_file, 1);
    f->fd = fd;
    f->fraction = fraction;
    f->blocks = g_array_new(FALSE, FALSE, sizeof(log_block));
    return f;
}

log_file *log_file_open(const char *path, const program_reading *reading)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) /* opening a pipe would disturb its writer */
        return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    log_file *f = log_file_new(fd, reading->fraction);
    char *head = g_malloc(HEAD_SIZE);
    bool in_place = program_is_read_in_place(reading, head, (size_t)log_file_read_at(fd, head, HEAD_SIZE, 0));
    if (in_place)
        f->format = reading->format;
    if (in_place && f->format == NL_FORMAT_UNKNOWN)
        detect_format(f, false);
    g_free(head);
    if (f->format != NL_FORMAT_UNKNOWN)
        return f;
    log_file_free(f);
    return NULL;
}

log_file *log_file_spill(nl_fraction fraction)
{
    int fd = temporary_file_open(NULL);
    if (fd < 0)
        return NULL;
    log_file *f = log_file_new(fd, fraction);
    f->is_spill = true;
    return f;
}

bool log_file_append(log_file *f, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = pwrite(f->fd, data + done, size - done, (off_t)(f->size + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        done += (size_t)put;
    }
    f->size += size;
    if (f->format == NL_FORMAT_UNKNOWN)
        detect_format(f, false);
    return true;
}

void log_file_complete(log_file *f)
{
    if (f->format == NL_FORMAT_UNKNOWN)
        detect_format(f, true);
}

void log_file_forget(log_file *f, uint64_t position)
{
    uint64_t offset = position;
    if (!f->is_spill) /* do not free the blocks of a log, because nlv may read the log again for another filter */
        return;
    if (f->format == NL_FORMAT_NLB) {
        while (f->first_block < f->blocks->len) {
            const log_block *b = &g_array_index(f->blocks, log_block, f->first_block);
            if (b->first + b->count > position)
                break;
            f->first_block++;
        }
        offset = f->first_block < f->blocks->len ? g_array_index(f->blocks, log_block, f->first_block).offset : 0;
    }
    if (offset <= f->forgotten)
        return;
    f->forgotten = offset;
    fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)(offset - offset % 4096));
}

uint64_t log_file_size(const log_file *f)
{
    struct stat status;
    if (f->is_spill)
        return f->size;
    return fstat(f->fd, &status) == 0 && status.st_size > 0 ? (uint64_t)status.st_size : 0;
}

/* Returns a decoder for bytes that nlv has read before. This decoder reports no problems again. */
static nl_decoder *log_file_decoder(const log_file *f)
{
    return nl_decoder_new(&(nl_decoder_options){.format = f->format == NL_FORMAT_NLB ? NL_FORMAT_UNKNOWN : f->format,
                                                .fraction = f->fraction});
}

/* ---- blocks ---- */

void log_file_add_blocks(log_file *f, const GArray *blocks)
{
    if (f->first_block > f->blocks->len / 2) {
        g_array_remove_range(f->blocks, 0, f->first_block);
        f->first_block = 0;
    }
    g_array_append_vals(f->blocks, blocks->data, blocks->len);
}

uint64_t log_file_record_count(const log_file *f)
{
    if (f->blocks->len == 0)
        return 0;
    const log_block *last = &g_array_index(f->blocks, log_block, f->blocks->len - 1);
    return last->first + last->count;
}

guint log_file_find_block(const log_file *f, uint64_t offset)
{
    guint low = f->first_block, high = f->blocks->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        const log_block *b = &g_array_index(f->blocks, log_block, middle);
        if (b->offset + b->size <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const log_block *block_of_position(const log_file *f, uint64_t position)
{
    guint low = f->first_block, high = f->blocks->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        const log_block *b = &g_array_index(f->blocks, log_block, middle);
        if (b->first + b->count <= position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == f->blocks->len || g_array_index(f->blocks, log_block, low).first > position)
        return NULL;
    return &g_array_index(f->blocks, log_block, low);
}

/* Gets the next record from a decoder that has received all bytes. The last line need not end with a newline. Returns
 * false if there is no further record. */
static bool next_of_all(nl_decoder *decoder, const nl_record **record)
{
    nl_status status = nl_decoder_next(decoder, record);
    if (status == NL_AGAIN && nl_decoder_is_midway(decoder)) {
        nl_decoder_finish(decoder);
        status = nl_decoder_next(decoder, record);
    }
    return status == NL_OK;
}

bool log_block_decode(const log_block *b, const log_file *f, nl_decoder **decoder, const char *bytes,
                      log_block_take *take, void *user)
{
    const nl_record *record;
    if (*decoder == NULL)
        *decoder = log_file_decoder(f);
    uint64_t malformed = nl_decoder_get_stats(*decoder)->malformed, i = 0;
    nl_decoder_feed(*decoder, bytes, b->size);
    for (; next_of_all(*decoder, &record); i++)
        if (i >= b->skip && i - b->skip < b->count)
            take(user, record, b->first + i - b->skip);
    bool good = nl_decoder_get_stats(*decoder)->malformed == malformed && i >= (uint64_t)b->skip + b->count;
    if (good && nl_decoder_next(*decoder, &record) == NL_AGAIN)
        return true;
    nl_decoder_free(*decoder); /* the decoder is at the end or at damaged bytes */
    *decoder = NULL;
    return good;
}

/*
 * A block from which nlv fetches records. The decoder continues after the latest record that was fetched. Several
 * blocks stay open, because nlv usually fetches records in order of time, and this order alternates between the blocks
 * of several producers.
 */
typedef struct log_file_open_block {
    uint64_t offset;
    nl_decoder *decoder; /* NULL: unused */
    char *bytes;
    uint64_t next; /* position of the decoder's next record */
    uint64_t used; /* the value of log_file.uses at the last use */
} open_block;

static void close_block(open_block *o)
{
    nl_decoder_free(o->decoder);
    g_free(o->bytes);
    *o = (open_block){0};
}

static bool begin_block(const log_file *f, const log_block *b, open_block *o)
{
    const nl_record *record;
    close_block(o);
    o->bytes = g_malloc(b->size + 64);
    o->offset = b->offset;
    o->next = b->first;
    o->decoder = log_file_decoder(f);
    if (log_file_read_at(f->fd, o->bytes, b->size, b->offset) != (ssize_t)b->size)
        return false;
    nl_decoder_feed(o->decoder, o->bytes, b->size);
    for (uint32_t i = 0; i < b->skip; i++)
        if (!next_of_all(o->decoder, &record))
            return false;
    return true;
}

/* Returns the open block for a position. If necessary, opens it in place of the least recently used block. */
static open_block *open_block_for(log_file *f, const log_block *b, uint64_t position)
{
    if (f->open_blocks == NULL)
        f->open_blocks = g_new0(open_block, OPEN_BLOCKS);
    open_block *oldest = f->open_blocks;
    for (unsigned i = 0; i < OPEN_BLOCKS; i++) {
        open_block *o = &f->open_blocks[i];
        if (o->decoder != NULL && o->offset == b->offset && o->next <= position)
            return o;
        if (o->used < oldest->used)
            oldest = o;
    }
    if (begin_block(f, b, oldest))
        return oldest;
    close_block(oldest);
    return NULL;
}

static bool take_from_block(log_file *f, uint64_t position, log_file_take *take, void *user)
{
    const log_block *b = block_of_position(f, position);
    open_block *o = b != NULL ? open_block_for(f, b, position) : NULL;
    const nl_record *record = NULL;
    bool good = o != NULL;
    while (good && o->next <= position) {
        good = next_of_all(o->decoder, &record);
        o->next++;
    }
    if (good)
        take(user, record);
    if (o == NULL)
        return false;
    o->used = ++f->uses;
    if (!good || b->size > OPEN_BLOCK_SIZE_MAX)
        close_block(o);
    return good;
}

void log_file_free(log_file *f)
{
    if (f == NULL)
        return;
    for (unsigned i = 0; f->open_blocks != NULL && i < OPEN_BLOCKS; i++)
        close_block(&f->open_blocks[i]);
    g_free(f->open_blocks);
    g_array_free(f->blocks, TRUE);
    close(f->fd);
    g_free(f);
}

/* ---- records ---- */

/* Calls `take` for at most `max` records in `data`. Returns whether there was a record. */
static bool log_file_decode(const log_file *f, const char *data, size_t size, size_t max, log_file_take *take,
                            void *user)
{
    nl_decoder *decoder = log_file_decoder(f);
    const nl_record *record;
    size_t count = 0;
    nl_decoder_feed(decoder, data, size);
    while (count < max && nl_decoder_next(decoder, &record) == NL_OK) {
        take(user, record);
        count++;
    }
    if (count == 0) {
        nl_decoder_finish(decoder); /* finds a last line without a newline */
        while (count < max && nl_decoder_next(decoder, &record) == NL_OK) {
            take(user, record);
            count++;
        }
    }
    nl_decoder_free(decoder);
    return count > 0;
}

static bool take_from_line(const log_file *f, uint64_t offset, log_file_take *take, void *user)
{
    bool good = false;
    char *line = NULL;
    for (size_t size = LINE_GUESS; size <= LINE_SIZE_MAX; size *= 8) {
        line = g_realloc(line, size);
        size_t got = (size_t)log_file_read_at(f->fd, line, size, offset);
        const char *newline = memchr(line, '\n', got);
        if (newline == NULL && got == size && size * 8 <= LINE_SIZE_MAX)
            continue;
        good = got > 0 && log_file_decode(f, line, newline != NULL ? (size_t)(newline + 1 - line) : got, 1, take, user);
        break;
    }
    g_free(line);
    return good;
}

bool log_file_record(log_file *f, uint64_t position, log_file_take *take, void *user)
{
    return f->format == NL_FORMAT_NLB ? take_from_block(f, position, take, user)
                                      : take_from_line(f, position, take, user);
}

typedef struct each_record {
    log_file_take *take;
    void *user;
} each_record;

static void take_each(void *user, const nl_record *record, uint64_t position)
{
    (void)position;
    const each_record *e = user;
    e->take(e->user, record);
}

static void each_in_blocks(const log_file *f, log_file_take *take, bool (*go_on)(void *user, uint64_t offset),
                           void *user)
{
    nl_buffer bytes = {0};
    nl_decoder *decoder = NULL;
    for (guint i = f->first_block; i < f->blocks->len; i++) {
        const log_block *b = &g_array_index(f->blocks, log_block, i);
        if (b->offset >= f->scanned || !go_on(user, b->offset))
            break;
        bytes.size = 0;
        nl_buffer_reserve(&bytes, b->size + 64);
        if (log_file_read_at(f->fd, bytes.data, b->size, b->offset) != (ssize_t)b->size)
            break;
        log_block_decode(b, f, &decoder, bytes.data, take_each, &(each_record){take, user});
    }
    nl_decoder_free(decoder);
    nl_buffer_free(&bytes);
}

static void each_in_text(const log_file *f, log_file_take *take, bool (*go_on)(void *user, uint64_t offset), void *user)
{
    nl_decoder *decoder = log_file_decoder(f);
    const nl_record *record;
    char *data = g_malloc(PIECE_SIZE);
    for (uint64_t at = f->forgotten; at < f->scanned && go_on(user, at);) {
        size_t wanted = (size_t)MIN(f->scanned - at, PIECE_SIZE),
               got = (size_t)log_file_read_at(f->fd, data, wanted, at);
        nl_decoder_feed(decoder, data, got);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            take(user, record);
        at += got;
        if (got < wanted)
            break;
    }
    nl_decoder_free(decoder);
    g_free(data);
}

void log_file_each(const log_file *f, log_file_take *take, bool (*go_on)(void *user, uint64_t offset), void *user)
{
    (f->format == NL_FORMAT_NLB ? each_in_blocks : each_in_text)(f, take, go_on, user);
}

/* Returns the approximate size of a record in memory, in bytes. These sizes limit a sample, because a small block may
 * contain large records. */
static size_t record_size(const nl_record *record)
{
    size_t size = TEXT_RECORD_SIZE;
    for (size_t i = 0; i < record->field_count; i++)
        size += sizeof(nl_field) + (record->fields[i].type == NL_TYPE_STRING ? record->fields[i].string.size : 0);
    return size;
}

/* Calls `take` for records in blocks from an offset. The decoder finds the first complete block after the offset. */
static void sample_blocks(const log_file *f, uint64_t offset, size_t size, log_file_take *take, void *user)
{
    size_t count = size / TEXT_RECORD_SIZE, left = SAMPLE_EXPANSION_MAX * size;
    nl_decoder *decoder = nl_decoder_new(
        &(nl_decoder_options){.format = offset > 0 ? NL_FORMAT_NLB : NL_FORMAT_UNKNOWN, .fraction = f->fraction});
    const nl_record *record;
    char *data = g_malloc(SAMPLE_PIECE_SIZE);
    while (count > 0 && left > 0) {
        size_t got = (size_t)log_file_read_at(f->fd, data, SAMPLE_PIECE_SIZE, offset);
        if (got == 0)
            break;
        offset += got;
        nl_decoder_feed(decoder, data, got);
        for (; count > 0 && left > 0 && nl_decoder_next(decoder, &record) == NL_OK; count--) {
            left -= MIN(left, record_size(record));
            take(user, record);
        }
    }
    nl_decoder_free(decoder);
    g_free(data);
}

static void sample_text(const log_file *f, uint64_t offset, size_t size, log_file_take *take, void *user)
{
    char *data = g_malloc(size);
    size_t got = (size_t)log_file_read_at(f->fd, data, size, offset);
    const char *begin = data, *end = data + got;
    if (offset > 0) {
        const char *newline = memchr(data, '\n', got);
        begin = newline != NULL ? newline + 1 : end;
    }
    const char *last = got == size ? memrchr(begin, '\n', (size_t)(end - begin)) : NULL;
    if (last != NULL)
        end = last + 1;
    if (begin < end)
        log_file_decode(f, begin, (size_t)(end - begin), SIZE_MAX, take, user);
    g_free(data);
}

void log_file_sample(const log_file *f, uint64_t offset, size_t size, log_file_take *take, void *user)
{
    offset = MAX(offset, f->forgotten);
    if (f->format == NL_FORMAT_NLB)
        sample_blocks(f, offset, size, take, user);
    else
        sample_text(f, offset, size, take, user);
}
