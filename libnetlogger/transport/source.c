#include "config.h"

#include "transport/source.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum {
    READ_SIZE = 256 << 10,
    MAGIC_SIZE = 4,
    FOLLOW_INTERVAL_MS = 50, /* how often a growing file is looked at */
};

typedef enum packing { PACKING_UNKNOWN, PACKING_NONE, PACKING_ZSTD } packing;

struct nl_source {
    char *path; /* of a file; NULL for standard input and memory */
    int fd;     /* -1: memory, or a followed file that is not there */
    bool is_file;
    bool follow;
    bool nonblocking;
    bool replaced;
    uint64_t size;
    uint64_t position;

    nl_buffer input; /* bytes as stored: input.data[used..input.size) are not handed out yet */
    size_t used;
    bool at_end; /* of the file as it is now */

    packing packing;
    ZSTD_DStream *unpacker;
    bool frame_open; /* inside a zstd frame */
    char *unpacked;
};

static nl_status open_file(nl_source *source)
{
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (source->fd < 0)
        return nl_error_set_errno("open %s", source->path);
    struct stat status;
    if (fstat(source->fd, &status) != 0)
        return nl_error_set_errno("open %s", source->path);
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return nl_error_set_errno("open %s", source->path);
    }
    source->is_file = S_ISREG(status.st_mode);
    source->size = source->is_file ? (uint64_t)status.st_size : 0;
    source->position = 0;
#ifdef POSIX_FADV_SEQUENTIAL
    if (source->is_file)
        posix_fadvise(source->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
    return NL_OK;
}

static nl_status open_memory(nl_source *source, const char *name)
{
    if (!nl_memory_read(name, &source->input))
        return nl_error_set("open memory:%s: nothing was written there", name);
    source->at_end = true;
    source->size = source->input.size;
    return NL_OK;
}

static nl_status open_named(nl_source *source, const nl_url *url)
{
    switch (url->scheme) {
    case NL_SCHEME_STDIO:
        source->fd = STDIN_FILENO;
        return NL_OK;
    case NL_SCHEME_FILE: {
        source->path = strdup(url->path);
        NL_REQUIRE(source->path != NULL, "out of memory");
        nl_status status = open_file(source);
        return status != NL_OK && source->follow && errno == ENOENT ? NL_OK : status;
    }
    case NL_SCHEME_MEMORY:
        return open_memory(source, url->path);
    default:
        return nl_error_set("open %s: records cannot be read from there", url->text);
    }
}

nl_source *nl_source_open(const nl_url *url, bool follow, bool nonblocking)
{
    nl_source *source = calloc(1, sizeof *source);
    NL_REQUIRE(source != NULL, "out of memory");
    source->fd = -1;
    source->follow = follow;
    source->nonblocking = nonblocking;
    if (url->option_count > 0) {
        nl_error_set("open %s: unknown option \"%s\"", url->text, url->options[0].name);
    } else if (open_named(source, url) == NL_OK) {
        return source;
    }
    nl_source_close(source);
    return NULL;
}

void nl_source_close(nl_source *source)
{
    if (source == NULL)
        return;
    if (source->fd > STDERR_FILENO || (source->fd >= 0 && source->path != NULL))
        close(source->fd);
    ZSTD_freeDStream(source->unpacker);
    free(source->unpacked);
    nl_buffer_free(&source->input);
    free(source->path);
    free(source);
}

static const char *name_of(const nl_source *source)
{
    return source->path != NULL ? source->path : "standard input";
}

/* Begins anew with what the name stands for now, or with the same file after it was truncated. */
static nl_status start_over(nl_source *source, bool same_file)
{
    if (same_file) {
        if (lseek(source->fd, 0, SEEK_SET) != 0)
            return nl_error_set_errno("read %s", source->path);
        source->position = 0;
    } else {
        close(source->fd);
        source->fd = -1;
        if (open_file(source) != NL_OK && errno != ENOENT)
            return NL_FAILED;
    }
    source->input.size = source->used = 0;
    source->packing = PACKING_UNKNOWN;
    source->frame_open = false;
    source->replaced = true;
    return NL_END;
}

/* At the end of a followed file: whether its name stands for another file now, or it has shrunk. */
static nl_status look_for_replacement(nl_source *source, bool *grown)
{
    struct stat open_file_status, named;
    *grown = false;
    if (fstat(source->fd, &open_file_status) != 0)
        return nl_error_set_errno("read %s", source->path);
    if ((uint64_t)open_file_status.st_size < source->position)
        return start_over(source, true);
    if (stat(source->path, &named) != 0)
        return NL_AGAIN; /* moved away; perhaps the new one comes */
    if (named.st_dev == open_file_status.st_dev && named.st_ino == open_file_status.st_ino)
        return NL_AGAIN;
    /* The writer may have appended between our last read and the move: only when that is read too does the new one begin. */
    *grown = (uint64_t)open_file_status.st_size > source->position;
    return *grown ? NL_AGAIN : start_over(source, false);
}

