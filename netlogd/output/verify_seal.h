/* Checking the seals of an archive: netlogd --verify --seal-key (seal_chain.h describes seals). No state. */
#ifndef NETLOGD_OUTPUT_VERIFY_SEAL_H
#define NETLOGD_OUTPUT_VERIFY_SEAL_H

#include "seal_chain.h"

/*
 * Checks all seal files in a directory with the first key; prints the proven and the unproven bytes of each log file,
 * and a verdict. Files sealed before since_ns may be missing, because they were removed to free space. Only reads the
 * files, which netlogd may be writing. Returns whether all seals are correct, no file is missing and nothing was added.
 * Bytes after the last seal are reported as not proven.
 */
bool verify_seals(const char *directory, const seal_key *first, int64_t since_ns);

#endif
