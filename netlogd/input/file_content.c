#include "config.h"

#include "input/file_content.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/hash_bytes.h"
#include "base/memory.h"
#include "program/gzip.h"
#include "program/program.h"
#include "record/zstd_magic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC_SIZE = 4 };

struct file_content {
    int fd;
    char *path;
    bool known; /* `packed` is known */
    bool packed;
    nl_source *source; /* decompresses packed content; NULL before the first read */
    uint64_t at;       /* offset of `data` */
    const char *data;  /* bytes from the source that have not been returned yet */
    size_t size;
    nl_buffer kept;            /* the bytes before `at`, from the offset of the latest read */
    char head[FILE_MARK_SIZE]; /* the first bytes of packed content, for file_content_has and read_next */
    size_t head_size;
};

uint64_t file_mark_hash(const char *data, size_t size)
{
    return hash_bytes(0, data, size);
}

file_content *file_content_open(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        nl_error_set_errno("open %s", path);
        return NULL;
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        nl_error_set(NL_ERROR_UNSUPPORTED, "%s: not a regular file", path);
        close(fd);
        return NULL;
    }
    file_content *c = nl_memory_check(calloc(1, sizeof *c));
    c->fd = fd;
    c->path = program_copy(path);
    return c;
}

void file_content_close(file_content *c)
{
    if (c == NULL)
        return;
    nl_source_close(c->source);
    nl_buffer_free(&c->kept);
    close(c->fd);
    free(c->path);
    free(c);
}

int file_content_descriptor(const file_content *c)
{
    return c->fd;
}

bool file_content_is_packed(file_content *c)
{
    char magic[MAGIC_SIZE];
    if (!c->known && pread(c->fd, magic, MAGIC_SIZE, 0) == MAGIC_SIZE) {
        c->known = true;
        c->packed = gzip_begins(magic, MAGIC_SIZE) || nl_zstd_may_begin(magic, MAGIC_SIZE);
    }
    return c->packed;
}

/*
 * Begins to decompress the content from its start if the offset is before the kept bytes. On failure, sets the error
 * and returns false.
 */
static bool rewind_packed(file_content *c, uint64_t offset)
{
    char name[40];
    if (c->source != NULL && c->at - c->kept.size <= offset)
        return true;
    nl_source_close(c->source);
    snprintf(name, sizeof name, "/proc/self/fd/%d", c->fd); /* the file may have been renamed or removed */
    c->source = program_source_open_stored(name);
    c->at = c->size = c->kept.size = 0;
    return c->source != NULL;
}

/* Passes up to `size` bytes of `data`, and appends them to the kept bytes if `keep` is true. */
static void pass_packed(file_content *c, uint64_t size, bool keep)
{
    size_t part = c->size < size ? c->size : (size_t)size;
    if (keep) {
        memcpy(c->kept.data + c->kept.size, c->data, part);
        c->kept.size += part;
    }
    c->at += part;
    c->data += part;
    c->size -= part;
}

/*
 * Reads packed content, and keeps the bytes that it returns, because netlogd reads some of these bytes again with the
 * next piece. Without the kept bytes, the module would have to decompress the content from its start.
 */
static ssize_t read_packed(file_content *c, uint64_t offset, char *data, size_t size)
{
    if (offset + size <= c->head_size) {
        memcpy(data, c->head + offset, size);
        return (ssize_t)size;
    }
    if (!rewind_packed(c, offset))
        return -1;
    uint64_t passed = offset - (c->at - c->kept.size);
    size_t unused = passed < c->kept.size ? (size_t)passed : c->kept.size;
    c->kept.size -= unused;
    nl_memory_check(nl_buffer_reserve(&c->kept, size) ? c : NULL);
    memmove(c->kept.data, c->kept.data + unused, c->kept.size);
    while (c->kept.size < size) {
        if (c->size > 0) {
            bool before = c->at < offset;
            pass_packed(c, before ? offset - c->at : size - c->kept.size, !before);
            continue;
        }
        nl_status status = nl_source_read(c->source, &c->data, &c->size);
        if (status == NL_OK)
            continue;
        c->size = 0;
        if (status == NL_END)
            break;
        nl_source_close(c->source);
        c->source = NULL;
        return -1;
    }
    size_t done = c->kept.size < size ? c->kept.size : size;
    memcpy(data, c->kept.data, done);
    if (offset == 0) {
        c->head_size = file_mark_size(done);
        memcpy(c->head, data, c->head_size);
    }
    return (ssize_t)done;
}

ssize_t file_content_read(file_content *c, uint64_t offset, char *data, size_t size)
{
    if (file_content_is_packed(c))
        return read_packed(c, offset, data, size);
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(c->fd, data + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            nl_error_set_errno("read %s", c->path);
            return -1;
        }
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

bool file_content_has(file_content *c, const file_place *place)
{
    char mark[FILE_MARK_SIZE];
    size_t size = file_mark_size(place->offset);
    return size == 0 ||
           (file_content_read(c, 0, mark, size) == (ssize_t)size && file_mark_hash(mark, size) == place->head &&
            file_content_read(c, place->offset - size, mark, size) == (ssize_t)size &&
            file_mark_hash(mark, size) == place->tail);
}
