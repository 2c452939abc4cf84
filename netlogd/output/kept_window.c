#include "config.h"

#include "kept_window.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/hash_bytes.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "program/program.h"
#include "record/crc32c.h"
#include "record/varint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "NLKEEP1\n";

enum { MAGIC_SIZE = sizeof magic - 1, CRC_SIZE = 4, STORED_SIZE_MAX = 1 << 30 };

/* ---- bits ---- */

bool kept_bits_get(const kept_bits *b, uint64_t i)
{
    return i / 8 < b->bytes.size && (b->bytes.data[i / 8] >> i % 8 & 1) != 0;
}

static void grow_bits(kept_bits *b, size_t size)
{
    if (b->bytes.size >= size)
        return;
    nl_buffer_reserve(&b->bytes, size - b->bytes.size);
    memset(b->bytes.data + b->bytes.size, 0, size - b->bytes.size);
    b->bytes.size = size;
}

void kept_bits_set(kept_bits *b, uint64_t i)
{
    grow_bits(b, (size_t)(i / 8) + 1);
    b->bytes.data[i / 8] = (char)(b->bytes.data[i / 8] | 1 << i % 8);
}

void kept_bits_clear(kept_bits *b, uint64_t i)
{
    if (i / 8 < b->bytes.size)
        b->bytes.data[i / 8] = (char)(b->bytes.data[i / 8] & ~(1 << i % 8));
}

/* ---- files ---- */

kept_identity kept_identity_read(const char *name, uint64_t number)
{
    struct stat status;
    if (stat(name, &status) != 0)
        return (kept_identity){.number = number};
    return (kept_identity){.number = number,
                           .inode = (uint64_t)status.st_ino,
                           .size = (uint64_t)status.st_size,
                           .written_ns = (int64_t)status.st_mtim.tv_sec * NL_NS_PER_SECOND + status.st_mtim.tv_nsec};
}

kept_window_file *kept_window_find(kept_window *w, uint64_t number)
{
    for (size_t i = w->count; i-- > 0;)
        if (w->files[i].identity.number == number)
            return &w->files[i];
    return NULL;
}

kept_window_file *kept_window_add(kept_window *w, kept_identity identity)
{
    NL_ARRAY_GROW(w->files, w->count, w->capacity);
    size_t at = w->count++;
    for (; at > 0 && w->files[at - 1].identity.number > identity.number; at--)
        w->files[at] = w->files[at - 1];
    w->files[at] = (kept_window_file){.identity = identity};
    return &w->files[at];
}

static void free_file(kept_window_file *f)
{
    nl_buffer_free(&f->kept.bytes);
    nl_buffer_free(&f->stored_open.bytes);
    for (size_t k = 0; k < KEPT_KINDS_MAX; k++)
        nl_buffer_free(&f->open[k].bytes);
}

void kept_window_drop_below(kept_window *w, uint64_t number)
{
    size_t drop = 0;
    while (drop < w->count && w->files[drop].identity.number < number)
        free_file(&w->files[drop++]);
    w->count -= drop;
    memmove(w->files, w->files + drop, w->count * sizeof *w->files);
}

void kept_window_clear(kept_window *w)
{
    kept_window_drop_below(w, UINT64_MAX);
    free(w->files);
    key_map_free(&w->names);
    *w = (kept_window){0};
}

/* ---- names ---- */

/* The seed is constant, because the hashes are stored. */
static uint64_t hash_name(const char *name)
{
    return hash_bytes(UINT64_C(0x9e3779b97f4a7c15), name, strlen(name)) | 1;
}

static void add_hash(kept_window *w, uint64_t hash)
{
    if (w->names.count >= KEPT_NAMES_MAX)
        key_map_reset(&w->names, 0);
    *key_map_add(&w->names, hash) = 1;
}

void kept_window_add_name(kept_window *w, const char *name)
{
    add_hash(w, hash_name(name));
}

bool kept_window_has_name(const kept_window *w, const char *name)
{
    return w->names.count > 0 && key_map_find(&w->names, hash_name(name)) != NULL;
}

/* ---- storing ---- */

static void put_number(nl_buffer *out, uint64_t number)
{
    char bytes[8];
    nl_le64_put(bytes, number);
    nl_buffer_append(out, bytes, sizeof bytes);
}

static void put_identity(nl_buffer *out, const kept_identity *identity)
{
    put_number(out, identity->number);
    put_number(out, identity->inode);
    put_number(out, identity->size);
    put_number(out, (uint64_t)identity->written_ns);
}

/* Appends a whole number of bytes for `count` bits. */
static void put_bits(nl_buffer *out, const kept_bits *b, uint64_t count)
{
    const size_t size = (size_t)((count + 7) / 8), have = b->bytes.size < size ? b->bytes.size : size;
    nl_buffer_append(out, b->bytes.data, have);
    nl_buffer_reserve(out, size - have);
    memset(out->data + out->size, 0, size - have);
    out->size += size - have;
}

