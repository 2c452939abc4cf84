/*
 * Opens the directory that an ended process has left in shared memory, and prepares its logs for recovery.
 */
#ifndef NETLOGGER_LOG_REMAINS_H
#define NETLOGGER_LOG_REMAINS_H

#include "log/drain.h"
#include "log/outbox.h"

#include <sys/types.h>

typedef struct nl_remains {
    int directory; /* descriptor of the directory */
    int lock;      /* descriptor of the directory's file "lock", which this process has locked */
    uid_t owner;
    bool copied; /* another user owns the files and may truncate them, so they are copied, not mapped */
    nl_mapping sites;
    void (*on_damaged)(void *user, const char *name); /* called for each damaged file, with its problem as the thread's
                                                       * error; or NULL */
    void *user;
} nl_remains;

/* A log in the directory, with its rings. */
typedef struct nl_remains_log {
    nl_outbox outbox;
    nl_log_options options; /* options of its URL */
    nl_ring *rings;
    bool damaged; /* a ring is damaged and not in `rings` */
} nl_remains_log;

/*
 * Opens the directory `name` in the directory with the descriptor `parent` if its process has ended or has closed its
 * last log. Returns NL_OK. Returns NL_AGAIN if the process still has open logs, another process recovers the directory,
 * or the directory or its lock file does not exist. Returns NL_FAILED with the reason on other failures. The caller
 * calls nl_remains_close only after NL_OK.
 */
nl_status nl_remains_open(nl_remains *remains, int parent, const char *name);
void nl_remains_close(nl_remains *remains);

/*
 * Sets *count to one more than the largest number of a log, or to 0 if there is no log. Ignores numbers of 1,000,000
 * and more. Returns NL_OK, or NL_FAILED with the reason if the directory cannot be read; *count is then invalid.
 */
nl_status nl_remains_count_logs(const nl_remains *remains, unsigned *count);

/*
 * Opens the file log-NUMBER and its rings, and completes interrupted changes in them. Calls remains->on_damaged for
 * each file with an invalid head, and does not change these files. Returns NL_OK, or NL_END if the log does not exist.
 * Returns NL_MALFORMED if the file log-NUMBER is damaged. Returns NL_FAILED, without changes, if a file cannot be
 * opened now, for example because memory or descriptors run out.
 */
nl_status nl_remains_open_log(const nl_remains *remains, unsigned number, nl_remains_log *log);
void nl_remains_close_log(nl_remains_log *log);

/* If the files are copied, writes them back, so that a later attempt does not send records again. */
void nl_remains_save_log(const nl_remains *remains, const nl_remains_log *log);

/*
 * Removes from the batch the records that the destination's file already contains after the offset shared->file_offset.
 * Records of other programs may precede or follow these records. If the file ends with a truncated record, the next
 * write to the file completes this record; if cut_off is true, the function removes it from the file instead. `fd` is
 * the file, open for writing. Returns NL_OK even if `fd` is not a regular file. Returns NL_FAILED, with the batch
 * unchanged, if memory runs out or the file cannot be read or truncated.
 */
nl_status nl_remains_settle_batch(nl_shared_log *shared, const char *batch, int fd, bool cut_off);

#endif
