#include "config.h"

#include "archive/load.h"

#include "base/text.h"
#include "archive/cut.h"
#include "archive/seen.h"
#include "program/foreign.h"
#include "program/gzip.h"
#include "record/format.h"
#include "record/zstd_magic.h"
#include "base/memory.h"
#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_SIZE = 1 << 20, PENDING_MAX = 64 << 20 };

/* An input: a file or a pipe. */
typedef struct input {
    loader *loader;
    const char *name;
    int fd;            /* descriptor of an uncompressed regular file; -1: `source` reads the input */
    nl_source *source; /* reads pipes and compressed files */
    bool again;        /* a later load may read the rest of the input */
    char *bytes;
} input;

/* ---- identification of files ---- */

/* Reads the first bytes of a regular file. Returns false for other sources and on errors, which the caller reports when
 * it opens the source. */
static bool read_head(const char *path, char head[STORE_HEAD_SIZE], size_t *size, uint64_t *file_size)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool plain = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    ssize_t got = plain ? pread(fd, head, STORE_HEAD_SIZE, 0) : -1;
    if (fd >= 0)
        close(fd);
    *size = got > 0 ? (size_t)got : 0;
    *file_size = plain ? (uint64_t)status.st_size : 0;
    return got >= 0;
}

/*
 * Returns whether a stored position belongs to this file, by the hash of the file's first bytes. Several files may
 * begin with the same short head. In this case, the name must also be the same, or the file with the stored name must
 * no longer exist.
 */
static bool load_is_same(const store_place *p, const char *name, const char *head, size_t size, uint64_t hash)
{
    if (p->head_size == 0 || p->head_size > size)
        return false;
    if (p->head_size == size)
        return p->head == hash && (size == STORE_HEAD_SIZE || strcmp(p->name, name) == 0 || access(p->name, F_OK) != 0);
    return p->head_size < STORE_HEAD_SIZE && p->head == seen_hash(head, p->head_size) &&
           (strcmp(p->name, name) == 0 || access(p->name, F_OK) != 0);
}

static store_place *place_of_file(loader *l, const char *name, const char *head, size_t size)
{
    store_place *best = NULL;
    uint64_t hash = seen_hash(head, size);
    for (size_t i = 0; i < l->place_count; i++)
        if (load_is_same(&l->places[i], name, head, size, hash) &&
            (best == NULL || l->places[i].head_size > best->head_size))
            best = &l->places[i];
    if (best == NULL)
        best = loader_add_place(l, name);
    if (best->head_size < size) {
        best->head_size = size;
        best->head = hash;
    }
    return best;
}

static store_place *place_of_name(loader *l, const char *name)
{
    for (size_t i = 0; i < l->place_count; i++)
        if (l->places[i].head_size == 0 && strcmp(l->places[i].name, name) == 0)
            return &l->places[i];
    return loader_add_place(l, name);
}

/* ---- reading ---- */

/* Reads the next bytes. On failure, reports the error and returns NL_FAILED. */
static nl_status read_some(input *in, const char **data, size_t *size)
{
    if (in->source != NULL) {
        nl_status status = program_source_read(in->source, data, size);
        if (status == NL_FAILED)
            loader_trouble(in->loader, in->name);
        return status;
    }
    ssize_t got;
    while ((got = read(in->fd, in->bytes, READ_SIZE)) < 0 && errno == EINTR)
        ;
    if (got < 0) {
        nl_error_set_errno("%s", in->name);
        loader_trouble(in->loader, in->name);
        return NL_FAILED;
    }
    *data = in->bytes;
    *size = (size_t)got;
    return got > 0 ? NL_OK : NL_END;
}

/* Skips the first `position` bytes, which an earlier load has stored. Appends to `rest` any bytes after this position
 * that it has read. */
static nl_status skip(input *in, uint64_t position, nl_buffer *rest)
{
    const char *data;
    size_t size = 0;
    nl_status status = NL_OK;
    if (in->source == NULL) {
        if (lseek(in->fd, (off_t)position, SEEK_SET) >= 0)
            return NL_OK;
        nl_error_set_errno("%s", in->name);
        loader_trouble(in->loader, in->name);
        return NL_FAILED;
    }
    for (; position > 0 && (status = read_some(in, &data, &size)) == NL_OK; position -= size)
        if (size > position) {
            nl_buffer_append(rest, data + position, size - (size_t)position);
            return NL_OK;
        }
    return status;
}

