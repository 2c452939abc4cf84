/*
 * The open directory, in shared memory, of a process that has ended.
 */
#ifndef NETLOGGER_LOG_REMAINS_H
#define NETLOGGER_LOG_REMAINS_H

#include "log/drain.h"
#include "log/outbox.h"

#include <sys/types.h>

typedef struct nl_remains {
    int directory; /* descriptor */
    int lock;      /* descriptor; this process holds the lock */
    uid_t owner;
    bool copied; /* another user owns the files and may truncate them, so they are copied, not mapped */
    nl_mapping sites;
} nl_remains;

/* A log in the directory, with its rings. */
typedef struct nl_remains_log {
    nl_outbox outbox;
    nl_log_options options; /* options of its URL */
    nl_ring *rings;
} nl_remains_log;

/*
 * Opens parent/name if its process has ended. Returns NL_OK, NL_FAILED, or NL_AGAIN if the process still runs or
 * another process recovers the directory.
 */
nl_status nl_remains_open(nl_remains *remains, int parent, const char *name);
void nl_remains_close(nl_remains *remains);

/* Sets *count to one more than the largest number of a log, or to 0 if there is no log. Returns NL_OK or NL_FAILED. */
nl_status nl_remains_count_logs(const nl_remains *remains, unsigned *count);

/*
 * Opens the file log-NUMBER and its rings, and completes interrupted changes in them. Returns NL_END if this log does
 * not exist; NL_FAILED, without changes, if a file cannot be opened now, for example because memory or descriptors run
 * out.
 */
nl_status nl_remains_open_log(const nl_remains *remains, unsigned number, nl_remains_log *log);
void nl_remains_close_log(nl_remains_log *log);

/* Writes copied files back, so that a later attempt does not send records again. */
void nl_remains_save_log(const nl_remains *remains, const nl_remains_log *log);

/*
 * Removes from the batch the records that are in the destination's file. They may be anywhere in the file, because
 * other programs may have appended to it. A truncated record at the end of the file is completed by the next write or,
 * if cut_off is true, removed. `fd` is the file, open for writing. Returns NL_FAILED, with the batch unchanged, if
 * memory runs out or the file cannot be read.
 */
nl_status nl_remains_settle_batch(nl_shared_log *shared, const char *batch, int fd, bool cut_off);

#endif
