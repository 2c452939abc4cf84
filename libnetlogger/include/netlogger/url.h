/*
 * Names of sources and destinations: URLs with options. netlogger(7) describes them.
 */
#ifndef NETLOGGER_URL_H
#define NETLOGGER_URL_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

/* The TCP and UDP port of a collector if its URL does not name a port. */
#define NL_DEFAULT_PORT 14830

#endif
