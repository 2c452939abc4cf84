/*
 * Takes lines from where they lie and hands them on in order, in pieces of about a megabyte: one thread fetches the
 * next ones while another writes.
 */
#ifndef NLSORT_GATHER_H
#define NLSORT_GATHER_H

#include <netlogger.h>

/* Takes some lines, one behind the other, each with its newline. lines says what is where in text. */
typedef void gather_sink(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count);

/*
 * Calls sink with all lines in order, in whatever thread but in one at a time. piece: bytes that are handed on at once.
 * with_places: the sink wants lines, whose offsets are then those in what it is given; otherwise it gets NULL.
 */
void gather_lines(const char *text, const nl_scanned_line *lines, size_t count, size_t piece, bool with_places,
                  gather_sink *sink, void *user);

#endif
