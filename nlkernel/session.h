/*
 * Runs a recording from start to end. The module sets up the tracing instance, the events and their filters, a lane for
 * each CPU, the command and the clock. At the end, the module restores the former state of the kernel's tracing. Each
 * lane has a separate thread. All other code runs in the caller's thread.
 */
#ifndef NLKERNEL_SESSION_H
#define NLKERNEL_SESSION_H

#include "options.h"
#include "sink.h"

/*
 * Records until the duration has elapsed, the command ends, or SIGINT, SIGTERM or SIGHUP arrives. After choosing the
 * events, calls open(sink, user) with the calling user's rights. `open` opens the sink, or returns false and sets the
 * error. Prints problems on standard error. Returns an exit status.
 */
int session_run(const recording_options *options, bool (*open)(sink *s, const void *user), const void *user);

#endif
