/*
 * Reads systemd's journal (--input journal:), and keeps the cursor of the last entry whose records are stored.
 *
 *   entry -> export format -> importer (convert/journal.c) -> numbered_input
 *
 * Each entry becomes the same record whenever netlogd reads it. Therefore, a cursor and the numbers of the records are
 * sufficient for recovery. After a kill, netlogd reads the entries after the cursor again, and the outputs skip the
 * records that they have. The file OUTPUT.cursor contains "journal 1 STREAM NEXT CURSOR"; the entry at CURSOR has the
 * number NEXT - 1.
 *
 * While the outputs cannot be written, netlogd does not read the journal. Only the server's thread may call this
 * module.
 */
#ifndef NETLOGD_JOURNAL_INPUT_H
#define NETLOGD_JOURNAL_INPUT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Loads libsystemd. If the settings contain a journal, call this before netlogd is confined. Returns false and sets the
 * error on failure.
 */
bool journal_input_load(void);

/* Begins to read the journal in the settings. Ends the program if the journal or OUTPUT.cursor cannot be used. */
void journal_input_start(void);

/* Called after the outputs have settled all records. */
void journal_input_acknowledge(void);

/* Returns the number of records read since netlogd was started. */
uint64_t journal_input_count(void);

void journal_input_free(void);

#endif
