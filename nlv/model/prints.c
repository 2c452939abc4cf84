#include "config.h"

#include "model/prints.h"

#include "base/hash_bytes.h"
#include "model/log_file.h"

#include <glib.h>

enum { KEPT_MIN = 16 << 10 };

void prints_free(prints *p)
{
    g_free(p->all);
    *p = (prints){0};
}

uint64_t prints_hash(const char *data, size_t size)
{
    uint64_t hash = hash_bytes(0, data, size);
    return hash != 0 ? hash : 1;
}

static void append(prints *p, uint64_t end, uint64_t hash)
{
    if (p->count == p->capacity) {
        p->capacity = MAX(2 * p->capacity, 64);
        p->all = g_renew(print, p->all, p->capacity);
    }
    p->all[p->count++] = (print){end, hash};
}

void prints_add(prints *p, uint64_t from, uint64_t to, uint64_t hash)
{
    if (to <= prints_end(p))
        return;
    bool is_kept = from == prints_end(p) && to - from >= KEPT_MIN;
    if (!is_kept && p->count > 0 && p->all[p->count - 1].hash == 0)
        p->all[p->count - 1].end = to;
    else
        append(p, to, is_kept ? hash : 0);
}

/* Returns the fingerprint of the bytes [from, to) of the file, or 0 if reading fails. */
static uint64_t hash_in_file(int fd, uint64_t from, uint64_t to, char **bytes, size_t *capacity)
{
    size_t size = (size_t)(to - from);
    if (size > *capacity) {
        *capacity = size;
        *bytes = g_realloc(*bytes, size);
    }
    return log_file_read_at(fd, *bytes, size, from) == (ssize_t)size ? prints_hash(*bytes, size) : 0;
}

bool prints_complete(prints *p, int fd)
{
    prints whole = {0};
    char *bytes = NULL;
    size_t capacity = 0;
    bool good = true;
    for (size_t i = 0; i < p->count && good; i++) {
        if (p->all[i].hash != 0)
            append(&whole, p->all[i].end, p->all[i].hash);
        while (good && prints_end(&whole) < p->all[i].end) {
            uint64_t from = prints_end(&whole), to = MIN(from + PRINTS_PIECE, p->all[i].end);
            uint64_t hash = hash_in_file(fd, from, to, &bytes, &capacity);
            good = hash != 0;
            append(&whole, to, hash);
        }
    }
    g_free(bytes);
    prints_free(good ? p : &whole);
    if (good)
        *p = whole;
    return good;
}

bool prints_is_same(const prints *p, size_t piece, int fd)
{
    char *bytes = NULL;
    size_t capacity = 0;
    uint64_t from = piece > 0 ? p->all[piece - 1].end : 0;
    uint64_t hash = hash_in_file(fd, from, p->all[piece].end, &bytes, &capacity);
    g_free(bytes);
    return hash != 0 && hash == p->all[piece].hash;
}
