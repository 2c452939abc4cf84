#include "config.h"

#include "otlp_open_spans.h"

#include "base/error.h"
#include "base/hash_bytes.h"
#include "base/memory.h"
#include "program/program.h"
#include "record/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_SIZE = 80 };

typedef struct open_span {
    unsigned char id[OPEN_SPAN_ID_SIZE]; /* the first member; the key of the table */
    GList link;                          /* in the list of all spans */
    int64_t since_ns;                    /* time at which the span was added (nl_time_now_ns) */
    uint32_t points;                     /* number of records after the start */
    uint32_t dropped;
    nl_buffer records; /* packed records, each after its size (4 bytes) */
} open_span;

/* The beginning of a span in the file. The records of the span follow. */
typedef struct file_entry {
    unsigned char id[OPEN_SPAN_ID_SIZE];
    int64_t since_ns;
    uint32_t points, dropped;
    uint64_t size;
} file_entry;

struct open_spans {
    char *path, *new_path;
    GHashTable *table;
    GQueue order; /* from the oldest span to the latest */
    size_t bytes;
    output_place place;
    bool changed; /* the spans have changed since the file was written */
};

static uint64_t id_seed; /* of all tables */

static guint hash_id(gconstpointer id)
{
    return (guint)hash_bytes(id_seed, id, OPEN_SPAN_ID_SIZE);
}

static gboolean equal_ids(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, OPEN_SPAN_ID_SIZE) == 0;
}

static void open_span_append(open_spans *o, open_span *span, nl_string bytes)
{
    o->bytes -= span->records.capacity;
    nl_buffer_append(&span->records, bytes.data, bytes.size);
    o->bytes += span->records.capacity;
    o->changed = true;
}

static void open_span_append_record(open_spans *o, open_span *span, nl_string packed)
{
    uint32_t size = (uint32_t)packed.size;
    open_span_append(o, span, (nl_string){(const char *)&size, sizeof size});
    open_span_append(o, span, packed);
}

/* Adds a span without records. */
static open_span *open_span_add(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], int64_t since_ns)
{
    open_span *span = nl_memory_check(calloc(1, sizeof *span));
    span->since_ns = since_ns;
    span->link.data = span;
    memcpy(span->id, id, OPEN_SPAN_ID_SIZE);
    g_hash_table_add(o->table, span);
    g_queue_push_tail_link(&o->order, &span->link);
    o->bytes += sizeof *span;
    o->changed = true;
    return span;
}

static void open_span_remove(open_spans *o, open_span *span)
{
    g_queue_unlink(&o->order, &span->link);
    g_hash_table_remove(o->table, span);
    o->bytes -= sizeof *span + span->records.capacity;
    o->changed = true;
    nl_buffer_free(&span->records);
    free(span);
}

/* ---- the file ---- */

/*
 * Reads the content of the file: a line with the place, the number of spans, and the size and checksum of the rest;
 * then the spans. Returns false if the content is malformed.
 */
static bool parse_open_spans(open_spans *o, const char *data, size_t size)
{
    uint64_t count, content;
    uint32_t crc;
    if (size < HEAD_SIZE ||
        sscanf(data, "open-spans 2 %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNx32, &o->place.number,
               &o->place.offset, &count, &content, &crc) != 5 ||
        content != size - HEAD_SIZE || nl_crc32c(0, data + HEAD_SIZE, content) != crc)
        return false;
    const char *at = data + HEAD_SIZE, *end = data + size;
    for (; count > 0; count--) {
        file_entry entry;
        if ((size_t)(end - at) < sizeof entry)
            return false;
        memcpy(&entry, at, sizeof entry);
        at += sizeof entry;
        if (entry.size > (size_t)(end - at) || g_hash_table_contains(o->table, entry.id))
            return false;
        open_span *span = open_span_add(o, entry.id, entry.since_ns);
        span->points = entry.points;
        span->dropped = entry.dropped;
        open_span_append(o, span, (nl_string){at, entry.size});
        at += entry.size;
    }
    return at == end;
}

/*
 * Renames a file that is malformed or of another version, because the next save would replace it, and reports the new
 * name. Returns NL_FAILED if the file cannot be renamed.
 */
static nl_status keep_unread(const open_spans *o)
{
    char *kept = program_format("%s.unread-%" PRId64, o->path, nl_time_now_ns());
    nl_status status = NL_OK;
    if (rename(o->path, kept) != 0)
        status = nl_error_set_errno("%s: malformed or written by another version of netlogd; rename the file", o->path);
    else
        program_error(
            "%s: malformed or written by another version of netlogd, so netlogd sends the open spans without their "
            "starts; netlogd renamed the file to %s, which you can remove",
            o->path, kept);
    free(kept);
    return status;
}

static nl_status read_open_spans(open_spans *o)
{
    gchar *data;
    gsize size;
    GError *error = NULL;
    if (access(o->path, F_OK) != 0 && errno == ENOENT)
        return NL_OK;
    if (!g_file_get_contents(o->path, &data, &size, &error)) {
        nl_error_set(NL_ERROR_SYSTEM, "%s", error->message);
        g_error_free(error);
        return NL_FAILED;
    }
    nl_status status = NL_OK;
    if (!parse_open_spans(o, data, size)) {
        status = keep_unread(o);
        while (o->order.head != NULL)
            open_span_remove(o, o->order.head->data);
        o->place = (output_place){0};
    }
    g_free(data);
    o->changed = false;
    return status;
}

