/*
 * Takes lines from where they lie and hands them on in order, in pieces of about a megabyte: one thread fetches the
 * next ones while another writes.
 */
#ifndef NLSORT_GATHER_H
#define NLSORT_GATHER_H

#include "table.h"
#include "record/line_scanner.h"

/* Takes some lines, one behind the other, each with its newline. lines says what is where in text. */
typedef void gather_sink(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count);

/*
 * Bytes of text, with WINDOWS_LINE_COST more for each line, that each thread fetches at once of files that a table of
 * so many lines refers to. 0 when it is too many lines for that memory.
 */
size_t gather_share(size_t memory, size_t lines);

/*
 * Calls sink with all lines in order, in whatever thread but in one at a time. piece: bytes that are handed on at once.
 * The lists of a table that refers to files may be given back. with_places: the sink wants lines, whose offsets are
 * then those in what it is given; otherwise it gets NULL.
 */
void gather_lines(table *t, const nl_scanned_line *lines, size_t count, size_t piece, bool with_places,
                  gather_sink *sink, void *user);

#endif
