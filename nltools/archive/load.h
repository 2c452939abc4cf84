/* nlarchive load: sources into an archive. */
#ifndef NLTOOLS_ARCHIVE_LOAD_H
#define NLTOOLS_ARCHIVE_LOAD_H

#include "archive/loader.h"

/* Loads what of a file, a pipe or standard input was not loaded yet. False after having said what went wrong. */
bool load_file(loader *l, const char *name);

/*
 * Loads what a collector takes, from where the latest load of it stopped, until it ends or a signal comes. False after
 * having said what went wrong.
 */
bool load_collector(loader *l, const char *url);

#endif
