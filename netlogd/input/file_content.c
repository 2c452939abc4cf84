#include "config.h"

#include "input/file_content.h"

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

enum {
    MAGIC_SIZE = 4,
    KEPT_SIZE =
        128 << 10, /* number of decompressed bytes that can be read again without decompressing from the start */
};

struct file_content {
    int fd;
    char *path;
    bool known; /* `packed` is known */
    bool packed;
    nl_source *source; /* of packed content; NULL before the first read */
    uint64_t at;       /* offset of `data` */
    const char *data;  /* bytes from the source that were not returned yet */
    size_t size;
    char *kept; /* the bytes before `at`, at most 2 * KEPT_SIZE; NULL before the first read of packed content */
    size_t kept_size;
    char head[FILE_MARK_SIZE]; /* the first bytes of packed content */
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
    close(c->fd);
    free(c->kept);
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
 * Begins to decompress the content from its start if the bytes at the offset are before the kept bytes. Returns false
 * after setting the error.
 */
static bool rewind_packed(file_content *c, uint64_t offset)
{
    char name[40];
    if (c->source != NULL && c->at - c->kept_size <= offset)
        return true;
    nl_source_close(c->source);
    snprintf(name, sizeof name, "/proc/self/fd/%d", c->fd); /* the file may have been renamed or removed */
    c->source = program_source_open_stored(name);
    c->at = c->size = c->kept_size = c->head_size = 0;
    return c->source != NULL;
}

/* Moves past `size` bytes from the source, and keeps them. */
static void pass_packed(file_content *c, size_t size)
{
    size_t part = size < KEPT_SIZE ? size : KEPT_SIZE;
    if (c->at == c->head_size && c->head_size < FILE_MARK_SIZE) {
        size_t more = size < FILE_MARK_SIZE - c->head_size ? size : FILE_MARK_SIZE - c->head_size;
        memcpy(c->head + c->head_size, c->data, more);
        c->head_size += more;
    }
    if (c->kept == NULL)
        c->kept = nl_memory_check(malloc((size_t)2 * KEPT_SIZE));
    if (c->kept_size + part > (size_t)2 * KEPT_SIZE || part < size) {
        size_t stay = part < size ? 0 : c->kept_size < KEPT_SIZE ? c->kept_size : KEPT_SIZE;
        memmove(c->kept, c->kept + c->kept_size - stay, stay);
        c->kept_size = stay;
    }
    memcpy(c->kept + c->kept_size, c->data + size - part, part);
    c->kept_size += part;
    c->at += size;
    c->data += size;
    c->size -= size;
}

static ssize_t read_packed(file_content *c, uint64_t offset, char *data, size_t size)
{
    size_t done = 0;
    if (c->source != NULL && offset + size <= c->head_size) {
        memcpy(data, c->head + offset, size);
        return (ssize_t)size;
    }
    if (!rewind_packed(c, offset))
        return -1;
    if (offset < c->at) {
        size_t before = (size_t)(c->at - offset);
        done = before < size ? before : size;
        memcpy(data, c->kept + c->kept_size - before, done);
    }
    while (done < size) {
        if (c->size == 0) {
            nl_status status = nl_source_read(c->source, &c->data, &c->size);
            if (status == NL_OK)
                continue;
            c->size = 0;
            if (status == NL_END)
                return (ssize_t)done;
            nl_source_close(c->source);
            c->source = NULL;
            return -1;
        }
        uint64_t skip = offset > c->at ? offset - c->at : 0;
        if (skip > 0) {
            pass_packed(c, skip < c->size ? (size_t)skip : c->size);
            continue;
        }
        size_t part = c->size < size - done ? c->size : size - done;
        memcpy(data + done, c->data, part);
        done += part;
        pass_packed(c, part);
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
