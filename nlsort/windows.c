#include "config.h"

#include "windows.h"

#include "big.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    AHEAD = 12, /* lines to prefetch */
    CACHE_LINE = 64,
    PREFETCHED = 4 * CACHE_LINE, /* maximum number of bytes to prefetch at a line's destination */
    MANY = 4 * 4 << 10, /* if a window has more bytes per copied line, only parts of the window are prefetched */
};

/* A line and its destination. */
typedef struct moved_line {
    uint64_t place;
    uint64_t to;
} moved_line;

_Static_assert(sizeof(moved_line) == WINDOWS_LINE_COST, "WINDOWS_LINE_COST must be the size of a line");

static size_t window_of(nl_scanned_line line)
{
    return nl_line_offset(line) / WINDOWS_COST;
}

static void windows_reserve(windows *w, size_t lines)
{
    size_t size = lines * sizeof *w->moved;
    if (size > w->capacity) {
        w->moved = big_resize(w->moved, w->capacity, size);
        w->capacity = size;
    }
    if (w->count > w->end_capacity) {
        w->ends = nl_memory_check(realloc(w->ends, w->count * sizeof *w->ends));
        w->end_capacity = w->count;
    }
}

void windows_distribute(windows *w, const table *t, const nl_scanned_line *lines, size_t count)
{
    w->count = t->used / WINDOWS_COST + 1;
    windows_reserve(w, count);
    memset(w->ends, 0, w->count * sizeof *w->ends);
    for (size_t i = 0; i < count; i++)
        w->ends[window_of(lines[i])]++;
    for (size_t i = 0, sum = 0; i < w->count; i++) {
        size_t own = w->ends[i];
        w->ends[i] = sum;
        sum += own;
    }
    size_t to = 0;
    for (size_t i = 0; i < count; i++) { /* before this loop, ends[i] is the start of the lines of window i */
        w->moved[w->ends[window_of(lines[i])]++] = (moved_line){lines[i].place, to};
        to += table_line_size(t->text, lines[i]) + 1;
    }
}

static nl_scanned_line line_at(moved_line m)
{
    return (nl_scanned_line){.place = m.place};
}

void windows_copy(const windows *w, const table *t, size_t window, char *out)
{
    size_t first = window > 0 ? w->ends[window - 1] : 0, count = w->ends[window] - first;
    if (count == 0)
        return;
    const moved_line *moved = w->moved + first;
    size_t start = window * WINDOWS_COST, end = start + WINDOWS_COST < t->used ? start + WINDOWS_COST : t->used;
    if (WINDOWS_COST / count < MANY)
        table_fetch(t, start, end);
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count) {
            nl_scanned_line ahead = line_at(moved[i + AHEAD]);
            table_prefetch(t->text, ahead);
            for (size_t at = 0; at < nl_line_size(ahead) && at < PREFETCHED; at += CACHE_LINE)
                __builtin_prefetch(out + moved[i + AHEAD].to + at, 1);
        }
        nl_scanned_line line = line_at(moved[i]);
        size_t size = table_line_size(t->text, line);
        memcpy(out + moved[i].to, t->text + nl_line_offset(line), size);
        out[moved[i].to + size] = '\n';
        end = nl_line_offset(line) + size > end ? nl_line_offset(line) + size : end;
    }
    table_forget(t, start, end);
}

void windows_free(windows *w)
{
    big_free(w->moved, w->capacity);
    free(w->ends);
    *w = (windows){0};
}
