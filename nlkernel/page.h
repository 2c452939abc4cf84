/*
 * The pages of the kernel's ring buffer (include/linux/ring_buffer.h).
 *
 * A page contains the time of its start, the number of its used bytes, and events. A word before each event contains
 * the event's size and the nanoseconds since the previous event. If the kernel has overwritten events before the page,
 * the number of these events follows the last event, unless the page has no space for the number. The bytes may come
 * from a file with invalid content. The module therefore checks all sizes and never reads beyond the page.
 * Thread-safe.
 */
#ifndef NLKERNEL_PAGE_H
#define NLKERNEL_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The layout of a page's header, from the file events/header_page. */
typedef struct page_layout {
    size_t commit_offset, commit_size; /* position, in bytes, of the word with the number of used bytes and the flags */
    size_t data_offset;
} page_layout;

typedef struct page_walk {
    const char *at, *end;
    uint64_t time_ns; /* time of the latest event, on the trace clock */
    bool missed;      /* the kernel has overwritten events before this page */
    bool counted;     /* missed_count contains the number of overwritten events */
    uint64_t missed_count;
} page_walk;

typedef struct page_event {
    const char *data;
    size_t size;
    uint64_t time_ns;
} page_event;

enum { PAGE_TIME_SIZE = 8 };

#define PAGE_COMMIT_MISSED (UINT32_C(1) << 31)
#define PAGE_COMMIT_COUNTED (UINT32_C(1) << 30)

/* Parses the text of events/header_page. Returns false if the text is invalid. */
static inline bool page_layout_read(page_layout *layout, const char *text)
{
    unsigned commit_offset, commit_size, data_offset, data_size;
    const char *commit = strstr(text, " commit;"), *data = strstr(text, " data;");
    if (commit == NULL || data == NULL ||
        sscanf(commit, " commit; offset:%u; size:%u;", &commit_offset, &commit_size) != 2 ||
        sscanf(data, " data; offset:%u; size:%u;", &data_offset, &data_size) != 2 || commit_size > 8 ||
        commit_size < 4 || commit_offset < PAGE_TIME_SIZE || commit_offset > 64 ||
        commit_offset + commit_size > data_offset || data_offset > 64)
        return false;
    *layout = (page_layout){commit_offset, commit_size, data_offset};
    return true;
}

static inline uint32_t page_word(const char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Begins to read a page of `size` bytes. Returns false if the page has no events. */
static inline bool page_begin(page_walk *walk, const page_layout *layout, const char *page, size_t size)
{
    *walk = (page_walk){0};
    if (size < layout->data_offset)
        return false;
    memcpy(&walk->time_ns, page, PAGE_TIME_SIZE); /* the time comes first in every layout */
    uint64_t whole = 0;
    memcpy(&whole, page + layout->commit_offset, layout->commit_size);
    uint32_t commit = (uint32_t)whole, used = commit & (PAGE_COMMIT_COUNTED - 1);
    if (used > size - layout->data_offset)
        used = (uint32_t)(size - layout->data_offset);
    walk->at = page + layout->data_offset;
    walk->end = walk->at + used;
    walk->missed = commit & PAGE_COMMIT_MISSED;
    walk->counted =
        walk->missed && commit & PAGE_COMMIT_COUNTED && size - layout->data_offset - used >= layout->commit_size;
    if (walk->counted)
        memcpy(&walk->missed_count, walk->end, layout->commit_size);
    return used > 0;
}

/* Gets the next event, whose data stays in the page. Returns false at the end of the page or of its valid bytes. */
static inline bool page_next(page_walk *walk, page_event *event)
{
    enum { PADDING = 29, TIME_EXTEND = 30, TIME_STAMP = 31 };
    const uint64_t stamp_bits = (UINT64_C(1) << 59) - 1;
    while (walk->end - walk->at >= 8) {
        uint32_t word = page_word(walk->at), type = word & 31, delta = word >> 5, next = page_word(walk->at + 4);
        size_t left = (size_t)(walk->end - walk->at) - 4, size = type * 4;
        const char *data = walk->at + 4;
        if (type == TIME_EXTEND || type == TIME_STAMP) {
            uint64_t wide = (uint64_t)next << 27 | delta;
            walk->time_ns = type == TIME_EXTEND ? walk->time_ns + wide : (walk->time_ns & ~stamp_bits) | wide;
            walk->at += 8;
            continue;
        }
        if (type == PADDING && delta == 0)
            return false;
        if (type == PADDING)
            size = next;
        if (type == 0) {
            size = next >= 4 ? ((size_t)next + 3) / 4 * 4 - 4 : 0;
            data += 4;
            left -= 4;
        }
        if (size > left)
            return false;
        walk->time_ns += delta;
        walk->at = data + size;
        if (type == PADDING)
            continue;
        *event = (page_event){data, size, walk->time_ns};
        return true;
    }
    return false;
}

#endif
