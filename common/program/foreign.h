/*
 * Foreign formats as the programs' logs: their bytes become blocks (nlb) on the way from the source to the decoder.
 * convert/translate.c implements this, so that program/ need not know the formats. One thread at a time for a source.
 */
#ifndef NETLOGGER_PROGRAM_FOREIGN_H
#define NETLOGGER_PROGRAM_FOREIGN_H

#include "program/program.h"

/* The setter of --from-format: settings is a program_reading. */
bool program_set_from_format(void *settings, const nl_option *row, const char *value);

/* Returns whether a log that begins with these bytes is in a foreign format, or --from-format named one. */
bool program_is_foreign(const program_reading *reading, const char *head, size_t size);

/* Whether a folder is a log in a foreign format. */
bool program_is_foreign_folder(const char *path);

/*
 * Adds a step to a source that turns a foreign format into blocks; it is found in the content. Other content stays as
 * it is. What cannot be read is reported to reading, which must outlive the source, as part of name.
 */
void program_translate(nl_source *source, program_reading *reading, const char *name);

/* Reads a folder in a foreign format into a temporary file of blocks. NULL after having reported the reason. */
nl_source *program_translate_folder(program_reading *reading, const char *path);

#endif
