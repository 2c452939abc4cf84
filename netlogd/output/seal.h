/*
 * Seals the files of an output while the output writes them (seal_chain.h explains seals, and verify_seal.h checks
 * them).
 *
 * The object `seal` belongs to one output, and owns the collector's key file and the seal file beside the archive. The
 * module hashes bytes as they are written. When the interval seal_time= has passed, and when a file ends, the output
 * syncs its file, then its journal, and then calls seal_write. Therefore, a crash of the machine cannot remove sealed
 * bytes. The journal covers all sealed bytes, so the next netlogd process does not remove them either.
 *
 * A seal names a file before anything is written to the file, and the file is sealed to its end before a seal names the
 * next file. The seals therefore list every file that contains data, and only the latest file can contain bytes that no
 * seal covers.
 *
 * netlogd syncs the seal first, then the end mark, then the next key. If netlogd is killed between these steps, the key
 * of the new seal still exists, and seal_open completes or removes that seal. seal_open also seals the bytes that a
 * killed netlogd has written but not sealed. Acknowledgements do not wait for seals. If a seal fails, the output is
 * blocked, as if the disk were full.
 */
#ifndef NETLOGD_OUTPUT_SEAL_H
#define NETLOGD_OUTPUT_SEAL_H

#include "options.h"

typedef struct seal seal;

/*
 * Opens or begins the seals of an output, and completes work that a kill has interrupted. `options` must outlive the
 * result. On failure, sets the error and returns NULL.
 */
seal *seal_open(const output_options *options);

/* Frees the seals. `s` may be NULL, here and in all functions below, if the output has no seals. */
void seal_close(seal *s);

/*
 * Begins the empty file with this number. Names it in a seal, unless a seal already names it. Later bytes belong to
 * this file. On failure, sets the error and returns NL_FAILED.
 */
nl_status seal_begin_file(seal *s, uint64_t number);

/*
 * Returns the number for a new file. This is `number`, or a higher number if a seal names a file with this number that
 * contained data and may have been removed.
 */
uint64_t seal_next_number(const seal *s, uint64_t number);

/* Adds bytes that were appended to the file to the hash. */
void seal_wrote(seal *s, const char *data, size_t size);

bool seal_is_due(const seal *s);

/*
 * Seals the bytes that were written and synced. `ended` is true if the file is complete. On failure, sets the error and
 * returns NL_FAILED; the seal is then still due.
 */
nl_status seal_write(seal *s, bool ended);

#endif
