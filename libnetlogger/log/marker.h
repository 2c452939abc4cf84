/*
 * The markers of the process and the probes that are attached to them: what of it the rest of the library uses. The
 * lock inside is held for moments only, and whoever holds it takes no other.
 */
#ifndef NETLOGGER_LOG_MARKER_H
#define NETLOGGER_LOG_MARKER_H

#include <netlogger.h>

/*
 * As nl_marker_detach, but does not wait: for the log's writer thread, which those who are in a probe may be waiting
 * for. *info, when not NULL, is what it has found.
 */
nl_status nl_marker_detach_at_once(nl_probe probe, nl_probe_info *info);

/* Detaches every probe that logs in log, and waits. */
void nl_markers_forget_log(nl_log *log);

#endif