/* Appends a file's decisions. A record that is open for any kind is stored as open. */
static void put_file(nl_buffer *out, const kept_window_file *f)
{
    kept_bits open = {0};
    const uint64_t count = f->count > f->stored_count ? f->count : f->stored_count;
    for (size_t k = 0; k < KEPT_KINDS_MAX; k++) {
        grow_bits(&open, f->open[k].bytes.size);
        for (size_t i = 0; i < f->open[k].bytes.size; i++)
            open.bytes.data[i] = (char)(open.bytes.data[i] | f->open[k].bytes.data[i]);
    }
    for (uint64_t i = f->count; i < f->stored_count; i++)
        if (kept_bits_get(&f->stored_open, i))
            kept_bits_set(&open, i);
    put_identity(out, &f->identity);
    put_number(out, count);
    put_bits(out, &f->kept, count);
    put_bits(out, &open, count);
    nl_buffer_free(&open.bytes);
}

static void put_window(nl_buffer *out, const kept_window *w)
{
    size_t later = 0;
    while (later < w->count && w->files[later].identity.number <= w->finished.number)
        later++;
    nl_buffer_append(out, magic, MAGIC_SIZE);
    put_identity(out, &w->finished);
    put_number(out, w->names.count);
    for (size_t i = 0; w->names.count > 0 && i >> (64 - w->names.shift) == 0; i++)
        if (w->names.slots[i].key != 0)
            put_number(out, w->names.slots[i].key);
    put_number(out, w->count - later);
    for (; later < w->count; later++)
        put_file(out, &w->files[later]);
    char crc[CRC_SIZE];
    nl_le32_put(crc, nl_crc32c(0, out->data, out->size));
    nl_buffer_append(out, crc, CRC_SIZE);
}

nl_status kept_window_save(const kept_window *w, const char *path)
{
    nl_buffer content = {0};
    char *new = program_format("%s.new", path);
    put_window(&content, w);
    int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    bool good = fd >= 0 && nl_write_all(fd, content.data, content.size) && fsync(fd) == 0;
    if (fd >= 0)
        good = close(fd) == 0 && good;
    good = good && rename(new, path) == 0;
    nl_status status = good ? NL_OK : nl_error_set_errno("write %s", new);
    nl_buffer_free(&content);
    free(new);
    return status;
}

/* ---- loading ---- */

typedef struct stored {
    const char *at, *end;
    bool bad; /* a member is missing */
} stored;

static uint64_t get_number(stored *s)
{
    if (s->end - s->at < 8) {
        s->bad = true;
        return 0;
    }
    s->at += 8;
    return nl_le64_get(s->at - 8);
}

static kept_identity get_identity(stored *s)
{
    kept_identity identity = {0};
    identity.number = get_number(s);
    identity.inode = get_number(s);
    identity.size = get_number(s);
    identity.written_ns = (int64_t)get_number(s);
    return identity;
}

static void get_bits(stored *s, kept_bits *b, uint64_t count)
{
    const uint64_t size = count / 8 + (count % 8 != 0);
    if (size > (uint64_t)(s->end - s->at)) {
        s->bad = true;
        return;
    }
    nl_buffer_append(&b->bytes, s->at, (size_t)size);
    s->at += size;
}

static bool is_unchanged(const kept_identity *stored_identity, const output_options *options)
{
    char *name = output_file_name(options, stored_identity->number);
    const kept_identity now = kept_identity_read(name, stored_identity->number);
    free(name);
    return now.inode != 0 && now.inode == stored_identity->inode && now.size == stored_identity->size &&
           now.written_ns == stored_identity->written_ns;
}

static void get_window(stored *s, kept_window *w, const output_options *options)
{
    w->finished = get_identity(s);
    for (uint64_t left = get_number(s); left > 0 && !s->bad; left--)
        add_hash(w, get_number(s) | 1);
    uint64_t latest = w->finished.number;
    for (uint64_t left = get_number(s); left > 0 && !s->bad; left--) {
        const kept_identity identity = get_identity(s);
        const uint64_t count = get_number(s);
        kept_window_file *f = kept_window_add(w, identity);
        s->bad = s->bad || identity.number <= latest;
        latest = identity.number;
        get_bits(s, &f->kept, count);
        get_bits(s, &f->stored_open, count);
        f->stored_count = s->bad ? 0 : count;
        if (!s->bad && is_unchanged(&identity, options))
            continue;
        free_file(f); /* the file that was added last */
        w->count--;
    }
    if (!s->bad && is_unchanged(&w->finished, options))
        return;
    if (!s->bad && w->count > 0)
        return; /* the finished file was deleted, and its successors are as before */
    w->finished.number = 0;
}

static bool read_content(const char *path, nl_buffer *content)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool good = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= STORED_SIZE_MAX &&
                nl_buffer_reserve(content, (size_t)status.st_size + 1);
    for (ssize_t got = 1; good && got > 0;) {
        got = content->size < content->capacity
                  ? read(fd, content->data + content->size, content->capacity - content->size)
                  : 0;
        good = got >= 0 || errno == EINTR;
        content->size += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    return good;
}

void kept_window_load(kept_window *w, const char *path, const output_options *options)
{
    nl_buffer content = {0};
    if (read_content(path, &content) && content.size >= MAGIC_SIZE + CRC_SIZE &&
        memcmp(content.data, magic, MAGIC_SIZE) == 0 &&
        nl_crc32c(0, content.data, content.size - CRC_SIZE) == nl_le32_get(content.data + content.size - CRC_SIZE)) {
        stored s = {content.data + MAGIC_SIZE, content.data + content.size - CRC_SIZE, false};
        get_window(&s, w, options);
    }
    nl_buffer_free(&content);
}