static nl_status write_open_spans(const open_spans *o, int fd, nl_string head, nl_string content, bool sync)
{
    const nl_string parts[] = {head, content};
    for (size_t i = 0; i < 2; i++)
        for (size_t at = 0; at < parts[i].size;) {
            ssize_t put = write(fd, parts[i].data + at, parts[i].size - at);
            if (put < 0 && errno != EINTR)
                return nl_error_set_errno("write %s", o->new_path);
            at += put > 0 ? (size_t)put : 0;
        }
    return sync && fdatasync(fd) != 0 ? nl_error_set_errno("write %s", o->new_path) : NL_OK;
}

nl_status open_spans_save(open_spans *o, output_place place, bool sync)
{
    char head[HEAD_SIZE + 1];
    nl_buffer content = {0};
    if (!o->changed)
        return NL_OK;
    for (const GList *at = o->order.head; at != NULL; at = at->next) {
        const open_span *span = at->data;
        file_entry entry = {
            .since_ns = span->since_ns, .points = span->points, .dropped = span->dropped, .size = span->records.size};
        memcpy(entry.id, span->id, OPEN_SPAN_ID_SIZE);
        nl_buffer_append(&content, &entry, sizeof entry);
        nl_buffer_append(&content, span->records.data, span->records.size);
    }
    int size = snprintf(head, sizeof head, "open-spans 2 %" PRIu64 " %" PRIu64 " %u %zu %08" PRIx32, place.number,
                        place.offset, o->order.length, content.size, nl_crc32c(0, content.data, content.size));
    memset(head + size, ' ', HEAD_SIZE - (size_t)size);
    head[HEAD_SIZE - 1] = '\n';
    int fd = open(o->new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    nl_status status =
        fd >= 0 ? write_open_spans(o, fd, (nl_string){head, HEAD_SIZE}, (nl_string){content.data, content.size}, sync)
                : nl_error_set_errno("open %s", o->new_path);
    if (fd >= 0)
        close(fd);
    if (status == NL_OK && rename(o->new_path, o->path) != 0)
        status = nl_error_set_errno("rename %s", o->new_path);
    nl_buffer_free(&content);
    if (status == NL_OK) {
        o->place = place;
        o->changed = false;
    }
    return status;
}

output_place open_spans_place(const open_spans *o)
{
    return o->place;
}

/* ---- spans ---- */

bool open_spans_add(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], int64_t now_ns, nl_string packed)
{
    if (g_hash_table_contains(o->table, id))
        return false;
    open_span_append_record(o, open_span_add(o, id, now_ns), packed);
    return true;
}

bool open_spans_find(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], nl_string *packed)
{
    const open_span *span = g_hash_table_lookup(o->table, id);
    nl_string records = {0};
    if (span != NULL)
        records = (nl_string){span->records.data, span->records.size};
    return open_spans_next(&records, packed);
}

bool open_spans_append(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], nl_string packed)
{
    open_span *span = g_hash_table_lookup(o->table, id);
    if (span->points == OPEN_SPAN_POINTS_MAX || span->records.size + packed.size > OPEN_SPAN_BYTES_MAX) {
        span->dropped++;
        o->changed = true;
        return false;
    }
    span->points++;
    open_span_append_record(o, span, packed);
    return true;
}

uint32_t open_spans_take(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], nl_buffer *records)
{
    open_span *span = g_hash_table_lookup(o->table, id);
    uint32_t dropped = span->dropped;
    nl_buffer_append(records, span->records.data, span->records.size);
    open_span_remove(o, span);
    return dropped;
}

bool open_spans_take_excess(open_spans *o, int64_t now_ns, nl_buffer *records)
{
    open_span *oldest = o->order.head != NULL ? o->order.head->data : NULL;
    if (oldest == NULL || (o->order.length <= OPEN_SPANS_MAX && o->bytes <= OPEN_SPANS_BYTES_MAX &&
                           now_ns - oldest->since_ns < OPEN_SPANS_S * NL_NS_PER_SECOND))
        return false;
    nl_buffer_append(records, oldest->records.data, oldest->records.size);
    open_span_remove(o, oldest);
    return true;
}

bool open_spans_next(nl_string *records, nl_string *packed)
{
    uint32_t size;
    if (records->size < sizeof size)
        return false;
    memcpy(&size, records->data, sizeof size);
    if (size > records->size - sizeof size)
        return false;
    *packed = (nl_string){records->data + sizeof size, size};
    *records = (nl_string){packed->data + size, records->size - sizeof size - size};
    return true;
}

open_spans *open_spans_new(const char *spool)
{
    if (id_seed == 0)
        id_seed = hash_seed();
    open_spans *o = nl_memory_check(calloc(1, sizeof *o));
    o->path = program_format("%s/open-spans", spool);
    o->new_path = program_format("%s/open-spans.new", spool);
    o->table = g_hash_table_new(hash_id, equal_ids);
    g_queue_init(&o->order);
    if (read_open_spans(o) == NL_OK)
        return o;
    open_spans_free(o);
    return NULL;
}

void open_spans_free(open_spans *o)
{
    if (o == NULL)
        return;
    while (o->order.head != NULL)
        open_span_remove(o, o->order.head->data);
    g_hash_table_destroy(o->table);
    free(o->path);
    free(o->new_path);
    free(o);
}
