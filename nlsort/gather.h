/*
 * Collects the text of sorted lines from memory or files, and passes the text to a sink in pieces. One thread fetches
 * lines while another thread writes.
 */
#ifndef NLSORT_GATHER_H
#define NLSORT_GATHER_H

#include "table.h"
#include "record/line_scanner.h"

/*
 * A function that receives lines. `text` contains `count` lines, each with its newline, in `size` bytes. `lines`
 * contains their positions in `text`.
 */
typedef void gather_sink(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count);

/*
 * Returns the number of bytes to fetch in one pass over files that are read again, including WINDOWS_LINE_COST for each
 * line. `memory` is in bytes. Returns 0 if the memory is not sufficient for this number of lines.
 */
size_t gather_share(size_t memory, size_t lines);

/*
 * Passes all lines to `sink` in order. A call of `sink` gets lines until their size is at least `piece` bytes. The
 * function calls `sink` in any thread, but never in two threads at the same time. If the table refers to files, the
 * function may free the table's lists. If `with_places` is false, `sink` gets NULL instead of the positions of the
 * lines.
 */
void gather_lines(table *t, const nl_scanned_line *lines, size_t count, size_t piece, bool with_places,
                  gather_sink *sink, void *user);

#endif
