/*
 * A recording, from its first step to its last: the instance, the events and their filters, a lane for each CPU, the
 * command, the clock, and at the end everything as it was before.
 */
#ifndef NLKERNEL_SESSION_H
#define NLKERNEL_SESSION_H

#include "options.h"
#include "sink.h"

/*
 * Records into sink until the time is over, the command has ended, or SIGINT, SIGTERM or SIGHUP comes. Returns an exit
 * status, having said on standard error what went wrong. The sink stays open.
 */
int session_run(const recording_options *options, sink *sink);

#endif
