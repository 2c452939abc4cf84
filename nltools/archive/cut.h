/* Finds the end of the whole lines and blocks of a growing log, from which a later load continues. Any thread. */
#ifndef NLTOOLS_ARCHIVE_CUT_H
#define NLTOOLS_ARCHIVE_CUT_H

#include <stdint.h>
#include <stddef.h>

/* Returns the size of the whole lines and blocks in data; adds the number of lines to *lines. */
size_t cut_whole(const char *data, size_t size, uint64_t *lines);

#endif
