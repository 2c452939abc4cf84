/*
 * Sources in foreign formats. convert/translate.c implements these functions, because program/ does not include
 * convert/. Only one thread at a time may use a source.
 */
#ifndef NETLOGGER_PROGRAM_FOREIGN_H
#define NETLOGGER_PROGRAM_FOREIGN_H

#include "program/program.h"

/*
 * Sets the format that --from-format names; `settings` is a program_reading. Returns false and sets the error if the
 * format is unknown.
 */
bool program_set_from_format(void *settings, const nl_option *row, const char *value);

/*
 * Returns whether --from-format names a foreign format. Without --from-format, returns whether a log that begins with
 * these bytes is in a foreign format.
 */
bool program_is_foreign(const program_reading *reading, const char *head, size_t size);

/* Returns whether a directory is a log in a foreign format. */
bool program_is_foreign_directory(const char *path);

/*
 * Adds a step to a source. The step detects a foreign format and converts it to blocks (nlb). Other content passes
 * unchanged. The step reports malformed input to `reading`, which must outlive the source. `name` is the source's name
 * in the reports.
 */
void program_translate(nl_source *source, program_reading *reading, const char *name);

/*
 * Converts a directory in a foreign format to a temporary file of blocks. Returns NULL and sets the error on
 * failure.
 */
nl_source *program_translate_directory(program_reading *reading, const char *path);

#endif
