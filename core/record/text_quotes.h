/*
 * Values in quotes that contain newlines, so that a record has several lines (doc/text-formats.md, "Newlines in
 * quotes"). The decoder joins such lines; programs that cut a log into pieces use nl_text_cut. Any thread may call
 * these functions.
 *
 * A line that has a time begins a record. Therefore, a missing quote never hides another record.
 */
#ifndef NETLOGGER_RECORD_TEXT_QUOTES_H
#define NETLOGGER_RECORD_TEXT_QUOTES_H

#include "record/text.h"

/* Maximum size in bytes of a record that has several lines. */
enum { NL_TEXT_LINES_SIZE_MAX = 64 << 10 };

/* Returns whether a quoted value begins in a line and does not end in it. The line has no '\r' at its end. */
bool nl_text_is_open(const nl_text_format *format, const char *line, const char *end);

/* Returns whether a line has a time, so that it cannot continue a value. */
bool nl_text_has_record(const char *line, const char *end);

typedef enum nl_text_quote {
    NL_TEXT_QUOTE_OPEN,   /* a quoted value continues after the line */
    NL_TEXT_QUOTE_CLOSED, /* the line closes the last quote of the record */
    NL_TEXT_QUOTE_WRONG,  /* the line does not belong to the record, whose quote is missing */
} nl_text_quote;

/* Returns how a line continues a record that has an open value. The line has no '\r' at its end. */
nl_text_quote nl_text_continue(const nl_text_format *format, const char *line, const char *end);

/*
 * Returns the size of the whole lines in data[0..size), without lines at the end whose record may continue after them.
 */
size_t nl_text_cut(const char *data, size_t size);

#endif
