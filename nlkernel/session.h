/*
 * A recording, from its first step to its last: the instance, the events and their filters, a lane for each CPU, the
 * command, the clock, and at the end everything as it was before.
 */
#ifndef NLKERNEL_SESSION_H
#define NLKERNEL_SESSION_H

#include "options.h"
#include "sink.h"

/*
 * Records until the time is over, the command has ended, or SIGINT, SIGTERM or SIGHUP comes, into the sink that open
 * opens, as the caller of the program, once it is known that there is something to record; false, with the reason in
 * nl_error_message(), when it can't be. Returns an exit status, having said on standard error what went wrong.
 */
int session_run(const recording_options *options, bool (*open)(sink *s, const void *user), const void *user);

#endif
