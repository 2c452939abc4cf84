/* Declarations that the parts of program/ that read logs share. */
#ifndef NETLOGGER_PROGRAM_READING_H
#define NETLOGGER_PROGRAM_READING_H

#include "program/program.h"

/* Returns options for a decoder whose callbacks report malformed input and losses to `reading`. */
nl_decoder_options program_decoder_options(program_reading *reading, const char *source);

/* Adds the counts of a decoder that has ended. */
void program_add_stats(program_reading *reading, const nl_decoder_stats *stats, const char *source);

/* Makes later readers treat the files in directory as one archive. */
void program_archive_begin(program_reading *reading, const char *directory);

/* Frees the state of the archives. */
void program_archives_end(program_reading *reading);

#endif
