/*
 * Lines of text in memory, and of each its time and place: what is sorted when records are ordered by time.
 *
 * The text lies in one place, as it was read or as a file that is mapped there; a line is taken out of the order that
 * it came in only when it is written. The lines' list comes in pieces, in the order of the input: parts of a file are
 * read and scanned by several threads.
 */
#ifndef NLSORT_TABLE_H
#define NLSORT_TABLE_H

#include "workers.h"
#include "record/line_scanner.h"

#include <netlogger.h>

#include <sys/types.h>

/* Lines of one worker, to which it only adds. */
typedef struct line_list {
    nl_scanned_line *lines;
    size_t count;
    size_t capacity;
} line_list;

/* Some lines in the order in which they came: list[first..first + count). */
typedef struct piece {
    const line_list *list;
    size_t first;
    size_t count;
    int64_t least, most; /* of their times */
    bool ordered;
} piece;

/* Where in the text a file is mapped, in whole pages. */
typedef struct text_range {
    size_t start, end;
} text_range;

typedef struct table {
    struct table *next; /* of all tables */
    char *text;
    size_t used;        /* bytes of text */
    size_t kept;        /* of these, such as lie in memory of ours, not in a file that is mapped */
    size_t mapped;      /* up to there files may be mapped */
    size_t capacity;    /* bytes of text of files that may be mapped */
    size_t reserved;    /* that may be used: some more than that */
    size_t memory;      /* bytes that all of this may take, ordering it included */
    bool refers;        /* text of files is mapped only while it is looked at, and does not count as memory */
    text_range *ranges; /* where files are, from the first on, when it refers to them */
    size_t range_count;
    size_t range_capacity;
    size_t goal; /* bytes of text of files of which there is to be no more; 0: as many as there is memory for */
    line_list lists[WORKERS_MAX];
    piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    size_t line_count;
    bool reverse; /* times are turned round, so that the latest is the least */
} table;

/*
 * files: 0, or the bytes of all the files whose text the table is to refer to: then they lie where they lie, in the
 * kernel's cache, and are mapped piece by piece while somebody looks at them (table_fetch, table_forget).
 */
table *table_new(size_t memory, size_t files, bool reverse);
void table_free(table *t);

/* What a line takes in the lists and while they are ordered. */
enum { TABLE_LINE_COST = 2 * sizeof(nl_scanned_line) };

/* Bytes that it takes, also when being ordered. */
size_t table_size(const table *t);

/* Whether nothing more should be added: table_clear first. */
bool table_is_full(const table *t);

/* Adds one record, a line without its newline, behind all others. */
void table_add(table *t, int64_t time_ns, nl_string line);

/* Copies a line without its newline, which it must not have, to the text and returns it as it is listed. */
nl_scanned_line table_keep(table *t, int64_t time_ns, nl_string line);

/* Room for count lines more at the end of a list. */
void line_list_reserve(line_list *list, size_t count);

void line_list_free(line_list *list);

/* The lines from first on, count of them and at least one, as a piece. */
piece piece_of(const line_list *list, size_t first, size_t count);

/*
 * Says that the lines from first to the end of a list are the next piece. Turns their times round where that is
 * wanted.
 */
void table_add_piece(table *t, line_list *list, size_t first, size_t count);

/*
 * Maps as much of a file as there is memory for behind the text, from the offset at on: [*start, *end) of the text;
 * *whole is whether that is all. False when files of that kind cannot be mapped. table_keep_mapped or table_unmap is
 * next.
 */
bool table_map(table *t, int fd, off_t at, size_t *start, size_t *end, bool *whole);

/* Of what was mapped last the text up to end is kept; what is added comes behind that. */
void table_keep_mapped(table *t, size_t end);

/* What was mapped last is not wanted: the text has used bytes, as before. */
void table_unmap(table *t, size_t used);

/* Says that the text from start to end is wanted at once. */
void table_fetch(const table *t, size_t start, size_t end);

/* Says that the text from start to end is not wanted for now, if the table refers to files: it takes no memory then. */
void table_forget(const table *t, size_t start, size_t end);

/* Whether text of files is referred to: none of it may be read for long without table_forget. */
bool table_refers(const table *t);

/* Whether part of a file that was mapped was gone, or could not be read, when it was wanted. Of all tables. */
bool table_is_damaged(void);

/* Text and lines are forgotten. */
void table_clear(table *t);

/* An empty one gives its memory back. */
void table_release(table *t);

/* The lists are given back, the pieces forgotten; the text stays. */
void table_free_lists(table *t);

/* The size of a line without its newline, which for the longest its place does not say. */
size_t table_line_size(const char *text, nl_scanned_line line);

/* Has the processor fetch a line into its cache. */
static inline void table_prefetch(const char *text, nl_scanned_line line)
{
    enum { CACHE_LINE = 64 };
    const char *at = text + nl_line_offset(line);
    __builtin_prefetch(at);
    __builtin_prefetch(at + CACHE_LINE);
    __builtin_prefetch(at + nl_line_size(line));
}

#endif
