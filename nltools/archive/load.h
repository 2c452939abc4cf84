/* nlarchive load: loads sources into a database. */
#ifndef NLTOOLS_ARCHIVE_LOAD_H
#define NLTOOLS_ARCHIVE_LOAD_H

#include "archive/loader.h"

/* Loads the new records of a file or pipe. Returns false after reporting an error. */
bool load_file(loader *l, const char *name);

/*
 * Loads a collector's records, starting where the latest load ended, until the collector closes the connection or a
 * signal arrives. Returns false after reporting an error.
 */
bool load_collector(loader *l, const char *url);

#endif
