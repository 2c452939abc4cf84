/* What is done to a file that netlogd goes on with, so that it ends with a whole record that was taken for good. */
#ifndef NETLOGD_OUTPUT_REPAIR_H
#define NETLOGD_OUTPUT_REPAIR_H

#include "journal.h"

#include <netlogger.h>

/* What was repaired: cut bytes were cut off file. */
typedef struct repair {
    char *file; /* to be freed */
    uint64_t cut, kept;
    const char *reason;
} repair;

/* Cuts off what netlogd wrote beyond mark, and never acknowledged; nothing when the file is not the one that mark tells
 * of, or ended in good order. *what.cut is 0 when there was nothing to do. NL_FAILED with the reason in
 * nl_error_message(). */
nl_status repair_unacknowledged(const char *path, const journal_mark *mark, repair *what);

/* Cuts off part of a record at the end. */
nl_status repair_end(const char *path, repair *what);

#endif
