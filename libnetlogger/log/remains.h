/* The folder of a dead process, opened. */
#ifndef NETLOGGER_LOG_REMAINS_H
#define NETLOGGER_LOG_REMAINS_H

#include "log/drain.h"
#include "log/outbox.h"

#include <sys/types.h>

typedef struct nl_remains {
    int folder; /* descriptor */
    int lock;   /* descriptor; the lock is this process's now */
    uid_t owner;
    bool copied; /* it is another user's, who may cut off its files at any time: they are copied, not mapped */
    nl_mapping sites;
} nl_remains;

/* One log in it, with its rings. */
typedef struct nl_remains_log {
    nl_outbox outbox;
    nl_log_options options; /* of its URL */
    nl_ring *rings;
} nl_remains_log;

/* Opens parent/name when its process is dead. NL_OK; NL_AGAIN when it lives, or another recovers it; NL_FAILED. */
nl_status nl_remains_open(nl_remains *remains, int parent, const char *name);
void nl_remains_close(nl_remains *remains);

/* Sets *count to one more than the largest number of a log in the folder; 0: there are none. NL_OK or NL_FAILED. */
nl_status nl_remains_count_logs(const nl_remains *remains, unsigned *count);

/*
 * Opens its file log-NUMBER and the rings of it, and finishes what was half done in them. NL_END when there is no such
 * log. NL_FAILED when any file cannot be opened now, for lack of memory or descriptors: then nothing was changed.
 */
nl_status nl_remains_open_log(const nl_remains *remains, unsigned number, nl_remains_log *log);
void nl_remains_close_log(nl_remains_log *log);

/* Puts what was copied back into its files, so that what is sent already is not sent again by who tries again. */
void nl_remains_save_log(const nl_remains *remains, const nl_remains_log *log);

/*
 * Takes off the batch what is in the destination's file already, wherever it is there: other programs may have written
 * behind it. A record at the end of the file that the kill cut is completed by whoever writes on, or with cut_off taken
 * away. fd is the file, opened for writing. NL_FAILED, with the batch as it was, when there is no memory or the file
 * cannot be read.
 */
nl_status nl_remains_settle_batch(nl_shared_log *shared, const char *batch, int fd, bool cut_off);

#endif
