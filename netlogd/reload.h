/*
 * Reading the configuration again (SIGHUP, netlogctl reload). The whole configuration and the certificates are read
 * before anything changes. An invalid configuration is rejected, with file, line and reason in netlogd's own log and
 * on standard error, and the old one stays in force. Connections stay, unless they are no longer allowed.
 */
#ifndef NETLOGD_RELOAD_H
#define NETLOGD_RELOAD_H

#include <netlogger.h>

/* Reads the configuration again, puts it in force if it is valid, and reopens the outputs. Returns NL_FAILED, with the
 * error set, after it has reported all problems. */
nl_status reload(void);

#endif
