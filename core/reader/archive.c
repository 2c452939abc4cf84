#include "config.h"

#include "base/error.h"
#include "record/block_read.h"
#include "record/zstd_magic.h"
#include "reader/archive.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* Returns the first valid block at or after a position, or NULL. */
static const char *next_block(const char *at, const char *end)
{
    nl_block_header header;
    for (; at < end && (at = memmem(at, (size_t)(end - at), NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE)) != NULL; at++)
        if (nl_block_whole_size(at, (size_t)(end - at), &header) > 0 && nl_block_verify(&header, at) == NL_OK)
            return at;
    return NULL;
}

/*
 * Returns whether [at, end), which ends a file, is a truncated block or damage from a system crash. Otherwise, these
 * bytes are appended text.
 */
static bool is_rest_of_block(const char *at, const char *end)
{
    size_t size = (size_t)(end - at), seen = size < NL_BLOCK_MAGIC_SIZE ? size : NL_BLOCK_MAGIC_SIZE;
    return memcmp(at, NL_BLOCK_MAGIC, seen) == 0 || memchr(at, '\0', size) != NULL;
}

static const char *end_of_blocks(const char *at, const char *end)
{
    const char *last = NULL; /* a block whose checksum is not verified yet */
    nl_block_header header;
    while (at < end) {
        size_t size = nl_block_whole_size(at, (size_t)(end - at), &header);
        if (size > 0) {
            last = at;
            at += size;
            continue;
        }
        const char *next = next_block(at + 1, end);
        if (next == NULL)
            break;
        at = next;
    }
    if (at < end)
        return is_rest_of_block(at, end) ? at : end;
    bool sound = last == NULL || (nl_block_parse_header(last, (size_t)(end - last), &header) == NL_OK &&
                                  nl_block_verify(&header, last) == NL_OK);
    return sound ? end : last;
}

static const char *end_of_frames(const char *at, const char *end)
{
    while (at < end) {
        size_t size = ZSTD_findFrameCompressedSize(at, (size_t)(end - at));
        if (ZSTD_isError(size))
            break;
        at += size;
    }
    return at;
}

/*
 * Returns the end of the last whole line. Returns `end` if the text contains a block: a block may contain newlines, so
 * the last newline need not be the end of a line.
 */
static const char *end_of_text(const char *at, const char *end)
{
    size_t size = (size_t)(end - at);
    if (end[-1] == '\n' || memmem(at, size, NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE) != NULL)
        return end;
    const char *newline = memrchr(at, '\n', size);
    return newline != NULL ? newline + 1 : at;
}

static size_t whole_of(const char *data, size_t size)
{
    const char *end = data + size, *whole;
    if (nl_zstd_begins(data, size))
        whole = end_of_frames(data, end);
    else if (memcmp(data, NL_BLOCK_MAGIC, size < NL_BLOCK_MAGIC_SIZE ? size : NL_BLOCK_MAGIC_SIZE) == 0)
        whole = end_of_blocks(data, end);
    else
        whole = end_of_text(data, end);
    return (size_t)(whole - data);
}

static nl_status archive_look(int fd, uint64_t *size, uint64_t *whole)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return NL_FAILED;
    *size = *whole = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    if (*size == 0)
        return NL_OK;
    void *data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return NL_FAILED;
    *whole = whole_of(data, *size);
    munmap(data, *size);
    return NL_OK;
}

nl_status nl_archive_find_end(const char *path, uint64_t *size, uint64_t *whole)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    nl_status status = fd >= 0 ? archive_look(fd, size, whole) : NL_FAILED;
    if (status != NL_OK)
        nl_error_set_errno("read %s", path);
    if (fd >= 0)
        close(fd);
    return status;
}
