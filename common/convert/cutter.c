#include "config.h"

#include "convert/cutter.h"

#include <string.h>

enum {
    DETECT_SIZE = 64 << 10,
    RECORD_SIZE_MAX = 64 << 20,
    REPORT_SIZE_MAX = 1 << 20, /* maximum number of bytes of a long line in a report */
};

bool cutter_detect(cutter *c, bool now)
{
    if (c->from != NULL)
        return true;
    if (c->in.size < DETECT_SIZE && !now)
        return false;
    c->from =
        c->in.size == 0 ? netlogger_importer_kind(NL_FORMAT_UNKNOWN) : importer_kind_detect(c->in.data, c->in.size);
    return true;
}

static size_t cutter_find_line_end(const cutter *c)
{
    const char *newline = c->in.size > 0 ? memchr(c->in.data, '\n', c->in.size) : NULL;
    return newline != NULL ? (size_t)(newline + 1 - c->in.data) : 0;
}

/* Returns the number of bytes to skip: the size of the first line, or of its part that has arrived. */
static size_t cutter_skip_line(cutter *c)
{
    size_t size = cutter_find_line_end(c);
    c->in_long_line = size == 0;
    return size > 0 ? size : c->in.size;
}

static size_t cutter_find_records(const cutter *c)
{
    if (c->from->cut != NULL)
        return c->from->cut(c->in.data, c->in.size);
    const char *newline = memrchr(c->in.data, '\n', c->in.size);
    return newline != NULL ? (size_t)(newline + 1 - c->in.data) : 0;
}

cut cutter_next(cutter *c, bool all, sink *s, size_t *size)
{
    *size = 0;
    if (c->in_long_line && c->in.size > 0) {
        *size = cutter_skip_line(c);
        return CUT_OTHER;
    }
    if (!all && c->in.size == 0)
        return CUT_NOTHING;
    if (c->from->head != NULL && c->head == NULL) {
        size_t reports = s->report_count;
        *size = c->from->head(c->in.data, c->in.size, all, &c->head, s);
        if (*size > 0 || s->report_count > reports)
            return CUT_OTHER;
    }
    bool has_head = c->from->head == NULL || c->head != NULL;
    *size = !has_head ? 0 : all ? c->in.size : cutter_find_records(c);
    c->wanted = c->piece_size;
    if (has_head && (*size > 0 || all))
        return CUT_RECORDS;
    if (c->in.size <= RECORD_SIZE_MAX) {
        c->wanted = 2 * c->in.size;
        return CUT_NOTHING;
    }
    sink_malformed(s, 1, 0, "record is longer than 64 MiB", c->in.data, REPORT_SIZE_MAX);
    *size = cutter_skip_line(c);
    return CUT_OTHER;
}

void cutter_remove(cutter *c, size_t size)
{
    c->in.size -= size;
    memmove(c->in.data, c->in.data + size, c->in.size);
}

void cutter_reset(cutter *c)
{
    if (c->head != NULL)
        c->from->unshare(c->head);
    c->head = NULL;
    nl_buffer_free(&c->in);
    c->wanted = c->piece_size;
    c->in_long_line = false;
}

uint64_t cutter_count_lines(const char *data, size_t size)
{
    enum { PART = 128 }; /* a constant, so that the compiler vectorizes the inner loop, whose count fits in a byte */
    uint64_t count = 0;
    for (; size >= PART; data += PART, size -= PART) {
        uint8_t found = 0;
        for (size_t i = 0; i < PART; i++)
            found = (uint8_t)(found + (data[i] == '\n'));
        count += found;
    }
    for (size_t i = 0; i < size; i++)
        count += data[i] == '\n';
    return count;
}
