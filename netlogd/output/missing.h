/* Finds records that are missing from an archive. Compares the journals with the files beside them. */
#ifndef NETLOGD_OUTPUT_MISSING_H
#define NETLOGD_OUTPUT_MISSING_H

#include <netlogger.h>

#include "reader/decoder.h"

typedef struct missing missing;

/*
 * Reads the journals in a directory. Call it before you read the files. Otherwise, a running netlogd could add numbers
 * to the journals after you have read the files. Free the result with missing_free.
 */
missing *missing_open(const char *directory);

/*
 * Compares the journals with the files in the directory, which the caller has read. Prints the numbers of missing
 * files, the latest file if it has become shorter, and streams from which records are missing. `held` contains the
 * numbers in the files. Returns whether records are missing. If only the oldest files are missing, prints a note,
 * because they are removed intentionally. Does not check a spool, whose files are removed after delivery.
 */
bool missing_report(const missing *m, char **files, size_t count, const nl_sequences *held);

void missing_free(missing *m);

#endif
