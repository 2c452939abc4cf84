/* Repairs the end of a log file, so that the file ends with a whole, acknowledged record. The module has no state. */
#ifndef NETLOGD_OUTPUT_REPAIR_H
#define NETLOGD_OUTPUT_REPAIR_H

#include "journal.h"

#include <netlogger.h>

/* A repair: `cut` bytes were removed from the end of the file, and `kept` bytes remain. */
typedef struct repair {
    char *file; /* name of the file, which the caller frees; NULL: nothing was removed */
    uint64_t cut, kept;
    const char *reason;
} repair;

/*
 * Truncates the file to the journal's mark, because netlogd was killed before it acknowledged the bytes after the mark.
 * Does nothing if the mark belongs to another file, or if netlogd ended cleanly. On failure, sets the error and
 * returns NL_FAILED.
 */
nl_status repair_unacknowledged(const char *path, const journal_mark *mark, repair *what);

/* Removes an incomplete record at the end of the file. On failure, sets the error and returns NL_FAILED. */
nl_status repair_end(const char *path, repair *what);

#endif
