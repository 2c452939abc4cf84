#include "config.h"

#include "table.h"

#include "big.h"
#include "program/program.h"
#include "base/memory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* since Linux 5.14; some versions of libc lack it */
#endif

enum {
    SLACK = 128 << 20,      /* additional address space in bytes, for a last record */
    GROWTH_MIN = 4 << 10,   /* minimum number of lines for which a list gets memory */
    PIECE_LINES = 64 << 10, /* maximum number of lines in a piece of records that were added one by one */
    MOVED_LINES = 16 << 10, /* maximum number of lines in a piece from blocks, whose lines are shorter than lines of
                             * text */
};

/* State for the signal handler: the list of all tables, and whether a mapped page was missing. */
static table *tables;
static volatile sig_atomic_t damaged;

static const table *table_at(const char *at)
{
    const table *t = tables;
    while (t != NULL && (at < t->text || at >= t->text + t->reserved))
        t = t->next;
    return t;
}

/*
 * Replaces a missing page of a mapped file with zeros. A page is missing if the file was truncated or the disk failed.
 * At the end, nlsort reports the damage and can discard the output.
 */
static void on_missing_page(int number, siginfo_t *info, void *context)
{
    (void)context;
    char *at = info->si_addr;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const table *t = table_at(at);
    if (t != NULL && mmap(at - (size_t)(at - t->text) % page, page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
        damaged = 1;
        return;
    }
    signal(number, SIG_DFL); /* the program repeats the access, and the second signal ends the program */
}

static void guard(table *t)
{
    t->next = tables;
    tables = t;
    struct sigaction action = {.sa_sigaction = on_missing_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

bool table_is_damaged(void)
{
    return damaged;
}

table *table_new(size_t memory, size_t files, bool reverse)
{
    table *t = nl_memory_check(calloc(1, sizeof *t));
    t->memory = memory;
    t->refers = files > 0;
    t->capacity = t->refers ? files + memory : memory;
    t->reserved = t->capacity + SLACK;
    t->text = big_new(t->reserved);
    t->reverse = reverse;
    guard(t);
    return t;
}

void table_free_lists(table *t)
{
    for (size_t i = 0; i < WORKERS_MAX; i++)
        line_list_free(&t->lists[i]);
    t->piece_count = 0;
}

void table_free(table *t)
{
    table **link = &tables;
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    table_free_lists(t);
    big_free(t->text, t->reserved);
    free(t->pieces);
    free(t->ranges);
    free(t);
}

void table_clear(table *t)
{
    for (size_t i = 0; i < WORKERS_MAX; i++)
        t->lists[i].count = 0;
    t->piece_count = 0;
    t->line_count = 0;
    t->kept = 0;
    table_unmap(t, 0);
}

void table_release(table *t)
{
    table_free_lists(t);
    madvise(t->text, t->reserved, MADV_DONTNEED);
}

static size_t round_up(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static void add_range(table *t, size_t start, size_t end)
{
    if (!t->refers)
        return;
    NL_ARRAY_GROW(t->ranges, t->range_count, t->range_capacity);
    t->ranges[t->range_count++] = (text_range){start, end};
}

bool table_map(table *t, int fd, off_t at, size_t *start, size_t *end, bool *whole)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (size_t)at % page, place = round_up(t->used);
    size_t left = status.st_size > at ? (size_t)(status.st_size - at) : 0,
           capacity = t->capacity > place ? t->capacity - place : 0;
    size_t size = left < capacity ? left : capacity;
    *start = place + before;
    *end = *start + size;
    *whole = size == left;
    if (size == 0)
        return true;
    if (mmap(t->text + place, before + size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, at - (off_t)before) == MAP_FAILED)
        return false;
    t->mapped = round_up(*end);
    add_range(t, place, t->mapped);
    return true;
}

/* Replaces the mapped files from the offset `from` in the text with empty memory. */
static void unmap_from(table *t, size_t from)
{
    if (t->mapped > from && mmap(t->text + from, t->mapped - from, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        nl_memory_failed();
    t->mapped = t->mapped > from ? from : t->mapped;
}

void table_keep_mapped(table *t, size_t end)
{
    t->used = round_up(end); /* the rest of the file's last page cannot contain other text */
    if (t->range_count > 0)
        t->ranges[t->range_count - 1].end = t->used;
    unmap_from(t, t->used);
}

void table_unmap(table *t, size_t used)
{
    t->used = used;
    while (t->range_count > 0 && t->ranges[t->range_count - 1].end > used)
        t->range_count--;
    unmap_from(t, round_up(used));
}

void table_fetch(const table *t, size_t start, size_t end)
{
    size_t from = start / (size_t)sysconf(_SC_PAGESIZE) * (size_t)sysconf(_SC_PAGESIZE);
    madvise(t->text + from, end - from,
            MADV_POPULATE_READ); /* older kernels reject this advice and read page by page */
}

void table_forget(const table *t, size_t start, size_t end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = start / page * page, to = round_up(end);
    for (size_t i = 0; i < t->range_count; i++) {
        text_range r = t->ranges[i];
        size_t first = from > r.start ? from : r.start, last = to < r.end ? to : r.end;
        if (first < last)
            madvise(t->text + first, last - first, MADV_DONTNEED);
    }
}

bool table_refers(const table *t)
{
    return t->range_count > 0;
}

size_t table_size(const table *t)
{
    return (t->refers ? t->kept : t->used) + t->line_count * TABLE_LINE_COST;
}

bool table_is_full(const table *t)
{
    return table_size(t) >= t->memory;
}

void line_list_reserve(line_list *list, size_t count)
{
    if (list->count + count <= list->capacity)
        return;
    size_t capacity = list->capacity + list->capacity / 2;
    if (capacity < list->count + count + GROWTH_MIN)
        capacity = list->count + count + GROWTH_MIN;
    list->lines = big_resize(list->lines, list->capacity * sizeof *list->lines, capacity * sizeof *list->lines);
    list->capacity = capacity;
}

void line_list_free(line_list *list)
{
    big_free(list->lines, list->capacity * sizeof *list->lines);
    *list = (line_list){0};
}

piece piece_of(const line_list *list, size_t first, size_t count)
{
    const nl_scanned_line *lines = list->lines + first;
    piece p = {list, first, count, lines[0].time_ns, lines[0].time_ns, true};
    for (size_t i = 1; i < count; i++) {
        int64_t time_ns = lines[i].time_ns;
        p.ordered &= time_ns >= lines[i - 1].time_ns;
        p.minimum = time_ns < p.minimum ? time_ns : p.minimum;
        p.maximum = time_ns > p.maximum ? time_ns : p.maximum;
    }
    return p;
}

static piece *new_piece(table *t)
{
    NL_ARRAY_GROW(t->pieces, t->piece_count, t->piece_capacity);
    return &t->pieces[t->piece_count++];
}

void table_add_piece(table *t, line_list *list, size_t first, size_t count)
{
    if (count == 0)
        return;
    for (size_t i = first; t->reverse && i < first + count; i++)
        list->lines[i].time_ns = ~list->lines[i].time_ns;
    piece p = piece_of(list, first, count);
    *new_piece(t) = p;
    t->line_count += count;
}

nl_scanned_line table_keep(table *t, int64_t time_ns, nl_string line)
{
    if (line.size + 1 > t->reserved - t->used)
        program_fail(PROGRAM_PROBLEM, "a record of %zu bytes is too large", line.size);
    char *at = t->text + t->used;
    memcpy(at, line.data, line.size);
    at[line.size] = '\n';
    nl_scanned_line kept = {time_ns,
                            nl_line_place(t->used, line.size < NL_LINE_LONGEST ? line.size : NL_LINE_LONGEST, true)};
    t->used += line.size + 1;
    t->kept += line.size + 1;
    return kept;
}

void table_add(table *t, int64_t time_ns, nl_string line)
{
    line_list *list = &t->lists[0];
    line_list_reserve(list, 1);
    size_t at = list->count++;
    list->lines[at] = table_keep(t, t->reverse ? ~time_ns : time_ns, line);
    time_ns = list->lines[at].time_ns;
    piece *p = t->piece_count > 0 ? &t->pieces[t->piece_count - 1] : NULL;
    t->line_count++;
    if (p == NULL || p->list != list || p->first + p->count != at || p->count >= PIECE_LINES) {
        *new_piece(t) = (piece){list, at, 1, time_ns, time_ns, true};
        return;
    }
    p->ordered &= list->lines[at - 1].time_ns <= time_ns;
    p->minimum = time_ns < p->minimum ? time_ns : p->minimum;
    p->maximum = time_ns > p->maximum ? time_ns : p->maximum;
    p->count++;
}

void table_add_moved(table *t, int64_t time_ns, size_t size)
{
    line_list *list = &t->lists[0];
    list->lines[list->count++] = (nl_scanned_line){time_ns, nl_line_place(t->used, size, true)};
    t->text[t->used + size] = '\n';
    t->used += size + 1;
    t->kept += size + 1;
}

void table_add_lines(table *t, size_t first)
{
    line_list *list = &t->lists[0];
    table_add_piece(t, list, first, list->count - first);
    piece *last = t->piece_count > 0 ? &t->pieces[t->piece_count - 1] : NULL, *before = last - 1;
    if (t->piece_count < 2 || before->list != list || before->first + before->count != last->first ||
        last->first + last->count != list->count || before->count + last->count > MOVED_LINES)
        return;
    before->ordered &= last->ordered && list->lines[last->first - 1].time_ns <= list->lines[last->first].time_ns;
    before->minimum = last->minimum < before->minimum ? last->minimum : before->minimum;
    before->maximum = last->maximum > before->maximum ? last->maximum : before->maximum;
    before->count += last->count;
    t->piece_count--;
}

size_t table_line_size(const char *text, nl_scanned_line line)
{
    size_t size = nl_line_size(line);
    if (size == NL_LINE_LONGEST)
        size = (size_t)((const char *)rawmemchr(text + nl_line_offset(line), '\n') - (text + nl_line_offset(line)));
    return size;
}
