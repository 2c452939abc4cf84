/*
 * Recovery of events from programs that were killed, and from programs that closed a log while its collector was
 * unreachable.
 *
 * The events of a log stay in shared memory until the destination has them (log.h). If a process is killed, or nl_close
 * cannot deliver the events, they remain in a directory named /dev/shm/netlogger-UID-PID-... . nl_recover delivers
 * these events to the log's destination, in order. Each event whose logging call had returned is delivered exactly
 * once. nl_recover also completes a partial write to a file. The programs nlrecover and netlogd call nl_recover;
 * netlogd recovers only the events of its own user.
 *
 * nl_recover considers only directories of the calling user. root can also recover directories of other users, but only
 * to a destination given in the options. The reason is that the owner of a directory controls the destination that is
 * stored in the directory. nl_recover ignores the directory of a process that is running and has open logs. A process
 * that has closed its last log counts as ended.
 */
#ifndef NETLOGGER_RECOVER_H
#define NETLOGGER_RECOVER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef struct nl_recover_options {
    const char *destination; /* URL of the destination of all events; NULL means each log's own destination */
    bool everyone;           /* recover the directories of all users; requires destination, unless list_only is set */
    bool list_only;          /* report the logs, and change nothing */
} nl_recover_options;

/* One log of an ended process. The strings are valid during the callback only. */
typedef struct nl_recovered {
    int process; /* process ID */
    const char *prog;
    const char *url;     /* destination of the log, or the path of a damaged file, which stays */
    uint64_t records;    /* number of recovered records or, with list_only, of waiting records */
    nl_status status;    /* NL_OK if the records are delivered, or with list_only; NL_FAILED if the records are still in
                          * shared memory or in the spool */
    const char *message; /* the reason of a failure and the directory of the remaining events, or "" */
} nl_recovered;

/*
 * Recovers the logs of ended processes, including the spools of these logs. If a log has a spool and its collector is
 * unreachable, nl_recover moves the events to the spool and reports NL_FAILED for that log. Shared memory keeps the
 * location of the spool, so that a later call can deliver the spool. (The next log with the same URL delivers the spool
 * of a log that was closed without error.)
 *
 * options may be NULL for the defaults. For each log, nl_recover calls report with user, unless report is NULL. Returns
 * NL_OK, or NL_FAILED if a log cannot be recovered, the directories cannot be listed, or options are invalid. After a
 * failure, call nl_recover again later. Several threads and processes may call nl_recover at the same time; only one of
 * them recovers each log. Not safe in signal handlers.
 */
NL_API nl_status nl_recover(const nl_recover_options *options, void (*report)(void *user, const nl_recovered *what),
                            void *user);

NL_END_DECLS
#endif
