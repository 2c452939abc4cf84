/* What the parts of program/ that read logs share. */
#ifndef NETLOGGER_PROGRAM_READING_H
#define NETLOGGER_PROGRAM_READING_H

#include "program/program.h"

/* How a decoder is told to report what comes from source. */
nl_decoder_options program_decoder_options(program_reading *reading, const char *source);

/* Adds what a decoder counted, at its end. */
void program_add_stats(program_reading *reading, const nl_decoder_stats *stats);

/* From here on what is read of the files in folder is one archive. */
void program_archive_begin(program_reading *reading, const char *folder);

/* Frees what is kept of the archives. */
void program_archives_end(program_reading *reading);

#endif
