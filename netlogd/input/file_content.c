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

enum { MAGIC_SIZE = 4 };

struct file_content {
    int fd;
    char *path;
    bool known; /* `packed` is known */
    bool packed;
    nl_source *source; /* of packed content; NULL before the first read */
    uint64_t at;       /* offset of `data` */
    const char *data;  /* bytes from the source that were not returned yet */
    size_t size;
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
 * Opens the compressed content at its beginning if it is not open, or has been read beyond the offset. Returns false on
 * failure.
 */
static bool rewind_packed(file_content *c, uint64_t offset)
{
    char name[40];
    if (c->source != NULL && c->at <= offset)
        return true;
    nl_source_close(c->source);
    snprintf(name, sizeof name, "/proc/self/fd/%d", c->fd); /* the file may have been renamed or removed */
    c->source = program_source_open_stored(name);
    c->at = c->size = 0;
    return c->source != NULL;
}

static ssize_t read_packed(file_content *c, uint64_t offset, char *data, size_t size)
{
    size_t done = 0;
    if (!rewind_packed(c, offset))
        return -1;
    while (done < size) {
        uint64_t skip = offset > c->at ? offset - c->at : 0;
        if (skip >= c->size) {
            c->at += c->size;
            c->size = 0;
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
        size_t part = c->size - skip < size - done ? c->size - (size_t)skip : size - done;
        memcpy(data + done, c->data + skip, part);
        done += part;
        offset += part;
        c->at += skip + part;
        c->data += skip + part;
        c->size -= skip + part;
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
