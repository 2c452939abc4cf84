/* What an archive lacks, as the journals beside its files tell. */
#ifndef NETLOGD_OUTPUT_MISSING_H
#define NETLOGD_OUTPUT_MISSING_H

#include <netlogger.h>

#include "reader/decoder.h"

typedef struct missing missing;

/*
 * Reads what the journals in folder say was written: before its files are, for netlogd may be writing. Freed by
 * missing_free.
 */
missing *missing_open(const char *folder);

/*
 * Compares that with the files that were in the folder, which were read: prints which numbered files are gone, that the
 * latest is shorter than it was, and which streams went on further. held is what the files hold. Returns whether
 * anything is missing: that the oldest files are gone is not counted as that, but noted, for they are removed on
 * purpose. Nothing is said of a spool, whose files go when they are delivered.
 */
bool missing_say(const missing *m, char **files, size_t count, const nl_sequences *held);

void missing_free(missing *m);

#endif
