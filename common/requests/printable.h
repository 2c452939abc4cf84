/*
 * Text of logs for a terminal or a window: names of events, hosts and files are anybody's. What a terminal would obey
 * (record/terminal.h) is replaced.
 */
#ifndef NL_ANALYSIS_PRINTABLE_H
#define NL_ANALYSIS_PRINTABLE_H

#include <glib.h>

/* A copy as valid UTF-8 with ? for each character that controls a terminal; the caller's to free (g_free). Any thread.
 */
char *printable(const char *text);

/* printf to standard output, with ? for the control characters that come out, but for newlines. */
void printable_print(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
