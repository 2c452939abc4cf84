/* Finds records that are missing from an archive, according to the journals beside its files. */
#ifndef NETLOGD_OUTPUT_MISSING_H
#define NETLOGD_OUTPUT_MISSING_H

#include <netlogger.h>

#include "reader/decoder.h"

typedef struct missing missing;

/*
 * Reads the journals in a directory. Call it before the files are read, because netlogd may be writing. Free the result
 * with missing_free.
 */
missing *missing_open(const char *directory);

/*
 * Compares the journals with the files of the directory, which were read: prints missing numbered files, a latest file
 * that has become shorter, and streams that had more records. held has the numbers in the files. Returns whether
 * records are missing. The absence of the oldest files is only noted, because they are removed on purpose. A spool is
 * not checked: its files are removed when they are delivered.
 */
bool missing_report(const missing *m, char **files, size_t count, const nl_sequences *held);

void missing_free(missing *m);

#endif
