/*
 * Finds lines and their times almost as fast as memory can be read. Programs use the scanner if they first need only
 * the times of the records. For example, a program sorts millions of records, searches a position in a log, or draws
 * the number of records over time.
 *
 * Most lines are plain. A plain line begins with the format's time field, for example DATE=YYYYMMDDhhmmss.ffffff or
 * ts=YYYY-MM-DDThh:mm:ss.ffffffZ. The end of the line or another field follows the time field, and the line does not
 * contain another time. Each plain line is a whole record that the decoder would accept. All other lines (prefixes,
 * truncated records, quoted times, other formats) need a decoder; nl_decoder_pass_over informs the decoder about the
 * lines that the scanner read. An input that contains a NUL may contain blocks, so a decoder must read the whole input.
 *
 * Only one thread at a time may use a scanner. Several scanners may scan parts of one log.
 */
#ifndef NETLOGGER_RECORD_LINE_SCANNER_H
#define NETLOGGER_RECORD_LINE_SCANNER_H

#include <netlogger.h>

typedef struct nl_line_scanner nl_line_scanner;

enum { NL_LINE_LONGEST = (1 << 23) - 1 };

/* A line. `place` contains its offset and size in bytes, and whether it is plain, as nl_line_place packs them. */
typedef struct nl_scanned_line {
    int64_t time_ns; /* nanoseconds since 1970 UTC; 0 if the line is not plain */
    uint64_t place;
} nl_scanned_line;

/*
 * Packs a line's offset in bytes (below 2^40), its size in bytes and whether it is plain. `size` is at most
 * NL_LINE_LONGEST, which also represents larger sizes.
 */
static inline uint64_t nl_line_place(uint64_t offset, uint64_t size, bool plain)
{
    return offset << 24 | size << 1 | plain;
}

/* Returns the offset of the line's first byte in the log. */
static inline uint64_t nl_line_offset(nl_scanned_line line)
{
    return line.place >> 24;
}

/* Returns the size in bytes without the newline and, for a plain line, without each '\r' before the newline. */
static inline size_t nl_line_size(nl_scanned_line line)
{
    return NL_PRIVATE_CAST(size_t, line.place >> 1 & NL_LINE_LONGEST);
}

static inline bool nl_line_is_plain(nl_scanned_line line)
{
    return line.place & 1;
}

/*
 * Creates a scanner for lines in a text format; lines in other formats are not plain. For `fraction`, see nl_fraction.
 * Returns NULL if the format is not text or memory runs out. The caller frees the scanner; freeing NULL has no effect.
 */
nl_line_scanner *nl_line_scanner_new(nl_format format, nl_fraction fraction);
void nl_line_scanner_free(nl_line_scanner *scanner);

/*
 * Scans data[0..size) until it has filled all `capacity` lines or found the last newline. `data` begins at the
 * start of a line; `offset` is the offset of `data` in the log, in bytes. Returns the number of lines. Sets *used to
 * the size of these lines in bytes, including newlines.
 */
size_t nl_lines_scan(nl_line_scanner *scanner, const char *data, size_t size, uint64_t offset, nl_scanned_line *lines,
                     size_t capacity, size_t *used);

/* Returns whether the scanner has found a NUL. */
bool nl_line_scanner_met_nul(const nl_line_scanner *scanner);

#endif
