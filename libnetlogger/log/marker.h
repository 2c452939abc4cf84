/*
 * The internal interface to the process's markers and their probes. Threads hold the module's lock only briefly, and
 * take no other lock while they hold it.
 */
#ifndef NETLOGGER_LOG_MARKER_H
#define NETLOGGER_LOG_MARKER_H

#include <netlogger.h>

/*
 * Like nl_marker_detach, but does not wait, because a thread that runs a probe may be waiting for the writer thread.
 * Stores the probe's results in *info, unless info is NULL. Returns NL_OK, or NL_END if no such probe exists.
 */
nl_status nl_marker_detach_at_once(nl_probe probe, nl_probe_info *info);

/* Fills *info with the results of a probe; pattern and to are NULL. Returns false if no such probe exists. */
bool nl_probe_read(nl_probe probe, nl_probe_info *info);

/*
 * Detaches every probe that logs to log. Waits until no thread runs such a probe, unless the calling thread runs a
 * probe.
 */
void nl_markers_forget_log(nl_log *log);

#endif
