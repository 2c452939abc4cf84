#include "config.h"

#include "archive/cut.h"

#include <string.h>

/* Offsets and limits of a block header (doc/binary-format.md), in bytes. */
enum { MAGIC_SIZE = 4, HEADER_SIZE_AT = 4, STORED_SIZE_AT = 12, HEADER_MIN = 96, STORED_MAX = 16 << 20 };
static const char magic[MAGIC_SIZE] = {'N', 'L', 'B', '1'};

/* Returns the size in bytes of the block at `at`, or 0 if the block is incomplete. Sets *none to whether no valid block
 * begins at `at`. */
static size_t block_size(const unsigned char *at, size_t left, int *none)
{
    *none = memcmp(at, magic, left < MAGIC_SIZE ? left : MAGIC_SIZE) != 0;
    if (*none || left < HEADER_MIN)
        return 0;
    size_t header = at[HEADER_SIZE_AT] | (size_t)at[HEADER_SIZE_AT + 1] << 8;
    const unsigned char *stored_at = at + STORED_SIZE_AT;
    size_t stored = stored_at[0] | (size_t)stored_at[1] << 8 | (size_t)stored_at[2] << 16 | (size_t)stored_at[3] << 24;
    *none = header < HEADER_MIN || stored > STORED_MAX;
    return !*none && header + stored <= left ? header + stored : 0;
}

/*
 * Returns the size in bytes of the complete lines at `at`, and adds their number to *lines. If a NUL byte shows that
 * blocks may follow, counts only the next line.
 */
static size_t lines_size(const char *at, size_t left, uint64_t *lines)
{
    const char *nul = memchr(at, '\0', left), *newline;
    if (nul == NULL) {
        newline = memrchr(at, '\n', left);
        for (const char *line = at; newline != NULL && line <= newline; line = (char *)memchr(line, '\n', left) + 1)
            ++*lines;
    } else {
        newline = memchr(at, '\n', left);
        *lines += newline != NULL;
    }
    return newline != NULL ? (size_t)(newline + 1 - at) : 0;
}

size_t cut_whole(const char *data, size_t size, uint64_t *lines)
{
    size_t at = 0, step = 1;
    for (; at < size && step > 0; at += step) {
        int none;
        step = block_size((const unsigned char *)data + at, size - at, &none);
        if (none)
            step = lines_size(data + at, size - at, lines);
    }
    return at;
}
