/*
 * Events with the CPU's own counters: how many cycles, instructions, misses of caches the CPU had counted when each
 * happened. The ring buffer of tracefs can't have them: these come through perf_event_open, one sample an event, at
 * some more cost. One thread.
 */
#ifndef NLKERNEL_COUNTERS_H
#define NLKERNEL_COUNTERS_H

#include "options.h"

/*
 * Whether this machine has any of the counters named in a list with commas: those that it has not are said on standard
 * error, by name. False, too, when a name is none, with the reason in nl_error_message(), empty otherwise.
 */
bool counters_any(const char *names);

/*
 * Records into a file, as session_run does, with a field for each counter that there is. Returns an exit status, having
 * said what went wrong.
 */
int counters_record(const recording_options *options, const char *names, const char *output, nl_format format);

#endif
