#include "config.h"

#include "seal.h"

#include "base/memory.h"
#include "base/monotonic.h"
#include "base/error.h"
#include "file.h"
#include "program/program.h"
#include "seal_key.h"

#include <openssl/crypto.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct seal {
    const output_options *options;
    char *path;
    int fd;
    seal_key key;                      /* key of the next seal */
    bool unsaved;                      /* the key file still contains the previous key */
    bool rest;                         /* the latest file of a killed netlogd may contain bytes that are not sealed */
    uint64_t size;                     /* size of the head and of all whole seals in bytes */
    unsigned char tag[SEAL_HASH_SIZE]; /* tag of the latest seal */
    seal_record next;                  /* range of the next seal; next.to is the size of the file */
    EVP_MD_CTX *hash;                  /* hash of that range */
    int64_t due_ns; /* time at which the next seal is due, on the monotonic clock; 0: all bytes are sealed */
};

/* Returns the name of an output's seal file. The caller frees it. */
static char *seal_name(const output_options *options)
{
    return output_file_name_beside(options, ".seal");
}

/* ---- writing ---- */

static nl_status write_synced(seal *s, const char *data, size_t size, uint64_t offset)
{
    ssize_t put = pwrite(s->fd, data, size, (off_t)offset);
    errno = put >= 0 && put < (ssize_t)size ? ENOSPC : errno;
    return put == (ssize_t)size && fdatasync(s->fd) == 0 ? NL_OK : nl_error_set_errno("write %s", s->path);
}

/* Writes the end mark for the current number of seals, and erases the mark for the previous number. */
static nl_status put_mark(seal *s)
{
    static const char none[SEAL_MARK_SIZE];
    char mark[SEAL_MARK_SIZE];
    seal_mark_encode(&s->key, mark);
    nl_status status = write_synced(s, mark, sizeof mark, seal_mark_offset(s->key.index));
    return status == NL_OK ? write_synced(s, none, sizeof none, seal_mark_offset(s->key.index + 1)) : status;
}

static nl_status save_key(seal *s)
{
    nl_status status = put_mark(s);
    if (status == NL_OK)
        status = seal_key_store(s->options->seal_key, &s->key);
    s->unsaved = status != NL_OK;
    return status;
}

/* Replaces the key with the next key, after the seal that used the key was written. */
static nl_status advance(seal *s, const seal_record *record, size_t size)
{
    memcpy(s->tag, record->tag, sizeof s->tag);
    s->size += size;
    seal_key_evolve(&s->key);
    s->unsaved = true;
    return save_key(s);
}

static void begin_range(seal *s)
{
    s->next.from = s->next.to;
    s->due_ns = 0;
    seal_hash_begin(s->hash);
}

static nl_status put_seal(seal *s)
{
    seal_bytes bytes;
    s->next.time_ns = nl_time_now_ns();
    seal_hash_get(s->hash, s->next.digest);
    seal_encode(&s->next, &s->key, s->tag, &bytes);
    nl_status status = write_synced(s, bytes.data, bytes.size, s->size);
    if (status != NL_OK && ftruncate(s->fd, (off_t)s->size) != 0)
        program_error("truncate %s: %m", s->path);
    if (status != NL_OK)
        return status;
    begin_range(s);
    return advance(s, &s->next, bytes.size);
}

/* Seals the bytes that a killed netlogd wrote to the latest file, whose name may have another pattern. */
static nl_status seal_rest(seal *s)
{
    const char *slash = strrchr(s->options->path, '/');
    output_options files = {.numbered = true};
    struct stat status;
    files.path = program_format("%.*s%s", slash != NULL ? (int)(slash + 1 - s->options->path) : 0, s->options->path,
                                s->next.pattern);
    char *name = output_file_name(&files, s->next.number);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    s->next.to = s->next.from;
    begin_range(s);
    nl_status result = NL_OK;
    if (fd >= 0 && fstat(fd, &status) == 0 && (uint64_t)status.st_size >= s->next.from) {
        s->next.to = (uint64_t)status.st_size;
        bool hashed = fdatasync(fd) == 0 && seal_hash_range(s->hash, fd, s->next.from, s->next.to);
        s->next.ended = true;
        result = !hashed ? nl_error_set_errno("read %s", name) : s->next.to > 0 ? put_seal(s) : NL_OK;
    } else if (s->next.to > 0) {
        program_error("%s: sealed bytes are missing; check the archive with --verify", name);
    }
    if (fd >= 0)
        close(fd);
    free(name);
    free(files.path);
    s->rest = result != NL_OK;
    return result;
}

/* Completes pending work: sealing the file of a killed netlogd, and writing the key. */
static nl_status finish_pending(seal *s)
{
    if (s->unsaved && save_key(s) != NL_OK)
        return NL_FAILED;
    return s->rest ? seal_rest(s) : NL_OK;
}

nl_status seal_write(seal *s, bool ended)
{
    if (s == NULL)
        return NL_OK;
    if (finish_pending(s) != NL_OK)
        return NL_FAILED;
    if (s->next.from == s->next.to && (!ended || s->next.ended || s->next.to == 0))
        return NL_OK;
    s->next.ended = ended;
    return put_seal(s);
}

