/*
 * Sealing the files of an output while it writes them (seal_chain.h explains seals, verify_seal.h checks them).
 *
 * The module owns the collector's key file and the seal file beside the archive; one output calls it. Bytes are hashed
 * as they are written. After seal_time=, and when a file ends, the output syncs its file, then its journal, and then
 * calls seal_write. No crash, not even of the machine, can therefore remove sealed bytes. And no seal covers bytes that
 * the journal does not have, which the next netlogd would remove.
 *
 * A seal names a file before anything is written to it, and the file is sealed to its end before a seal names the next
 * file. So the seals list every file with data, and only the latest file can have bytes that no seal covers.
 *
 * netlogd syncs the seal first, then the end mark, then the next key. After a kill between them, the key of the new
 * seal still exists, and seal_open completes or removes that seal. seal_open also seals the bytes that a killed netlogd
 * had written without sealing. Acknowledgements do not wait for seals. If a seal fails, the output is blocked, as when
 * a disk is full.
 */
#ifndef NETLOGD_OUTPUT_SEAL_H
#define NETLOGD_OUTPUT_SEAL_H

#include "options.h"

typedef struct seal seal;

/*
 * Opens or begins the seals of an output; completes work that a kill interrupted. The options must outlive the result.
 * Returns NULL after setting the error.
 */
seal *seal_open(const output_options *options);

/* Frees the seals. NULL, which all functions below also accept, means an output without seals. */
void seal_close(seal *s);

/*
 * Begins the empty file with this number: names it in a seal, unless a seal has named it, and counts later bytes for
 * it. Returns NL_FAILED after setting the error.
 */
nl_status seal_begin_file(seal *s, uint64_t number);

/*
 * Returns the number for a new file: number, or a higher number if a seal names a file with this number that had data
 * and may have been removed.
 */
uint64_t seal_next_number(const seal *s, uint64_t number);

/* Notes bytes that were appended to the file. */
void seal_wrote(seal *s, const char *data, size_t size);

/* Returns whether a seal is due. */
bool seal_is_due(const seal *s);

/*
 * Seals the bytes that were written and synced. ended: the file is complete. Returns NL_FAILED after setting the error;
 * the seal stays due.
 */
nl_status seal_write(seal *s, bool ended);

/* Returns the name of an output's seal file. The caller frees it. */
char *seal_name(const output_options *options);

#endif
