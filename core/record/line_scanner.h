/*
 * Lines of text at the speed of memory, for programs that first ask of millions of records when they were: to sort
 * them, to find a place in a log, to draw how many there are.
 *
 * Nearly all lines of nearly all logs are plain: they begin with their time in its usual form,
 * DATE=YYYYMMDDhhmmss.ffffff or ts=YYYY-MM-DDThh:mm:ss.ffffffZ, another field follows or nothing, and no second time
 * stands in them. Such a line is a whole record, which the decoder would read, and its time and place are all that is
 * found out here. All else (prefixes, cut records, quoted times, other formats) is said to be not plain: a decoder is
 * to be asked (decoder.h), which is told by nl_decoder_pass_over of the lines that it was not fed. Where a NUL was met,
 * the input may hold blocks of the binary format, and all of it is the decoder's.
 *
 * A scanner is for one thread at a time; parts of one log may be scanned by several.
 */
#ifndef NETLOGGER_RECORD_LINE_SCANNER_H
#define NETLOGGER_RECORD_LINE_SCANNER_H

#include <netlogger.h>

typedef struct nl_line_scanner nl_line_scanner;

enum { NL_LINE_LONGEST = (1 << 23) - 1 };

/* A line in as little room as millions of them want. place is made by nl_line_place, and read by those below it. */
typedef struct nl_scanned_line {
    int64_t time_ns; /* of a plain line; otherwise 0 */
    uint64_t place;
} nl_scanned_line;

/* offset is below 2^40, size at most NL_LINE_LONGEST, which stands for longer ones too. */
static inline uint64_t nl_line_place(uint64_t offset, uint64_t size, bool plain)
{
    return offset << 24 | size << 1 | plain;
}

/* Of the line's first byte. */
static inline uint64_t nl_line_offset(nl_scanned_line line)
{
    return line.place >> 24;
}

/* Without its newline; of a plain line without any '\r' before that, too. */
static inline size_t nl_line_size(nl_scanned_line line)
{
    return NL_PRIVATE_CAST(size_t, line.place >> 1 & NL_LINE_LONGEST);
}

/* Whether the line is plain, as on top of this page. */
static inline bool nl_line_is_plain(nl_scanned_line line)
{
    return line.place & 1;
}

/*
 * A scanner of lines in a text format: those in another one are not plain. NULL when format is any other, or there is
 * no memory. fraction is how short fractions of a second are read. Freed with nl_line_scanner_free (NULL is allowed).
 */
nl_line_scanner *nl_line_scanner_new(nl_format format, nl_fraction fraction);
void nl_line_scanner_free(nl_line_scanner *scanner);

/*
 * Scans lines in data[0..size), which begins with a line, until most of them were put into lines or none is left that
 * ends in it. offset is that of data, added to theirs. Returns how many there are; *used is the size of them with their
 * newlines.
 */
size_t nl_lines_scan(nl_line_scanner *scanner, const char *data, size_t size, uint64_t offset, nl_scanned_line *lines,
                     size_t most, size_t *used);

/* Whether a NUL was met since the scanner was made. */
bool nl_line_scanner_met_nul(const nl_line_scanner *scanner);

#endif
