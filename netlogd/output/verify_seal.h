/*
 * Checks the seals of an archive: netlogd --verify --seal-key (seal_chain.h describes seals). The module has no state.
 */
#ifndef NETLOGD_OUTPUT_VERIFY_SEAL_H
#define NETLOGD_OUTPUT_VERIFY_SEAL_H

#include "seal_chain.h"

/*
 * Checks all seal files in a directory with the first key. Prints the numbers of proven and unproven bytes of each log
 * file, and a verdict. Files that were sealed before since_ns may be missing, because old files are removed to free
 * space. Only reads files, so netlogd may be writing to them. Returns whether all seals are correct, no file is missing
 * and no data was added. Reports bytes after the last seal as not proven.
 */
bool verify_seals(const char *directory, const seal_key *first, int64_t since_ns);

#endif
