/* Checking the seals of an archive: netlogd --verify --seal-key (seal_chain.h has the format). */
#ifndef NETLOGD_OUTPUT_VERIFY_SEAL_H
#define NETLOGD_OUTPUT_VERIFY_SEAL_H

#include "seal_chain.h"

/*
 * Checks all seal files in a folder with the first key, prints what is proven of each log file and what is not, and a
 * verdict. Files that were sealed before since_ns may be missing: they were removed to make space. Reads the log files,
 * which netlogd may be writing, and changes nothing. Returns whether all seals hold, no file is missing and nothing was
 * added that netlogd did not write. Bytes after the last seal are not proven, and are reported as such.
 */
bool verify_seals(const char *folder, const seal_key *first, int64_t since_ns);

#endif
