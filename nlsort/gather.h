/* Collects sorted lines from memory or files, in pieces. One thread fetches lines while another writes. */
#ifndef NLSORT_GATHER_H
#define NLSORT_GATHER_H

#include "table.h"
#include "record/line_scanner.h"

/*
 * A sink for lines. `text` contains the lines, each with its newline, and `lines` contains their positions in `text`.
 */
typedef void gather_sink(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count);

/*
 * Returns the number of bytes that a thread fetches in one step from files that are read again, including
 * WINDOWS_LINE_COST for each line. Returns 0 if there is not enough memory for this number of lines.
 */
size_t gather_share(size_t memory, size_t lines);

/*
 * Passes all lines to `sink` in order, at most `piece` bytes at a time. Any thread may call `sink`, but never two
 * threads at the same time. If the table's text is in files, the function may free the table's lists. If `with_places`
 * is false, `sink` gets NULL instead of the positions of the lines.
 */
void gather_lines(table *t, const nl_scanned_line *lines, size_t count, size_t piece, bool with_places,
                  gather_sink *sink, void *user);

#endif
