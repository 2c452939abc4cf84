/*
 * Lines on their way to the output. A terminal obeys control characters, and lines of text logs are otherwise copied
 * byte by byte. Like ls(1), nlsort therefore replaces such characters (record/terminal.h), but only on a terminal.
 */
#ifndef NLSORT_SHOWN_H
#define NLSORT_SHOWN_H

#include "transport/writer.h"

/* Returns whether output, NULL for standard output, is a terminal. */
bool shown_on_terminal(const char *output);

/* Writes lines of text. On a terminal, "?" replaces characters that control it, except newlines and tabs. */
nl_status shown_put(nl_writer *writer, bool on_terminal, const char *text, size_t size);

#endif
