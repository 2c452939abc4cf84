/*
 * The state of hosts' clocks, from the ClockKernel, ClockTracking and ClockOffset events that the hosts send
 * (doc/clocks.md). netlogd's own log gets a warning when a host's clock is not synchronized or is wrong, and a notice
 * when it is right again, at most once a minute for each host.
 *
 * A client may invent host names. The table holds 1,024. When it is full, a new host replaces a host that has been
 * silent for 15 minutes. If no host has been, the address with the most hosts loses its host that has been silent
 * longest. At most 1,024 warnings a minute are logged.
 *
 * The module owns the table. The server's thread only.
 */
#ifndef NETLOGD_CLOCKS_H
#define NETLOGD_CLOCKS_H

#include "request.h"

/* Starts with an empty table. log may be NULL; otherwise it must outlive the module. */
void clocks_start(nl_log *log);

/*
 * Examines a record from peer, an address as listener_address_text writes it. Returns whether the record describes a
 * clock; this check is cheap.
 */
bool clocks_put(const nl_record *record, const char *peer);

/* Writes the warnings that were delayed. Called every second. */
void clocks_report(void);

/* Counts the hosts in the table, and the hosts whose clock is wrong. */
void clocks_count(size_t *hosts, size_t *wrong);

/* Appends a Netlogd.Clock record for each host to the reply to a request. */
void clocks_describe(request *r);

#endif
