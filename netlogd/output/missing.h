/* Records that are missing from an archive, according to the journals beside its files. */
#ifndef NETLOGD_OUTPUT_MISSING_H
#define NETLOGD_OUTPUT_MISSING_H

#include <netlogger.h>

#include "reader/decoder.h"

typedef struct missing missing;

/* Reads the journals in a directory. Call it before the files are read, because netlogd may be writing. Freed by
 * missing_free. */
missing *missing_open(const char *directory);

/*
 * Compares the journals with the files of the directory, which were read: prints which numbered files are missing, that
 * the latest file is shorter than it was, and which streams went on further. held is what the files hold. Returns
 * whether anything is missing. The absence of the oldest files is only noted, because they are removed on purpose. A
 * spool is not checked: its files are removed when they are delivered.
 */
bool missing_report(const missing *m, char **files, size_t count, const nl_sequences *held);

void missing_free(missing *m);

#endif
