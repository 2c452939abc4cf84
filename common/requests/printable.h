/* Prepares text of logs, which may have any content, for terminals and windows. Any thread may call these functions. */
#ifndef NL_ANALYSIS_PRINTABLE_H
#define NL_ANALYSIS_PRINTABLE_H

#include <glib.h>

/*
 * Returns a copy of a text as valid UTF-8. Each character that controls a terminal (record/terminal.h) becomes ?. The
 * caller frees the copy with g_free.
 */
char *printable(const char *text);

/* Like printf, but prints ? for each control character except newlines. */
void printable_print(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
