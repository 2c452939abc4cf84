/*
 * Deletes the oldest files of an archive, as keep= and keep_size= require.
 *
 * The module deletes only whole files, oldest first. It deletes the side files of a file before the file itself. If
 * netlogd is killed after it has deleted only side files, the next netlogd deletes the rest, because the log file
 * itself still exists. The module does not delete the newest file, files that a subscriber of this netlogd must still
 * read, or files that another process has locked (netlogd --repair). The age of a file is the time since it was last
 * written, so a wrong clock of a client deletes nothing.
 *
 * The caller owns the state. Only the server's thread may call these functions.
 */
#ifndef NETLOGD_OUTPUT_RETENTION_H
#define NETLOGD_OUTPUT_RETENTION_H

#include "file.h"

#include <netlogger.h>

typedef struct retention {
    uint64_t files, bytes; /* number and size of the files deleted so far, without their side files */
    uint64_t number;       /* number of the newest file at the latest check; 0: no check yet */
    uint64_t old_bytes;    /* size of all older files at the latest check */
    int64_t next_ns;       /* time of the next check, on the monotonic clock */
    uint64_t reported;     /* number of the latest file whose failed deletion was reported */
} retention;

/*
 * Deletes the files that are due, unless it is too early to check again. `newest` is the file to which the output
 * writes. `first_needed` is the number of the first file that is still to be read, or UINT64_MAX. Stops after about 20
 * milliseconds; a later call continues. Writes events to `log`, which may be NULL.
 */
void retention_check(retention *r, const output_options *options, const output_file *newest, uint64_t first_needed,
                     nl_log *log);

/* Makes the next call check the files, because the options have changed. */
void retention_reset(retention *r);

#endif