static bool would_block(const nl_source *source)
{
    struct pollfd ready = {.fd = source->fd, .events = POLLIN};
    return source->nonblocking && !source->is_file && poll(&ready, 1, 0) == 0;
}

/* Appends stored bytes to the input. NL_OK when there are new ones; at the end NL_END, or as followed files have it. */
static nl_status read_more(nl_source *source)
{
    if (source->at_end)
        return NL_END;
    if (source->fd < 0) {
        nl_status opened = open_file(source);
        if (opened != NL_OK)
            return errno == ENOENT ? NL_AGAIN : NL_FAILED;
    }
    if (would_block(source))
        return NL_AGAIN;
    if (source->used == source->input.size)
        source->used = source->input.size = 0;
    nl_buffer_reserve(&source->input, READ_SIZE);
    for (;;) {
        ssize_t got = read(source->fd, source->input.data + source->input.size, READ_SIZE);
        if (got > 0) {
            source->input.size += (size_t)got;
            source->position += (uint64_t)got;
            return NL_OK;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return NL_AGAIN;
        if (got < 0)
            return nl_error_set_errno("read %s", name_of(source));
        if (!source->follow || !source->is_file) {
            source->at_end = true;
            return NL_END;
        }
        bool grown;
        nl_status status = look_for_replacement(source, &grown);
        if (!grown)
            return status;
    }
}

/* Looks at the first bytes: a zstd frame, or one of its skippable frames (RFC 8878, sections 3.1.1 and 3.1.2). */
static packing packing_of(const unsigned char *magic)
{
    bool frame = magic[0] == 0x28 && magic[1] == 0xb5 && magic[2] == 0x2f && magic[3] == 0xfd;
    bool skippable = (magic[0] & 0xf0) == 0x50 && magic[1] == 0x2a && magic[2] == 0x4d && magic[3] == 0x18;
    return frame || skippable ? PACKING_ZSTD : PACKING_NONE;
}

static nl_status find_packing(nl_source *source)
{
    while (source->input.size < MAGIC_SIZE) {
        nl_status status = read_more(source);
        if (status == NL_END && !source->replaced && source->input.size > 0)
            break;
        if (status != NL_OK)
            return status;
    }
    source->packing = source->input.size < MAGIC_SIZE ? PACKING_NONE
                                                      : packing_of((const unsigned char *)source->input.data);
    if (source->packing == PACKING_ZSTD && source->unpacker == NULL) {
        source->unpacker = ZSTD_createDStream();
        source->unpacked = malloc(ZSTD_DStreamOutSize());
        NL_REQUIRE(source->unpacker != NULL && source->unpacked != NULL, "out of memory");
    }
    if (source->packing == PACKING_ZSTD)
        ZSTD_initDStream(source->unpacker);
    return NL_OK;
}

static nl_status read_unpacked(nl_source *source, const char **data, size_t *size)
{
    for (;;) {
        if (source->used == source->input.size) {
            nl_status status = read_more(source);
            if (status == NL_END && source->frame_open && !source->replaced)
                return nl_error_set("read %s: the compressed data is cut short", name_of(source));
            if (status != NL_OK)
                return status;
        }
        ZSTD_inBuffer in = {source->input.data, source->input.size, source->used};
        ZSTD_outBuffer out = {source->unpacked, ZSTD_DStreamOutSize(), 0};
        size_t result = ZSTD_decompressStream(source->unpacker, &out, &in);
        source->used = in.pos;
        if (ZSTD_isError(result)) {
            source->at_end = true;
            source->used = source->input.size;
            source->frame_open = false;
            return nl_error_set("read %s: the compressed data is damaged: %s", name_of(source), ZSTD_getErrorName(result));
        }
        source->frame_open = result != 0;
        if (out.pos > 0) {
            *data = source->unpacked;
            *size = out.pos;
            return NL_OK;
        }
    }
}

nl_status nl_source_read(nl_source *source, const char **data, size_t *size)
{
    source->replaced = false;
    if (source->packing == PACKING_UNKNOWN) {
        nl_status status = find_packing(source);
        if (status != NL_OK)
            return status;
    }
    if (source->packing == PACKING_ZSTD)
        return read_unpacked(source, data, size);
    if (source->used == source->input.size) {
        nl_status status = read_more(source);
        if (status != NL_OK)
            return status;
    }
    *data = source->input.data + source->used;
    *size = source->input.size - source->used;
    source->used = source->input.size;
    return NL_OK;
}

bool nl_source_was_replaced(const nl_source *source)
{
    return source->replaced;
}

void nl_source_wait(nl_source *source, int timeout_ms)
{
    if (source->fd >= 0 && !source->is_file) {
        struct pollfd ready = {.fd = source->fd, .events = POLLIN};
        poll(&ready, 1, timeout_ms);
        return;
    }
    poll(NULL, 0, timeout_ms < FOLLOW_INTERVAL_MS ? timeout_ms : FOLLOW_INTERVAL_MS);
}

uint64_t nl_source_size(const nl_source *source)
{
    return source->size;
}

uint64_t nl_source_position(const nl_source *source)
{
    return source->position;
}
