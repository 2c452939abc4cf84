/*
 * Reading the configuration again (SIGHUP, netlogctl reload). netlogd reads the whole configuration and the
 * certificates before anything changes. It rejects an invalid configuration, with file, line and reason in its own log
 * and on standard error, and keeps the old one in force. Connections stay, unless they are no longer allowed.
 */
#ifndef NETLOGD_RELOAD_H
#define NETLOGD_RELOAD_H

#include <netlogger.h>

/*
 * Reads the configuration again, puts it in force if it is valid, and reopens the outputs. Returns NL_FAILED, with the
 * error set, after reporting all problems.
 */
nl_status reload(void);

#endif
