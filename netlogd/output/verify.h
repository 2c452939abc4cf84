/* Checking the files of an archive: netlogd --verify, --repair. */
#ifndef NETLOGD_OUTPUT_VERIFY_H
#define NETLOGD_OUTPUT_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct verify_options {
    bool repair;
    const char *seal_key; /* a file; NULL: seals are not checked */
    int64_t since_ns;     /* files that were sealed before may be missing */
} verify_options;

/*
 * Reads every record of files, in that order, and of all files of folders, in the order of their names, and prints what
 * is damaged, where and how much, and what is missing from or twice in the streams of those who number their records.
 * With repair what is damaged is taken out of FILE into FILE.damaged. Returns PROGRAM_DONE when all is sound, else
 * PROGRAM_PROBLEM. Of folders it is also told what their journals say was written and is not there, and when there is
 * no log in one. What a producer said that it dropped itself is told, and is no damage.
 * With a seal key, folders only are valid, and their seals are checked too (verify_seal.h).
 */
int verify(char **paths, int count, const verify_options *options);

#endif
