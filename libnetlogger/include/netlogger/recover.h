/*
 * What processes left behind: those that were killed, and those that closed a log while its collector was away.
 *
 * The events of a log lie in shared memory until the destination has them (event.h). When a process is killed or
 * crashes, or nl_close could not deliver them, they stay there, in a folder /dev/shm/netlogger-UID-PID-..., and
 * nl_recover brings them to where they were going: every event whose call had returned, once, in order. What the
 * process was just writing into a file is completed there. The program nlrecover does this from the command line, and
 * netlogd does it by itself for the processes of its own user.
 *
 * Only folders of the calling user's are looked at; those of others only by root, and only with a destination given
 * here, because what lies in a folder (the destination too) is its owner's word. A folder whose process lives is left
 * alone.
 */
#ifndef NETLOGGER_RECOVER_H
#define NETLOGGER_RECOVER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef struct nl_recover_options {
    const char *destination; /* a URL (url.h): there, instead of where each log was going; NULL: not */
    bool everyone;           /* folders of all users, with a destination only */
    bool list_only;          /* look, and change nothing */
} nl_recover_options;

/* One log of one dead process. Everything in it lasts only during the call. */
typedef struct nl_recovered {
    int process; /* its number when it lived */
    const char *prog;
    const char *url;     /* where the log was going */
    uint64_t records;    /* recovered, or with list_only what is waiting */
    nl_status status;    /* NL_OK: all are at the destination; NL_FAILED: they are still there, or in the spool */
    const char *message; /* why, when it failed; otherwise "" */
} nl_recovered;

/*
 * Recovers what there is, and with it what waits in the spools of these logs. A log with a spool whose collector is
 * away is moved there, which is NL_FAILED: what stays in shared memory says where the spool is, and later calls deliver
 * it. (The spool of a log that was closed well is known to nobody: the next log with the same URL delivers that.)
 *
 * options may be NULL for all defaults; report, which may be NULL, is told of each log. NL_OK when nothing is left,
 * NL_FAILED when a log could not be recovered (it can be tried again) or the folders can't be looked at. Any number of
 * processes and threads may do this at once: each log is recovered by one of them.
 */
NL_API nl_status nl_recover(const nl_recover_options *options, void (*report)(void *user, const nl_recovered *what),
                            void *user);

NL_END_DECLS
#endif
