/*
 * Deletes the oldest files of an archive, as keep= and keep_size= require. With keep_where=, deletes a file only after
 * the requests to keep are in a kept file (keeper.h), and deletes the oldest kept files, as keep_where_time= and
 * keep_where_size= require.
 *
 * The module deletes only whole files, oldest first. It deletes the side files of a file before the file itself. If
 * netlogd is killed after it has deleted only side files, the next netlogd deletes the rest, because the log file
 * itself still exists. The module does not delete the newest file, files that a subscriber of this netlogd must still
 * read, or files that another process has locked (netlogd --repair). The age of a file is the time since it was last
 * written, so a wrong clock of a client deletes nothing.
 *
 * If the archive receives more bytes than the keeper can read, the files would fill the disk. Therefore, when the files
 * have exceeded keep_size= by more than a quarter for a minute, the module deletes the oldest file without keeping its
 * requests, and reports this. At the start, and after keep_size= was lowered, the limit is higher, so that the keeper
 * has time.
 *
 * The caller owns the state. Only the server's thread may call these functions.
 */
#ifndef NETLOGD_OUTPUT_RETENTION_H
#define NETLOGD_OUTPUT_RETENTION_H

#include "file.h"
#include "keeper.h"

#include <netlogger.h>

typedef struct retention {
    uint64_t files, bytes; /* number and size of the files deleted so far, without their side files and kept files */
    uint64_t unsearched;   /* number of files deleted without keeping their requests */
    keeper_counts kept;    /* the counts of all keepers that have ended */
    keeper *keeper;        /* NULL: not needed yet */
    uint64_t waits_for;    /* the number of a file that the keeper must finish; 0: no file */
    int64_t retry_ns;      /* after a failure of the keeper: time of the next attempt, on the monotonic clock */
    uint64_t begun;      /* files with numbers up to this number are due, because a killed netlogd began to keep them */
    uint64_t size_limit; /* size of all files above which files may be deleted without keeping their requests */
    int64_t excess_since_ns; /* time at which the files became larger than size_limit, on the monotonic clock; 0: they
                                are not larger */
    uint64_t number;         /* number of the newest file at the latest check; 0: no check yet */
    uint64_t old_bytes;      /* size of all older files at the latest check */
    int64_t next_ns;         /* time of the next check, on the monotonic clock */
    uint64_t reported;       /* number of the latest file whose failed deletion was reported */
} retention;

/*
 * Deletes the files that are due, unless it is too early to check again. `newest` is the file to which the output
 * writes. `first_needed` is the number of the first file that is still to be read, or UINT64_MAX. `memory_max` is the
 * maximum memory for the open requests of keep_where= in bytes. Stops after about 20 milliseconds; a later call
 * continues. Writes events to `log`, which may be NULL. The caller keeps the options until retention_reset.
 */
void retention_check(retention *r, const output_options *options, const output_file *newest, uint64_t first_needed,
                     size_t memory_max, nl_log *log);

/* Returns the numbers of requests and records that were kept. */
keeper_counts retention_count_kept(const retention *r);

/*
 * Makes the next call check the files. Call it before the options change, and at the end. Waits for a short time if
 * keep_where= is set.
 */
void retention_reset(retention *r);

#endif
