#include "config.h"

#include "transport/source.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/zstd_magic.h"
#include "transport/source_collector.h"
#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum {
    READ_SIZE = 256 << 10,
    /* Time for which a new file with the same name may be unreadable, because its permissions may be set later. */
    REFUSED_MS = 1000,
};

typedef enum packing { PACKING_UNKNOWN, PACKING_NONE, PACKING_ZSTD } packing;

struct nl_source {
    nl_source_layer *layers; /* the uppermost layer is first */
    char *path;              /* path of a file or URL of a collector; NULL for standard input and memory */
    int fd;                  /* -1: memory, or a followed file that does not exist */
    nl_channel channel;      /* of a collector */
    nl_dialer *dialer;       /* or NULL */
    bool is_file;
    bool follow;
    bool nonblocking;
    bool replaced;
    uint64_t size;     /* stored size in bytes; 0 if unknown */
    uint64_t position; /* offset of the next stored byte to read */
    uint64_t limit;    /* offset where the range to read ends; UINT64_MAX means the end of the file */
    size_t read_size;  /* maximum number of stored bytes to read at a time */

    nl_buffer input; /* stored bytes; input.data[used..input.size) are unread */
    size_t used;
    bool at_end; /* nothing more can be read */

    int watch_fd;       /* descriptor of inotify; -1 while nothing is watched */
    int64_t refused_ns; /* time since which opening the new file has been denied; 0 if it is not denied */

    packing packing;
    ZSTD_DStream *unpacker;
    bool frame_open;   /* within a zstd frame */
    bool more_to_come; /* the decompressor has more output */
    char *unpacked;
};

/*
 * ---- waiting for a file to change ----
 *
 * inotify does not report changes by other hosts, and a user may have no inotify instances left. Therefore, a wait also
 * ends after a timeout, and the caller checks the file again.
 */

/* Maximum wait in milliseconds with and without inotify. */
enum { WATCHED_MS = 1000, UNWATCHED_MS = 100 };

static void stop_watching(nl_source *source)
{
    if (source->watch_fd >= 0)
        close(source->watch_fd);
    source->watch_fd = -1;
}

/*
 * Watches the file, and its directory for a new file with the same name. Returns false if neither the file nor its
 * directory can be watched.
 */
