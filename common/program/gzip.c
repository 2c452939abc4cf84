#include "config.h"

#include "program/gzip.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    OUTPUT_SIZE = 128 << 10,
    MAGIC_SIZE = 2,
    GZIP_WINDOW = 15 + 16 /* for zlib: the largest window, with a gzip header */
};

typedef enum gzip_state {
    GZIP_UNKNOWN, /* the first bytes have not arrived */
    GZIP_ABSENT,  /* the content is not compressed */
    GZIP_BETWEEN, /* before a member */
    GZIP_INSIDE,  /* inside a member */
    GZIP_FAILED,
} gzip_state;

typedef struct gzip {
    nl_source_layer base;
    char *name;
    gzip_state state;
    nl_buffer head; /* bytes that arrived while the state was still unknown */
    z_stream z;
    bool more; /* the output buffer is full, and zlib has more output */
    char output[OUTPUT_SIZE];
} gzip;

bool gzip_begins(const char *bytes, size_t size)
{
    return size >= MAGIC_SIZE && memcmp(bytes, "\x1f\x8b", MAGIC_SIZE) == 0;
}

/* Determines whether the first bytes are gzip. */
static nl_status gzip_examine(gzip *g, nl_source *source, const char **data, size_t *size)
{
    while (g->head.size < MAGIC_SIZE) {
        nl_status status = nl_source_read_below(source, &g->base, data, size);
        if (status == NL_END && g->head.size > 0 && !nl_source_was_replaced(source))
            break;
        if (status == NL_END) /* the next bytes belong to a new file */
            g->head.size = 0;
        if (status != NL_OK)
            return status;
        nl_buffer_append(&g->head, *data, *size);
    }
    g->state = gzip_begins(g->head.data, g->head.size) ? GZIP_BETWEEN : GZIP_ABSENT;
    g->z.next_in = (Bytef *)g->head.data;
    g->z.avail_in = (uInt)g->head.size;
    *data = g->head.data;
    *size = g->head.size;
    return NL_OK;
}

static nl_status gzip_fail(gzip *g, const char *reason)
{
    g->state = GZIP_FAILED;
    return nl_error_set(NL_ERROR_INVALID, "%s: the gzip data is %s", g->name, reason);
}

static nl_status gzip_refill(gzip *g, nl_source *source)
{
    const char *data;
    size_t size;
    nl_status status = nl_source_read_below(source, &g->base, &data, &size);
    if (status == NL_OK) {
        g->z.next_in = (Bytef *)data;
        g->z.avail_in = (uInt)size;
    } else if (status == NL_END && nl_source_was_replaced(source)) {
        if (g->state == GZIP_INSIDE) /* the file was replaced inside a member; continue with the new file */
            program_error("%s: the gzip data was truncated before the file was replaced", g->name);
        g->state = GZIP_UNKNOWN;
        g->head.size = 0;
    } else if (status == NL_END && g->state == GZIP_INSIDE) {
        return gzip_fail(g, "truncated");
    }
    return status;
}

/* Begins the next member. Skips zeros, which may follow the last member, as on tapes. */
static nl_status gzip_begin_member(gzip *g)
{
    while (g->z.avail_in > 0 && *g->z.next_in == '\0') {
        g->z.next_in++;
        g->z.avail_in--;
    }
    if (g->z.avail_in == 0)
        return NL_OK;
    g->state = GZIP_INSIDE;
    return inflateReset2(&g->z, GZIP_WINDOW) == Z_OK ? NL_OK : gzip_fail(g, "unreadable");
}

static nl_status gzip_inflate(gzip *g, nl_source *source, const char **data, size_t *size)
{
    for (;;) {
        nl_status status = g->state == GZIP_BETWEEN ? gzip_begin_member(g) : NL_OK;
        if (status == NL_OK && g->z.avail_in == 0 && !g->more)
            status = gzip_refill(g, source);
        if (status != NL_OK)
            return status;
        if (g->state != GZIP_INSIDE)
            continue;
        g->z.next_out = (Bytef *)g->output;
        g->z.avail_out = OUTPUT_SIZE;
        g->more = false;
        int result = inflate(&g->z, Z_NO_FLUSH);
        if (result == Z_STREAM_END)
            g->state = GZIP_BETWEEN;
        else if (result != Z_OK && result != Z_BUF_ERROR)
            return gzip_fail(g, "damaged");
        g->more = g->state == GZIP_INSIDE && g->z.avail_out == 0;
        *data = g->output;
        *size = OUTPUT_SIZE - g->z.avail_out;
        if (*size > 0)
            return NL_OK;
    }
}

static nl_status gzip_read(nl_source_layer *layer, nl_source *source, const char **data, size_t *size)
{
    gzip *g = (gzip *)layer;
    if (g->state == GZIP_UNKNOWN) {
        nl_status status = gzip_examine(g, source, data, size);
        if (status != NL_OK || g->state == GZIP_ABSENT)
            return status;
    }
    if (g->state == GZIP_FAILED)
        return NL_END;
    if (g->state != GZIP_ABSENT)
        return gzip_inflate(g, source, data, size);
    nl_status status = nl_source_read_below(source, layer, data, size);
    if (status == NL_END && nl_source_was_replaced(source)) {
        g->state = GZIP_UNKNOWN;
        g->head.size = 0;
    }
    return status;
}

static void gzip_close(nl_source_layer *layer)
{
    gzip *g = (gzip *)layer;
    inflateEnd(&g->z);
    nl_buffer_free(&g->head);
    free(g->name);
    free(g);
}

void gzip_add(nl_source *source, const char *name)
{
    gzip *g = nl_memory_check(calloc(1, sizeof *g));
    if (inflateInit2(&g->z, GZIP_WINDOW) != Z_OK)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    g->name = program_copy(name);
    g->base = (nl_source_layer){.read = gzip_read, .close = gzip_close};
    nl_source_add_layer(source, &g->base);
}
