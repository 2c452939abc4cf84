/*
 * Sealing the files of an output while it writes them (seal_chain.h explains the seals, verify_seal.h checks them).
 *
 * The module owns the collector's key file and the seal file beside the archive. One output calls it, in the server's
 * thread. What is written is hashed as it is written. After seal_time=, and when a file ends, the output makes safe
 * (fdatasync) what it has written, then its journal, and then calls seal_write; so no crash, not even one of the
 * machine, takes back what is sealed. No seal covers what the journal does not: netlogd cuts that off after a kill.
 *
 * A file is named by a seal before anything is written to it, and sealed to its end before the next one is named. So
 * every file with data is known to the seals, and only the latest can have bytes that no seal covers.
 *
 * A seal is made safe first, then the end mark, then the next key. After a kill between them, the key of the seal that
 * was begun is still there, and seal_open finishes that seal or cuts it off. What a killed netlogd had written and not
 * sealed, seal_open seals. Acknowledgements do not wait for seals, unless a seal fails: then the output is blocked, as
 * it is when a disk is full, and nothing more is taken until it succeeds.
 */
#ifndef NETLOGD_OUTPUT_SEAL_H
#define NETLOGD_OUTPUT_SEAL_H

#include "options.h"

typedef struct seal seal;

/* Opens the seals of an output, or begins them; finishes what a kill cut off. The options must outlive the result. NULL
 * with the reason in nl_error_message(). */
seal *seal_open(const output_options *options);

/* Frees it. NULL, which all functions below accept too, is of an output that is not sealed. */
void seal_close(seal *s);

/* Names the file of that number, which is empty, unless it was named: what follows is written to it. NL_FAILED with the
 * reason in nl_error_message(). */
nl_status seal_begin_file(seal *s, uint64_t number);

/* Returns the number for a new file: number, or a higher one if a seal names a file of that number that had data. Such
 * files may have been removed. */
uint64_t seal_next_number(const seal *s, uint64_t number);

/* Those bytes were appended to the file. */
void seal_wrote(seal *s, const char *data, size_t size);

/* Whether it is time for a seal. */
bool seal_is_due(const seal *s);

/*
 * Seals what was written, which is safe on the disk; ended: and that it is the whole file. NL_FAILED with the reason in
 * nl_error_message(); it is due until it succeeds.
 */
nl_status seal_write(seal *s, bool ended);

/* The name of an output's seal file, for free(). */
char *seal_name(const output_options *options);

#endif
