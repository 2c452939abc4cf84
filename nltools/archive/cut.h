/* Finds the end of the last complete line or block of a growing log. A later load continues from this position.
 * Thread-safe. */
#ifndef NLTOOLS_ARCHIVE_CUT_H
#define NLTOOLS_ARCHIVE_CUT_H

#include <stdint.h>
#include <stddef.h>

/* Returns the size in bytes of the complete lines and blocks at the start of `data`. Adds the number of lines to
 * *lines. */
size_t cut_whole(const char *data, size_t size, uint64_t *lines);

#endif
