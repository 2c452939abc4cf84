#include "config.h"

#include "model/text_file.h"

#include "record/zstd_magic.h"
#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DETECT_SIZE = 256 << 10, LINE_GUESS = 4 << 10, LINE_MOST = 2 << 20, PIECE = 1 << 20 };

ssize_t text_read_at(int fd, char *to, size_t size, uint64_t offset)
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

/* The text format of what begins so; NL_FORMAT_UNKNOWN when it is none, or cannot be told. */
static nl_format detect(const char *data, size_t size, nl_fraction fraction)
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
    if (status == NL_OK && (record->raw_format == NL_FORMAT_ULM || record->raw_format == NL_FORMAT_BP))
        format = record->raw_format;
    nl_decoder_free(decoder);
    return format;
}

bool text_file_open(text_file *t, const char *path, nl_fraction fraction)
{
    struct stat status;
    *t = (text_file){.fd = -1, .fraction = fraction};
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) /* opening a pipe would be noticed */
        t->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (t->fd < 0)
        return false;
    char *start = malloc(DETECT_SIZE);
    if (start != NULL && fstat(t->fd, &status) == 0 && S_ISREG(status.st_mode)) {
        size_t size = (size_t)text_read_at(t->fd, start, DETECT_SIZE, 0);
        if (!nl_zstd_begins(start, size) && memchr(start, '\0', size) == NULL)
            t->format = detect(start, size, fraction);
    }
    free(start);
    if (t->format != NL_FORMAT_UNKNOWN)
        return true;
    text_file_close(t);
    return false;
}

bool text_file_spill(text_file *t)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/nlv.XXXXXX", folder != NULL && *folder != '\0' ? folder : "/var/tmp");
    *t = (text_file){.format = NL_FORMAT_ULM, .is_spill = true};
    t->fd = mkostemp(path, O_CLOEXEC);
    if (t->fd < 0)
        return false;
    unlink(path);
    return true;
}

void text_file_close(text_file *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

bool text_file_write(text_file *t, const nl_buffer *lines)
{
    size_t done = 0;
    while (done < lines->size) {
        ssize_t put = pwrite(t->fd, lines->data + done, lines->size - done, (off_t)(t->size + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        done += (size_t)put;
    }
    t->size += lines->size;
    return true;
}

void text_file_forget(text_file *t, uint64_t offset)
{
    offset -= offset % 4096;
    if (t->is_spill && offset > t->forgotten)
        t->forgotten = offset;
    if (t->is_spill && offset > 0)
        fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)offset);
}

uint64_t text_file_size(const text_file *t)
{
    struct stat status;
    if (t->is_spill)
        return t->size;
    return t->fd >= 0 && fstat(t->fd, &status) == 0 && status.st_size > 0 ? (uint64_t)status.st_size : 0;
}

typedef void take_record(void *user, const nl_record *record);

/* Calls take for the records in data, at most that many. */
static bool decode(const text_file *t, const char *data, size_t size, size_t most, take_record *take, void *user)
{
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.format = t->format, .fraction = t->fraction});
    const nl_record *record;
    size_t count = 0;
    nl_decoder_feed(decoder, data, size);
    while (count < most && nl_decoder_next(decoder, &record) == NL_OK) {
        take(user, record);
        count++;
    }
    if (count == 0) {
        nl_decoder_finish(decoder); /* the last line may have no end */
        while (count < most && nl_decoder_next(decoder, &record) == NL_OK) {
            take(user, record);
            count++;
        }
    }
    nl_decoder_free(decoder);
    return count > 0;
}

bool text_file_record(const text_file *t, uint64_t offset, take_record *take, void *user)
{
    bool good = false;
    char *line = NULL;
    for (size_t size = LINE_GUESS; size <= LINE_MOST; size *= 8) {
        char *more = realloc(line, size);
        if (more == NULL)
            break;
        line = more;
        size_t got = (size_t)text_read_at(t->fd, line, size, offset);
        const char *newline = memchr(line, '\n', got);
        if (newline == NULL && got == size && size * 8 <= LINE_MOST)
            continue;
        good = got > 0 && decode(t, line, newline != NULL ? (size_t)(newline + 1 - line) : got, 1, take, user);
        break;
    }
    free(line);
    return good;
}

void text_file_each(const text_file *t, uint64_t to, take_record *take, bool (*go_on)(void *user, uint64_t at),
                    void *user)
{
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.format = t->format, .fraction = t->fraction});
    const nl_record *record;
    char *data = malloc(PIECE);
    uint64_t at = t->forgotten;
    bool is_inside = at > 0; /* of a line whose begin is gone */
    while (data != NULL && at < to && go_on(user, at)) {
        size_t wanted = to - at < PIECE ? (size_t)(to - at) : PIECE,
               got = (size_t)text_read_at(t->fd, data, wanted, at);
        const char *newline = is_inside ? memchr(data, '\n', got) : NULL;
        size_t begin = !is_inside ? 0 : newline != NULL ? (size_t)(newline + 1 - data) : got;
        is_inside = is_inside && newline == NULL;
        nl_decoder_feed(decoder, data + begin, got - begin);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            take(user, record);
        at += got;
        if (got < wanted)
            break;
    }
    nl_decoder_free(decoder);
    free(data);
}

void text_file_sample(const text_file *t, uint64_t offset, size_t size, take_record *take, void *user)
{
    char *data = malloc(size);
    if (data == NULL)
        return;
    size_t got = (size_t)text_read_at(t->fd, data, size, offset);
    const char *begin = data, *end = data + got;
    if (offset > 0) {
        const char *newline = memchr(data, '\n', got);
        begin = newline != NULL ? newline + 1 : end;
    }
    const char *last = got == size ? memrchr(begin, '\n', (size_t)(end - begin)) : NULL;
    if (last != NULL)
        end = last + 1;
    if (begin < end)
        decode(t, begin, (size_t)(end - begin), SIZE_MAX, take, user);
    free(data);
}