static bool watch_file(nl_source *source, const char *path)
{
    char directory[PATH_MAX];
    source->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (source->watch_fd < 0)
        return false;
    int file = inotify_add_watch(source->watch_fd, path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
    snprintf(directory, sizeof directory, "%s", path);
    int above = inotify_add_watch(source->watch_fd, dirname(directory), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    if (file >= 0 || above >= 0)
        return true;
    stop_watching(source);
    return false;
}

/*
 * Waits until the file may have changed, at most timeout_ms. The first call does not wait: it only begins to watch the
 * file. Because earlier changes are unknown, the caller must then check the file again.
 */
static void wait_for_change(nl_source *source, const char *path, int timeout_ms)
{
    if (source->watch_fd < 0) {
        if (!watch_file(source, path))
            poll(NULL, 0, timeout_ms < UNWATCHED_MS ? timeout_ms : UNWATCHED_MS);
        return;
    }
    struct pollfd ready = {.fd = source->watch_fd, .events = POLLIN};
    char events[4096]; /* the kinds of changes do not matter */
    if (poll(&ready, 1, timeout_ms < WATCHED_MS ? timeout_ms : WATCHED_MS) > 0)
        while (read(source->watch_fd, events, sizeof events) > 0)
            continue;
}

/* Stores the kind, the size and the current offset of the opened file. Fails if it is a directory. */
static nl_status examine(nl_source *source, off_t position)
{
    struct stat status;
    if (fstat(source->fd, &status) != 0)
        return NL_FAILED;
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return NL_FAILED;
    }
    source->is_file = S_ISREG(status.st_mode);
    source->size = source->is_file ? (uint64_t)status.st_size : 0;
    source->position = source->is_file && position > 0 ? (uint64_t)position : 0;
    if (source->is_file)
        posix_fadvise(source->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return NL_OK;
}

/* Opens the file. Also sets errno on failure. */
static nl_status open_file(nl_source *source)
{
    /* O_NONBLOCK is set because opening a pipe would otherwise wait for a writer. */
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (source->nonblocking ? O_NONBLOCK : 0);
    source->fd = open(source->path, flags);
    if (source->fd >= 0 && examine(source, 0) == NL_OK)
        return NL_OK;
    nl_error_set_errno("%s", source->path);
    int error = errno;
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
    errno = error;
    return NL_FAILED;
}

static nl_status open_standard_input(nl_source *source)
{
    source->fd = STDIN_FILENO;
    if (examine(source, lseek(STDIN_FILENO, 0, SEEK_CUR)) != NL_OK)
        return nl_error_set_errno("standard input");
    return NL_OK;
}

static nl_status open_memory(nl_source *source, const char *name)
{
    if (!nl_memory_read(name, &source->input))
        return nl_error_set(NL_ERROR_NOT_FOUND, "memory:%s: no records were written to it", name);
    source->at_end = true;
    source->size = source->position = source->input.size;
    return NL_OK;
}

static nl_status open_collector(nl_source *source, const nl_url *url)
{
    source->path = strdup(url->text);
    if (source->path == NULL)
        return nl_memory_failed();
    nl_status status = nl_collector_subscribe(url, &source->dialer, &source->channel, &source->input);
    source->fd = source->channel.fd;
    return status;
}

static nl_status open_named(nl_source *source, const nl_url *url)
{
    switch (url->scheme) {
    case NL_SCHEME_STDIO:
        return open_standard_input(source);
    case NL_SCHEME_FILE: {
        source->path = strdup(url->path);
        if (source->path == NULL)
            return nl_memory_failed();
        nl_status status = open_file(source);
        return status != NL_OK && source->follow && errno == ENOENT ? NL_OK : status;
    }
    case NL_SCHEME_MEMORY:
        return open_memory(source, url->path);
    case NL_SCHEME_NETLOG:
    case NL_SCHEME_NETLOGS:
    case NL_SCHEME_UNIX:
        return open_collector(source, url);
    default:
        return nl_error_set(NL_ERROR_UNSUPPORTED, "%s: URLs of this scheme cannot be read", url->text);
    }
}

nl_source *nl_source_open(const nl_url *url, bool follow, bool nonblocking)
{
    nl_source *source = nl_memory_check(calloc(1, sizeof *source));
    if (source == NULL)
        return NULL;
    source->fd = source->channel.fd = -1;
    source->limit = UINT64_MAX;
    source->read_size = READ_SIZE;
    source->follow = follow;
    source->nonblocking = nonblocking;
    source->watch_fd = -1;
    if (url->option_count > 0 && !nl_url_is_collector(url))
        nl_error_set(NL_ERROR_INVALID, "%s: unknown option \"%s\"", url->text, url->options[0].name);
    else if (open_named(source, url) == NL_OK)
        return source;
    nl_source_close(source);
    return NULL;
}

void nl_source_set_read_size(nl_source *source, size_t size)
{
    source->read_size = size;
}

void nl_source_close(nl_source *source)
{
    if (source == NULL)
        return;
    for (nl_source_layer *layer; (layer = source->layers) != NULL;) {
        source->layers = layer->below;
        layer->close(layer);
    }
    if (source->dialer != NULL)
        nl_channel_close(&source->channel);
    else if (source->fd >= 0 && source->path != NULL)
        close(source->fd);
    nl_dialer_free(source->dialer);
    stop_watching(source);
    ZSTD_freeDStream(source->unpacker);
    free(source->unpacked);
    nl_buffer_free(&source->input);
    free(source->path);
    free(source);
}

static const char *source_name_of(const nl_source *source)
{
    return source->path != NULL ? source->path : "standard input";
}

/* Prepares for the new content of a replaced or truncated file. Returns NL_END. */
static nl_status source_restart(nl_source *source)
{
    source->input.size = source->used = 0;
    source->packing = PACKING_UNKNOWN;
    source->frame_open = source->more_to_come = false;
    source->replaced = true;
    source->limit = UINT64_MAX;
    return NL_END;
}

static nl_status begin_truncated(nl_source *source)
{
    if (lseek(source->fd, 0, SEEK_SET) != 0)
        return nl_error_set_errno("%s", source_name_of(source));
    source->position = 0;
    return source_restart(source);
}

/* Closes the file. The next read opens the new file. Returns NL_END. */
static nl_status begin_other(nl_source *source)
{
    close(source->fd);
    source->fd = -1;
    stop_watching(source);
    return source_restart(source);
}

/*
 * At the end of a followed file, returns NL_END if the file was truncated or replaced, NL_AGAIN if it was not, and
 * NL_FAILED on failure. Sets *grown if data was appended before the file was replaced; the caller then reads again.
 */
static nl_status source_check_replacement(nl_source *source, bool *grown)
{
    struct stat ours, named;
    *grown = false;
    if (fstat(source->fd, &ours) != 0)
        return nl_error_set_errno("%s", source_name_of(source));
    source->size = (uint64_t)ours.st_size;
    if (source->size < source->position)
        return begin_truncated(source);
    if (source->path == NULL || stat(source->path, &named) != 0)
        return NL_AGAIN; /* the file was moved away, but its writer may still append to it */
    if (named.st_dev == ours.st_dev && named.st_ino == ours.st_ino)
        return NL_AGAIN;
    if (fstat(source->fd, &ours) == 0 && (uint64_t)ours.st_size > source->position) {
        *grown = true;
        return NL_AGAIN;
    }
    return begin_other(source);
}

/* Opens a followed file that did not exist or was not readable. Returns NL_AGAIN while it may still appear. */
static nl_status open_awaited(nl_source *source)
{
    if (open_file(source) == NL_OK) {
        source->refused_ns = 0;
        stop_watching(source); /* until now, only the directory was watched */
        return NL_OK;
    }
    if (errno == ENOENT)
        return NL_AGAIN;
    int64_t now_ns = nl_time_now_ns();
    if (source->refused_ns == 0)
        source->refused_ns = now_ns;
    return errno == EACCES && now_ns - source->refused_ns < REFUSED_MS * INT64_C(1000000) ? NL_AGAIN : NL_FAILED;
}

/* Waits until a pipe or socket can be read. Returns false after timeout_ms. */
static bool wait_for_stream(const nl_source *source, int timeout_ms)
{
    struct pollfd ready = {.fd = source->fd, .events = POLLIN};
    if (source->dialer != NULL && nl_channel_has_more(&source->channel))
        return true;
    if (source->dialer != NULL)
        ready.events = nl_channel_wants(&source->channel, POLLIN);
    return poll(&ready, 1, timeout_ms) != 0;
}

static bool would_block(const nl_source *source)
{
    return source->nonblocking && !source->is_file && !wait_for_stream(source, 0);
}

static ssize_t read_some(nl_source *source, char *data, size_t size)
{
    return source->dialer != NULL ? nl_channel_read(&source->channel, data, size) : read(source->fd, data, size);
}

static nl_status cannot_read(const nl_source *source)
{
    if (source->dialer == NULL)
        return nl_error_set_errno("%s", source_name_of(source));
    nl_channel_fail(&source->channel, errno);
    return nl_error_prepend("%s", source_name_of(source));
}

/* Appends stored bytes to the input. Returns the same values as nl_source_read. */
static nl_status read_more(nl_source *source)
{
    if (source->at_end)
        return NL_END;
    if (source->fd < 0) {
        nl_status opened = open_awaited(source);
        if (opened != NL_OK)
            return opened;
    }
    if (would_block(source))
        return NL_AGAIN;
    if (source->used == source->input.size)
        source->used = source->input.size = 0;
    if (!nl_buffer_reserve(&source->input, source->read_size))
        return NL_FAILED;
    for (;;) {
        uint64_t left = source->limit > source->position ? source->limit - source->position : 0;
        if (left == 0)
            return NL_END;
        ssize_t got = read_some(source, source->input.data + source->input.size,
                                left < source->read_size ? (size_t)left : source->read_size);
        if (got > 0) {
            source->input.size += (size_t)got;
            source->position += (uint64_t)got;
            return NL_OK;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN && source->nonblocking)
            return NL_AGAIN;
        if (got < 0 && errno == EAGAIN) { /* a socket, or standard input that another program made non-blocking */
            nl_source_wait(source, -1);
            continue;
        }
        if (got < 0)
            return cannot_read(source);
        if (!source->follow || !source->is_file) {
            source->at_end = true;
            return NL_END;
        }
        bool grown;
        nl_status status = source_check_replacement(source, &grown);
        if (!grown)
            return status;
    }
}

/* Detects the compression. Returns PACKING_UNKNOWN if there are too few bytes. */
static packing packing_of(const char *bytes, size_t size)
{
    if (!nl_zstd_may_begin(bytes, size))
        return PACKING_NONE;
    return nl_zstd_begins(bytes, size) ? PACKING_ZSTD : PACKING_UNKNOWN;
}

static nl_status find_packing(nl_source *source)
{
    while ((source->packing = packing_of(source->input.data, source->input.size)) == PACKING_UNKNOWN) {
        nl_status status = read_more(source);
        if (status == NL_END && !source->replaced && source->input.size > 0) {
            source->packing = PACKING_NONE;
            return NL_OK;
        }
        if (status != NL_OK)
            return status;
    }
    if (source->packing == PACKING_NONE)
        return NL_OK;
    if (source->unpacker == NULL) {
        source->unpacker = ZSTD_createDStream();
        source->unpacked = malloc(ZSTD_DStreamOutSize());
    }
    if (source->unpacker == NULL || source->unpacked == NULL) {
        source->at_end = true;
        return nl_memory_failed();
    }
    ZSTD_initDStream(source->unpacker);
    return NL_OK;
}

static nl_status read_unpacked(nl_source *source, const char **data, size_t *size)
{
    for (;;) {
        if (source->used == source->input.size && !source->more_to_come) {
            nl_status status = read_more(source);
            if (status == NL_END && source->frame_open && !source->replaced) {
                source->frame_open = false; /* so that the truncation is reported only once */
                return nl_error_set(NL_ERROR_INVALID, "%s: the zstd data is truncated", source_name_of(source));
            }
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
            source->frame_open = source->more_to_come = false;
            return nl_error_set(NL_ERROR_INVALID, "%s: the zstd data is damaged: %s", source_name_of(source),
                                ZSTD_getErrorName(result));
        }
        source->frame_open = result != 0;
        source->more_to_come = result != 0 && out.pos == out.size;
        if (out.pos > 0) {
            *data = source->unpacked;
            *size = out.pos;
            return NL_OK;
        }
    }
}

static nl_status read_stored(nl_source *source, const char **data, size_t *size)
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

void nl_source_add_layer(nl_source *source, nl_source_layer *layer)
{
    layer->below = source->layers;
    source->layers = layer;
}

static nl_status read_layer(nl_source *source, nl_source_layer *layer, const char **data, size_t *size)
{
    return layer != NULL ? layer->read(layer, source, data, size) : read_stored(source, data, size);
}

nl_status nl_source_read_below(nl_source *source, const nl_source_layer *layer, const char **data, size_t *size)
{
    return read_layer(source, layer->below, data, size);
}

nl_status nl_source_read(nl_source *source, const char **data, size_t *size)
{
    return read_layer(source, source->layers, data, size);
}

bool nl_source_was_replaced(const nl_source *source)
{
    return source->replaced;
}

void nl_source_wait(nl_source *source, int timeout_ms)
{
    if (source->fd >= 0 && !source->is_file)
        wait_for_stream(source, timeout_ms);
    else
        wait_for_change(source, source->path != NULL ? source->path : "/proc/self/fd/0", timeout_ms);
}

uint64_t nl_source_size(const nl_source *source)
{
    return source->size;
}

uint64_t nl_source_position(const nl_source *source)
{
    return source->position;
}

int nl_source_file(const nl_source *source)
{
    return source->is_file && source->layers == NULL ? source->fd : -1;
}

const char *nl_source_path(const nl_source *source)
{
    return source->is_file && source->layers == NULL ? source->path : NULL;
}

nl_status nl_source_take_range(nl_source *source, uint64_t from, uint64_t to)
{
    if (lseek(source->fd, (off_t)from, SEEK_SET) < 0)
        return nl_error_set_errno("%s", source_name_of(source));
    source->position = from;
    source->limit = to;
    source->input.size = source->used = 0;
    source->packing = PACKING_UNKNOWN;
    source->at_end = source->frame_open = source->more_to_come = false;
    return NL_OK;
}
