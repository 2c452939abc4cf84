/* Checking the files of an archive: netlogd --verify, --repair. */
#ifndef NETLOGD_OUTPUT_VERIFY_H
#define NETLOGD_OUTPUT_VERIFY_H

#include <stdbool.h>

/*
 * Reads every record of files, in that order, and of all files of folders, in the order of their names, and prints what
 * is damaged, where and how much, and what is missing from or twice in the streams of those who number their records.
 * With repair what is damaged is taken out of FILE into FILE.damaged. Returns PROGRAM_DONE when all is sound, else
 * PROGRAM_PROBLEM. Of folders it is also told what their journals say was written and is not there, and when there is
 * no log in one. What a producer said that it dropped itself is told, and is no damage.
 */
int verify(char **paths, int count, bool repair);

#endif