static bool open_input(input *in, bool packed)
{
    nl_url *url = packed || !in->again ? NULL : nl_url_parse(in->name);
    if (url != NULL && url->option_count == 0)
        in->fd = open(url->path, O_RDONLY | O_CLOEXEC);
    nl_url_free(url);
    if (in->fd >= 0) {
        posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        in->bytes = nl_memory_check(malloc(READ_SIZE));
        return true;
    }
    in->source = program_source_open(in->loader->reading, in->name, false, false);
    return in->source != NULL;
}

static void close_input(input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    nl_source_close(in->source);
    free(in->bytes);
}

/* ---- records ---- */

static bool drain(loader *l, store_place *place, nl_decoder *decoder)
{
    const nl_record *record;
    while (nl_decoder_next(decoder, &record) == NL_OK)
        if (!loader_put(l, place, record))
            return false;
    return true;
}

/* Loads the complete records in `pending`, or all bytes if there are more than PENDING_MAX. Returns false if the store
 * fails. */
static bool load_whole_records(loader *l, store_place *place, nl_decoder *decoder, nl_buffer *pending)
{
    uint64_t lines = 0;
    size_t size = pending->size > 0 ? cut_whole(pending->data, pending->size, &lines) : 0;
    if (size == 0 && pending->size > PENDING_MAX)
        size = pending->size;
    if (size == 0)
        return true;
    nl_decoder_feed(decoder, pending->data, size);
    if (!drain(l, place, decoder))
        return false;
    place->position += size;
    place->lines += lines;
    pending->size -= size;
    memmove(pending->data, pending->data + size, pending->size);
    return !loader_is_full(l) || loader_commit(l, place);
}

/* Loads the rest of a source that will not grow. Returns false if the store fails. */
static bool load_rest(loader *l, store_place *place, nl_decoder *decoder, nl_buffer *pending)
{
    if (pending->size > 0)
        nl_decoder_feed(decoder, pending->data, pending->size);
    if (!drain(l, place, decoder))
        return false;
    nl_decoder_finish(decoder);
    return drain(l, place, decoder);
}

static void keep_reason(void *user, const nl_malformed *what)
{
    char **reason = user;
    free(*reason);
    *reason = program_copy(what->reason);
}

/* Returns a text that describes the incomplete bytes: a line, or a block with its size if the header is complete. */
static char *describe_incomplete(const nl_buffer *pending)
{
    char *reason = NULL;
    const nl_record *record;
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.on_malformed = keep_reason, .user = &reason});
    nl_format format = nl_format_detect(pending->data, pending->size);
    if (format != NL_FORMAT_UNKNOWN && !nl_format_is_text(format)) {
        nl_decoder_feed(decoder, pending->data, pending->size);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            continue;
        nl_decoder_finish(decoder);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            continue;
    }
    nl_decoder_free(decoder);
    return reason != NULL
               ? reason
               : program_format("incomplete record in the last %zu byte%s", pending->size, nl_plural(pending->size));
}

/*
 * Handles the bytes after the last complete record of a file that may grow. These bytes are usually the start of a
 * record, which the next load reads. Reports the bytes as malformed if no line of the file has a known format. Returns
 * false if the store fails.
 */
static bool load_incomplete(loader *l, const input *in, store_place *place, nl_decoder *decoder, nl_buffer *pending)
{
    if (!l->reading->live && nl_decoder_get_stats(decoder)->records == 0 &&
        nl_format_detect(pending->data, pending->size) == NL_FORMAT_UNKNOWN)
        return load_rest(l, place, decoder, pending);
    char *incomplete = describe_incomplete(pending);
    program_error("%s: %s; the next load reads it if the file has grown", in->name, incomplete);
    free(incomplete);
    l->reading->checked = true; /* the message already explains why there are no records */
    return true;
}

/*
 * Returns whether to store the position of an input. Returns false for a file without any record, so that the next load
 * reports its malformed content again.
 */
static bool has_position(const loader *l, const store_place *place, uint64_t before, const nl_decoder *decoder)
{
    const nl_decoder_stats *stats = nl_decoder_get_stats(decoder);
    return l->in_batch > 0 || (place->position > before && (before > 0 || stats->records + stats->repeated > 0));
}

