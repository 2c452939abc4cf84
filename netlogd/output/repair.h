/* Repairs of a file that netlogd continues, so that it ends with a whole, acknowledged record. No state. */
#ifndef NETLOGD_OUTPUT_REPAIR_H
#define NETLOGD_OUTPUT_REPAIR_H

#include "journal.h"

#include <netlogger.h>

/* A repair: cut bytes were cut off the file. */
typedef struct repair {
    char *file; /* for free(); NULL: nothing was cut */
    uint64_t cut, kept;
    const char *reason;
} repair;

/* Cuts off what a killed netlogd wrote beyond the journal's mark, which was never acknowledged. Does nothing if the
 * file is not the one of the mark, or netlogd ended properly. NL_FAILED after setting the error. */
nl_status repair_unacknowledged(const char *path, const journal_mark *mark, repair *what);

/* Cuts off an incomplete record at the end. */
nl_status repair_end(const char *path, repair *what);

#endif
