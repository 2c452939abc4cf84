/*
 * Lines of text in memory, with the time and position of each line, for sorting by time.
 *
 * The text is contiguous. Each part of the text was read from a log, or is a mapped file. Sorting does not move the
 * text. Several threads read and scan parts of a file, so each thread has a list of lines. Pieces of these lists, in
 * the order of the input, form the lines of the table. Only one thread at a time may use a table, unless a function
 * states otherwise.
 */
#ifndef NLSORT_TABLE_H
#define NLSORT_TABLE_H

#include "workers.h"
#include "record/line_scanner.h"

#include <netlogger.h>

#include <sys/types.h>

/* The lines that one worker has found. The list only grows. */
typedef struct line_list {
    nl_scanned_line *lines;
    size_t count;
    size_t capacity;
} line_list;

/* Consecutive input lines: list[first..first + count). */
typedef struct piece {
    const line_list *list;
    size_t first;
    size_t count;
    int64_t minimum, maximum; /* minimum and maximum time */
    bool ordered;
} piece;

/* The pages of a mapped file in the text. */
typedef struct text_range {
    size_t start, end;
} text_range;

typedef struct table {
    struct table *next; /* next table in the list of all tables */
    char *text;
    size_t used;        /* size of the text in bytes */
    size_t kept;        /* size of the text in bytes, without mapped files */
    size_t mapped;      /* offset of the end of the mapped files */
    size_t capacity;    /* maximum bytes of text from files */
    size_t reserved;    /* size of the address space in bytes: `capacity` and some slack */
    size_t memory;      /* maximum bytes of memory, including the memory for sorting */
    bool refers;        /* the pages of files are in memory only during access, and do not count as memory */
    text_range *ranges; /* the ranges of the files, if the table refers to files */
    size_t range_count;
    size_t range_capacity;
    size_t goal; /* maximum number of bytes of text from files in the current run; 0: only the memory limits the run */
    line_list lists[WORKERS_MAX];
    piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    size_t line_count;
    bool reverse; /* times are inverted, so that the latest time is the minimum */
} table;

/*
 * Returns a new table. `memory` is the maximum memory in bytes. `files` is 0, or the total size in bytes of the files
 * to which the table refers. The text of these files stays in the kernel's cache, and uses the table's memory only
 * during access (table_fetch, table_forget). If `reverse` is true, the latest time comes first.
 */
table *table_new(size_t memory, size_t files, bool reverse);
void table_free(table *t);

/* Bytes of memory for each line, for the lists and for sorting. */
enum { TABLE_LINE_COST = 2 * sizeof(nl_scanned_line) };

/* Returns the number of bytes of memory that are used, including the memory for sorting. */
size_t table_size(const table *t);

bool table_is_full(const table *t);

/* Appends a copy of a record's line. `line` does not include the newline. */
void table_add(table *t, int64_t time_ns, nl_string line);

/*
 * table_add_moved adds a line of `size` bytes that the caller has written at the end of the text. The function appends
 * a newline to the text, and the line to lists[0], in which the caller has reserved memory. table_add_lines then
 * appends the lines of lists[0] from index `first` to the table.
 */
void table_add_moved(table *t, int64_t time_ns, size_t size);
void table_add_lines(table *t, size_t first);

/*
 * Copies a line to the end of the text, with a newline. `line` does not include the newline. Returns an entry for a
 * list of lines.
 */
nl_scanned_line table_keep(table *t, int64_t time_ns, nl_string line);

/* Reserves memory for `count` more lines. */
void line_list_reserve(line_list *list, size_t count);

void line_list_free(line_list *list);

/* Returns a piece of `count` lines that begins at index `first` of a list. `count` must be at least 1. */
piece piece_of(const line_list *list, size_t first, size_t count);

/* Appends the lines from `first` to the end of a list as a piece. If the table is reversed, inverts their times. */
void table_add_piece(table *t, line_list *list, size_t first, size_t count);

/*
 * Maps a file from offset `at` to the end of the text, as far as the memory permits. The file becomes the range
 * [*start, *end) of the text. Sets *whole to whether the end of the file is mapped. Returns false if the file cannot be
 * mapped. Afterwards, call table_keep_mapped or table_unmap.
 */
bool table_map(table *t, int fd, off_t at, size_t *start, size_t *end, bool *whole);

/* Makes the mapped bytes up to `end` part of the text. */
void table_keep_mapped(table *t, size_t end);

/*
 * Shortens the text to `used` bytes, and unmaps the files after this position. To undo table_map, pass the size of the
 * text before that call.
 */
void table_unmap(table *t, size_t used);

/* Loads the mapped text from `start` to `end` into memory. Does nothing on Linux before 5.14. */
void table_fetch(const table *t, size_t start, size_t end);

/* Frees the memory of the text from `start` to `end`, if the table refers to files. */
void table_forget(const table *t, size_t start, size_t end);

/* Returns whether the table refers to files. If so, call table_forget after access. */
bool table_refers(const table *t);

/* Returns whether a part of any table's mapped files was missing or unreadable. */
bool table_is_damaged(void);

void table_clear(table *t);

/* Frees the memory of an empty table. */
void table_release(table *t);

/* Frees the lists and pieces, but not the text. */
void table_free_lists(table *t);

/*
 * Returns the size of a line in bytes, without its newline. The entries of very long lines do not contain the size, so
 * the function searches for the newline.
 */
size_t table_line_size(const char *text, nl_scanned_line line);

/* Prefetches the beginning and the end of a line into the processor's cache. */
static inline void table_prefetch(const char *text, nl_scanned_line line)
{
    enum { CACHE_LINE = 64 };
    const char *at = text + nl_line_offset(line);
    __builtin_prefetch(at);
    __builtin_prefetch(at + CACHE_LINE);
    __builtin_prefetch(at + nl_line_size(line));
}

#endif
