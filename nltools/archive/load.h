/* nlarchive load: loads sources into a database. */
#ifndef NLTOOLS_ARCHIVE_LOAD_H
#define NLTOOLS_ARCHIVE_LOAD_H

#include "archive/loader.h"

/* Loads the new records of a file or pipe. On failure, reports the error and returns false. */
bool load_file(loader *l, const char *name);

/* Loads a collector's records from the end of the latest load, until the collector closes the connection or a signal
 * arrives. On failure, reports the error and returns false. */
bool load_collector(loader *l, const char *url);

#endif
