/*
 * Sources in foreign formats. convert/translate.c implements these functions, because program/ does not include
 * convert/. One thread at a time for a source.
 */
#ifndef NETLOGGER_PROGRAM_FOREIGN_H
#define NETLOGGER_PROGRAM_FOREIGN_H

#include "program/program.h"

/* The setter of --from-format; settings is a program_reading. */
bool program_set_from_format(void *settings, const nl_option *row, const char *value);

/* Returns whether a log that begins with these bytes is in a foreign format, or --from-format named one. */
bool program_is_foreign(const program_reading *reading, const char *head, size_t size);

/* Returns whether a directory is a log in a foreign format. */
bool program_is_foreign_folder(const char *path);

/*
 * Adds a step to a source that detects a foreign format and converts it to blocks (nlb). Passes other content on
 * unchanged. Reports malformed input to reading, which must outlive the source, with the name.
 */
void program_translate(nl_source *source, program_reading *reading, const char *name);

/* Converts a directory in a foreign format to a temporary file of blocks. Returns NULL with the error set. */
nl_source *program_translate_folder(program_reading *reading, const char *path);

#endif
