/* Checks and repairs the files of an archive: netlogd --verify and --repair. This module has no state. */
#ifndef NETLOGD_OUTPUT_VERIFY_H
#define NETLOGD_OUTPUT_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct verify_options {
    bool repair;
    const char *seal_key; /* NULL: seals are not checked */
    int64_t since_ns;     /* files sealed before this time may be missing */
} verify_options;

/*
 * Reads every record of the files, in the given order, and of the files in directories, in the order of their names.
 * Prints each damaged region, and records that are missing from streams or stored twice. For directories, also prints
 * the records that are missing according to the journals. If `repair` is set, moves damaged regions of FILE to
 * FILE.damaged. If a seal key is given, accepts only directories and also checks their seals (verify_seal.h). Also
 * reports records that a producer itself has dropped, which do not count as damage. Returns PROGRAM_DONE if the files
 * are complete and undamaged, and PROGRAM_PROBLEM otherwise.
 */
int verify(char **paths, int count, const verify_options *options);

#endif
