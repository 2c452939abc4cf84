/*
 * A queue of undelivered records on disk, with a maximum size.
 *
 *   DIRECTORY/DESTINATION+UID/NAME.row, NAME-000001.spool ...
 *
 * Each user has a directory of their own. If another user has created a directory with its name, the user's directory
 * is DESTINATION+UID.XXXXXX with a random ending. Each process has its own row of files (spool_row.h). The next process
 * that uses the same directory and destination delivers the rows of processes that have ended, one at a time, before
 * its own row. The maximum size applies to each process's own row. Only one thread at a time may use a spool.
 */
#ifndef NETLOGGER_TRANSPORT_SPOOL_H
#define NETLOGGER_TRANSPORT_SPOOL_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct nl_spool nl_spool;

/*
 * Opens the spool of a destination in a directory. Creates the directory and the spool if they do not exist. Other
 * users must not be able to write to the spool. `directory` must belong to this user or to root; other users must not
 * be able to write to it unless it has the sticky bit. `size` is the maximum for this process's records in bytes. If
 * oldest is true, a full spool drops its oldest records. Returns NULL on failure.
 */
nl_spool *nl_spool_open(const char *directory, const nl_url *destination, size_t size, bool oldest);

/*
 * Calls on_damaged for each row that cannot be delivered, because its state is missing or invalid. `path` is the
 * beginning of the paths of the row's files.
 */
void nl_spool_find_damaged(const nl_spool *spool, void (*on_damaged)(const char *path));

/* Closes the spool. Its records stay on disk. Closing NULL has no effect. */
void nl_spool_close(nl_spool *spool);

/*
 * Appends data[0..size), which must be whole records. Returns NL_FAILED if the spool is full (NL_ERROR_FULL), if the
 * data is larger than the spool (NL_ERROR_LIMIT), or if the spool cannot be written. If oldest is set and the data is
 * larger than the spool, the call counts the data as dropped, and returns NL_OK.
 */
nl_status nl_spool_put(nl_spool *spool, const char *data, size_t size);

/*
 * Syncs all records to disk, including the rows of other processes. The kernel reports a failed sync only once, and may
 * discard the data. Therefore, every call after a failure also fails, until all records are delivered.
 */
nl_status nl_spool_sync(nl_spool *spool);

/*
 * Returns the time of the oldest put that is not synced, in nanoseconds by the monotonic clock; 0 if all puts are
 * synced.
 */
int64_t nl_spool_unsafe_since_ns(const nl_spool *spool);

/* Returns whether nothing is left to deliver. */
bool nl_spool_is_empty(const nl_spool *spool);

/* Returns the number of undelivered records that this process has put into the spool. */
uint64_t nl_spool_count_own(const nl_spool *spool);

/* Returns whether an empty spool has enough space for a put of `size` bytes. */
bool nl_spool_can_hold(const nl_spool *spool, size_t size);

/*
 * Sets `out` to the oldest undelivered bytes, which are the data of one or more whole calls of nl_spool_put. Returns
 * NL_END if the spool is empty. Returns NL_FAILED if the bytes cannot be read; the next call tries again. If it returns
 * NL_OK and out is empty, the caller reports only the loss (nl_spool_lost), and then calls nl_spool_delivered.
 */
nl_status nl_spool_peek(nl_spool *spool, nl_buffer *out);

/*
 * Marks the first size bytes in the spool as delivered. Before the call, compare the result of nl_spool_get_front with
 * its result at the time of nl_spool_peek: if they differ, the first bytes are not those that nl_spool_peek returned.
 * With size 0, only removes a row that has nothing left to deliver or report.
 */
void nl_spool_delivered(nl_spool *spool, size_t size);

/* The position of the oldest undelivered bytes. Both members are 0 if the spool is empty. */
typedef struct nl_spool_front {
    uint64_t row;    /* number of the row, from 1, in the order in which this nl_spool has opened rows */
    uint64_t passed; /* number of bytes of this row that were delivered or dropped */
} nl_spool_front;

/*
 * Returns the position of the oldest undelivered bytes. If nl_spool_put drops bytes, `passed` increases by their
 * number. If nl_spool_put opens the spool again, `row` changes.
 */
nl_spool_front nl_spool_get_front(const nl_spool *spool);

/* Returns the number of records that the full spool dropped just before the bytes that nl_spool_peek returns. */
uint64_t nl_spool_lost(const nl_spool *spool);

/*
 * Appends to `out` blocks without records, which announce the sequence numbers of the records that nl_spool_lost
 * counts. Returns NL_OK or NL_FAILED.
 */
nl_status nl_spool_read_losses(nl_spool *spool, nl_buffer *out);

/*
 * Notes that the destination has received the report of `count` dropped records, or these records themselves. The
 * report consists of their number and of the blocks from nl_spool_read_losses. `count` is less than nl_spool_lost if
 * nl_spool_put has dropped more records since then. If the process is killed before this call, the dropped records are
 * reported again.
 *
 * If a process is killed after a put, but before it has removed the records from its shared memory, the records exist
 * twice. Recovery can then deliver records that the spool counted as dropped.
 */
void nl_spool_loss_reported(nl_spool *spool, uint64_t count);

#endif
