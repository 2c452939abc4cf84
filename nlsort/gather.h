/*
 * Collects sorted lines from memory or files and passes them on in pieces. One thread fetches lines while another
 * writes.
 */
#ifndef NLSORT_GATHER_H
#define NLSORT_GATHER_H

#include "table.h"
#include "record/line_scanner.h"

/* Gets lines, each with its newline. lines has their places in text. */
typedef void gather_sink(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count);

/*
 * Returns the bytes of text, plus WINDOWS_LINE_COST for each line, that a thread fetches in one step from files that
 * are read again; 0 if the memory does not suffice for the number of lines.
 */
size_t gather_share(size_t memory, size_t lines);

/*
 * Calls sink with all lines in order, in any thread, one at a time, with at most piece bytes. May free the lists of a
 * table whose text is in files. with_places: the sink gets the places of the lines; otherwise NULL.
 */
void gather_lines(table *t, const nl_scanned_line *lines, size_t count, size_t piece, bool with_places,
                  gather_sink *sink, void *user);

#endif
