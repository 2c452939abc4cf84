/*
 * SIGHUP: the configuration is read anew, all of it and the certificates too, before anything is touched. One that
 * cannot be used is refused, with file, line and reason in netlogd's own log and on standard error, and the old one
 * holds on. Connections that are there stay as they are; new certificates and networks hold for new ones.
 */
#ifndef NETLOGD_RELOAD_H
#define NETLOGD_RELOAD_H

#include "server.h"

/* Reads it and changes over to it, if it can be used; false after the reasons were reported. */
bool reload(server *srv);

#endif
