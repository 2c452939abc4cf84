/*
 * Records on disk, while their destination is away: first in, first out, bounded.
 *
 *   FOLDER/DESTINATION/NAME.row, NAME-000001.spool ...
 *
 * Each process has a row of files of its own (spool_row.h). The next process with the same folder and destination
 * delivers the rows of processes that ended or were killed: before its own, and one at a time, so that they take two
 * descriptors however many there are. The limit of the size is for each process's own row. For one thread at a time.
 */
#ifndef NETLOGGER_TRANSPORT_SPOOL_H
#define NETLOGGER_TRANSPORT_SPOOL_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct nl_spool nl_spool;

/*
 * Opens the spool of a destination in a folder, which is made if need be. Another user may neither own the folder nor
 * be able to write to it. At most size bytes of this process's records are kept there; the rows of other processes do
 * not count. With oldest the oldest records give way when it is full. NULL with the reason in nl_error_message().
 */
nl_spool *nl_spool_open(const char *folder, const nl_url *destination, size_t size, bool oldest);

/* Lets go of it; what is in it stays on disk. NULL is allowed. */
void nl_spool_close(nl_spool *spool);

/*
 * Adds data[0..size), whole records. NL_OK; NL_FAILED when it is full or cannot be written, with the reason. What is
 * larger than the whole spool never fits: with oldest it is counted as given up, and NL_OK.
 */
nl_status nl_spool_put(nl_spool *spool, const char *data, size_t size);

/*
 * Makes what was put, and the rows of other processes, safe against a crash of the machine. NL_OK, also when nothing
 * was put since the latest call; NL_FAILED with the reason. The kernel reports once that data did not reach the disk,
 * and may have forgotten that data. So after a failure every call fails until all records are delivered.
 */
nl_status nl_spool_sync(nl_spool *spool);

/* Returns the time on the monotonic clock of the oldest put that nl_spool_sync has not made safe; 0: all are safe. */
int64_t nl_spool_unsafe_since_ns(const nl_spool *spool);

/* Whether there is nothing to deliver. */
bool nl_spool_is_empty(const nl_spool *spool);

/*
 * The oldest bytes that are not delivered, whole puts of them, into out (emptied first). NL_OK, NL_END when there are
 * none. No bytes, and NL_OK, when only a loss is to be reported (nl_spool_lost): report it, then call
 * nl_spool_delivered. NL_FAILED with the reason when they cannot be read; the next call tries again.
 */
nl_status nl_spool_peek(nl_spool *spool, nl_buffer *out);

/* The first size bytes of what nl_spool_peek gave are delivered. */
void nl_spool_delivered(nl_spool *spool, size_t size);

/*
 * nl_spool_lost returns the number of records that the full spool dropped just before those that nl_spool_peek gives
 * next. nl_spool_read_losses appends blocks without records that announce their sequence numbers. nl_spool_lost_told
 * notes that both are delivered. Killed before it, a process reports them again. A process that was killed when it had
 * put records here, but had not yet removed them from its shared memory, has them twice: recovered records can then
 * be among those that count as lost.
 */
uint64_t nl_spool_lost(const nl_spool *spool);
nl_status nl_spool_read_losses(nl_spool *spool, nl_buffer *out);
void nl_spool_lost_told(nl_spool *spool);

#endif
