/* Where a log that is still written to can be left off and taken up again: behind a whole line or block. */
#ifndef NLTOOLS_ARCHIVE_CUT_H
#define NLTOOLS_ARCHIVE_CUT_H

#include <stdint.h>
#include <stddef.h>

/* How many of these bytes, from where a record begins, are whole lines and blocks. *lines: lines in them. */
size_t cut_whole(const char *data, size_t size, uint64_t *lines);

#endif