nl_status seal_begin_file(seal *s, uint64_t number)
{
    if (s == NULL)
        return NL_OK;
    const char *slash = strrchr(s->options->path, '/'), *pattern = slash != NULL ? slash + 1 : s->options->path;
    if (!s->rest && s->next.number == number && strcmp(s->next.pattern, pattern) == 0)
        return NL_OK;
    if (finish_pending(s) != NL_OK)
        return NL_FAILED;
    s->next = (seal_record){.number = number};
    snprintf(s->next.pattern, sizeof s->next.pattern, "%s", pattern);
    begin_range(s);
    nl_status status = put_seal(s);
    if (status != NL_OK && !s->unsaved)
        s->next.number = 0; /* no seal has named the file yet */
    return status;
}

uint64_t seal_next_number(const seal *s, uint64_t number)
{
    bool used = s != NULL && (number < s->next.number || (number == s->next.number && s->next.to > 0));
    return used ? s->next.number + 1 : number;
}

void seal_wrote(seal *s, const char *data, size_t size)
{
    if (s == NULL || size == 0)
        return;
    seal_hash_add(s->hash, data, size);
    s->next.to += size;
    s->next.ended = false;
    if (s->due_ns == 0)
        s->due_ns = nl_monotonic_ns() + s->options->seal_ns;
}

bool seal_is_due(const seal *s)
{
    return s != NULL && (s->unsaved || s->rest || (s->due_ns != 0 && nl_monotonic_ns() >= s->due_ns));
}

/* ---- opening ---- */

/*
 * Reads the seals whose keys are erased, and the next seal, which a kill may have truncated. Sets s->next to the last
 * seal. The caller truncates the file after this seal.
 */
static nl_status read_seals(seal *s, FILE *file)
{
    seal_record record;
    seal_bytes bytes;
    char head[SEAL_HEAD_SIZE];
    bool begun = fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, "NLSEAL01", 8) == 0;
    for (uint64_t i = 0; i < s->key.index; i++) {
        if (!begun || !seal_read(file, &record, &bytes) || record.index != i)
            return nl_error_set(NL_ERROR_INVALID,
                                "%s: seal %" PRIu64 " of %" PRIu64
                                " is missing or damaged; keep the archive for inspection, "
                                "and use another directory with a new key",
                                s->path, i + 1, s->key.index);
        s->size += bytes.size;
        memcpy(s->tag, record.tag, sizeof s->tag);
        s->next = record;
    }
    if (!begun || !seal_read(file, &record, &bytes))
        return NL_OK;
    bool genuine = record.index == s->key.index && seal_is_genuine(&bytes, &s->key, s->tag);
    if (fgetc(file) != EOF)
        return nl_error_set(
            NL_ERROR_INVALID,
            "%s: the key %s is older than these seals, or belongs to another archive; use the key that created them",
            s->path, s->options->seal_key);
    if (!genuine)
        return NL_OK;
    s->next = record;
    advance(s, &record, bytes.size); /* ignore a failure, because a later call tries again */
    return NL_OK;
}

/*
 * Writes the first seal, which covers no bytes. After that, netlogd replaces the first key, so that an attacker cannot
 * find it on this machine.
 */
static nl_status begin_seals(seal *s)
{
    nl_status status = write_synced(s, "NLSEAL01", 8, 0);
    if (status == NL_OK)
        status = put_mark(s);
    if (status == NL_OK)
        status = put_seal(s);
    output_file_sync_directory(s->path);
    return status;
}

static nl_status open_seals(seal *s)
{
    if (seal_key_load(s->options->seal_key, &s->key) != NL_OK)
        return NL_FAILED;
    s->fd = open(s->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    FILE *file = s->fd >= 0 ? fdopen(dup(s->fd), "r") : NULL;
    if (file == NULL)
        return nl_error_set_errno("open %s", s->path);
    nl_status status = read_seals(s, file);
    fclose(file);
    begin_range(s);
    if (status == NL_OK && ftruncate(s->fd, (off_t)s->size) != 0)
        status = nl_error_set_errno("write %s", s->path);
    if (status == NL_OK && s->key.index == 0)
        status = begin_seals(s);
    s->rest = s->next.number > 0 && !s->next.ended;
    if (status != NL_OK || !s->rest || seal_rest(s) == NL_OK)
        return status;
    /* A full disk, or a file at its size limit, only delays the seal. */
    return nl_error_get_code() == NL_ERROR_FULL || nl_error_get_code() == NL_ERROR_LIMIT ? NL_OK : NL_FAILED;
}

seal *seal_open(const output_options *options)
{
    seal *s = nl_memory_check(calloc(1, sizeof *s));
    s->hash = nl_memory_check(EVP_MD_CTX_new());
    s->options = options;
    s->path = seal_name(options);
    s->fd = -1;
    s->size = SEAL_HEAD_SIZE;
    if (open_seals(s) == NL_OK)
        return s;
    seal_close(s);
    return NULL;
}

void seal_close(seal *s)
{
    if (s == NULL)
        return;
    if (s->fd >= 0)
        close(s->fd);
    EVP_MD_CTX_free(s->hash);
    OPENSSL_cleanse(&s->key, sizeof s->key);
    free(s->path);
    free(s);
}
