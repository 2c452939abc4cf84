/* Prepares text of logs, which may have any content, for terminals and windows. Any thread may call these functions. */
#ifndef NL_ANALYSIS_PRINTABLE_H
#define NL_ANALYSIS_PRINTABLE_H

#include <glib.h>

/*
 * Returns a copy as valid UTF-8 with ? for each character that controls a terminal (record/terminal.h). The caller
 * frees it with g_free.
 */
char *printable(const char *text);

/* Like printf, with ? for control characters except newlines. */
void printable_print(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
