/*
 * Reads the configuration again (SIGHUP, netlogctl reload). netlogd reads the whole configuration and the certificates
 * before it changes anything. If the configuration is invalid, netlogd reports the file, line and reason in its own log
 * and on standard error, and keeps the old configuration. Connections stay open unless they are no longer allowed.
 */
#ifndef NETLOGD_RELOAD_H
#define NETLOGD_RELOAD_H

#include <netlogger.h>

/*
 * Reads the configuration again, and applies it if it is valid. Reopens the outputs in any case, unless netlogd is
 * ending. On failure, reports all problems, sets the error and returns NL_FAILED.
 */
nl_status reload(void);

#endif