static bool load_input(loader *l, input *in, store_place *place)
{
    nl_decoder *decoder = loader_decoder(l, in->name);
    nl_buffer pending = {0};
    uint64_t before = place->position;
    const char *data;
    size_t size;
    nl_status status = skip(in, place->position, &pending);
    if (status == NL_OK && place->lines > 0)
        nl_decoder_pass_over(decoder, NL_FORMAT_UNKNOWN, place->lines, place->position);
    bool good = status != NL_OK || load_whole_records(l, place, decoder, &pending);
    while (good && status == NL_OK && !program_was_stopped() && (status = read_some(in, &data, &size)) == NL_OK) {
        nl_buffer_append(&pending, data, size);
        good = load_whole_records(l, place, decoder, &pending);
    }
    if (good && status == NL_END && (!in->again || pending.size == 0)) /* also reports a damaged last block */
        good = load_rest(l, place, decoder, &pending);
    else if (good && status == NL_END && pending.size > 0 && !l->quiet)
        good = load_incomplete(l, in, place, decoder, &pending);
    if (good && has_position(l, place, before, decoder))
        good = loader_commit(l, place);
    l->reading->live = l->reading->live || nl_decoder_get_stats(decoder)->repeated > 0;
    nl_decoder_free(decoder);
    nl_buffer_free(&pending);
    return good && status != NL_FAILED;
}

/* ---- foreign formats ---- */

/* Returns whether a file, which may be compressed, has a foreign format. */
static bool is_foreign(const program_reading *reading, const char *name)
{
    enum { HEAD_SIZE = 64 << 10 };
    nl_source *source = program_source_open_stored(name);
    nl_buffer head = {0};
    const char *data;
    size_t size;
    while (source != NULL && head.size < HEAD_SIZE && program_source_read(source, &data, &size) == NL_OK)
        nl_buffer_append(&head, data, size);
    bool foreign = head.size > 0 && program_is_foreign(reading, head.data, head.size);
    nl_buffer_free(&head);
    nl_source_close(source);
    return foreign;
}

/*
 * Loads a file in a foreign format. The stored position is the number of loaded records. On failure, reports the error
 * and returns false.
 */
static bool load_foreign(loader *l, const char *name, store_place *place)
{
    program_log *log = program_log_open(l->reading, name, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status = NL_OK;
    bool good = true;
    uint64_t before = place->position;
    for (uint64_t count = 1; good && (status = program_log_next(log, NULL, &record)) == NL_OK; count++) {
        if (count <= before)
            continue;
        good = loader_put(l, place, record);
        place->position = count;
        if (good && loader_is_full(l))
            good = loader_commit(l, place);
    }
    program_log_close(log);
    if (good && place->position > before)
        good = loader_commit(l, place);
    return good && status != NL_FAILED;
}

/*
 * Returns the absolute path of a file, or a copy of `name` if it is not an existing file. The caller frees the result.
 */
static char *full_name(const char *name)
{
    nl_url *url = nl_url_parse(name);
    char *full = url != NULL && url->scheme == NL_SCHEME_FILE ? realpath(url->path, NULL) : NULL;
    nl_url_free(url);
    if (full == NULL)
        full = program_copy(name);
    return full;
}

bool load_file(loader *l, const char *name)
{
    char *full = full_name(name), head[STORE_HEAD_SIZE];
    size_t head_size;
    uint64_t file_size;
    input in = {.loader = l, .name = name, .fd = -1, .again = read_head(full, head, &head_size, &file_size)};
    bool good = true;
    if (!in.again || head_size > 0) {
        store_place *place = in.again ? place_of_file(l, full, head, head_size) : place_of_name(l, full);
        bool packed = in.again && (nl_zstd_begins(head, head_size) || gzip_begins(head, head_size));
        if (!in.again)
            place->position = place->lines = 0;
        /* A file that was loaded before may have no new records. */
        l->reading->live = l->reading->live || place->position > 0;
        if (in.again && is_foreign(l->reading, name)) {
            good = load_foreign(l, name, place);
        } else if (!in.again || packed || file_size > place->position) {
            good = open_input(&in, packed);
            if (!good)
                loader_trouble(l, name);
            good = good && load_input(l, &in, place);
            close_input(&in);
        }
    }
    if (good)
        loader_is_well(l, name);
    free(full);
    return good;
}
