/* nlarchive load: loads sources into an archive. */
#ifndef NLTOOLS_ARCHIVE_LOAD_H
#define NLTOOLS_ARCHIVE_LOAD_H

#include "archive/loader.h"

/* Loads the records of a file or pipe that were not loaded before. Returns false after reporting an error. */
bool load_file(loader *l, const char *name);

/*
 * Loads the records that a collector receives, from the end of its latest load, until the collector ends or a signal
 * arrives. Returns false after reporting an error.
 */
bool load_collector(loader *l, const char *url);

#endif
