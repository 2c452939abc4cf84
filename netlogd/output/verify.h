/* Checking and repairing the files of an archive: netlogd --verify, --repair. No state. */
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
 * Prints each damaged region, and the records that are missing from streams or stored twice; for directories, also the
 * records that are missing according to their journals. With repair, moves damaged regions of FILE to FILE.damaged.
 * With a seal key, accepts only directories and also checks their seals (verify_seal.h). Returns PROGRAM_DONE if the
 * files are complete and undamaged, otherwise PROGRAM_PROBLEM. Also reports records that a producer itself dropped;
 * these do not count as damage.
 */
int verify(char **paths, int count, const verify_options *options);

#endif
