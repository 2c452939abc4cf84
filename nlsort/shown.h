/*
 * Writes lines to the output. Normally, nlsort copies the bytes of text logs unchanged. However, a terminal would
 * execute control characters in a log. If the output is a terminal, nlsort replaces these characters
 * (record/terminal.h), like ls(1).
 */
#ifndef NLSORT_SHOWN_H
#define NLSORT_SHOWN_H

#include "transport/writer.h"

/* Returns whether the output is a terminal. `output` is NULL for standard output. */
bool shown_on_terminal(const char *output);

/*
 * Writes lines of text. On a terminal, replaces control characters other than newlines and tabs with "?". Returns NL_OK
 * or NL_FAILED.
 */
nl_status shown_put(nl_writer *writer, bool on_terminal, const char *text, size_t size);

#endif
