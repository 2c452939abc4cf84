/*
 * What hosts report about their clocks (ClockKernel, ClockTracking, ClockOffset: doc/clocks.md): the latest state of
 * each host, and a warning in netlogd's own log when a host's clock is not synchronized or is off, and when it is right
 * again, at most once a minute for each host.
 *
 * A client may invent hosts. The table holds 1,024. When it is full, a new host replaces one that was silent for 15
 * minutes, or else, of the address that has brought the most hosts, the one that was silent for the longest. At most
 * 1,024 warnings a minute are logged.
 *
 * The module owns the table. The server's thread only.
 */
#ifndef NETLOGD_CLOCKS_H
#define NETLOGD_CLOCKS_H

#include "request.h"

/* Starts with an empty table. log may be NULL, or must stay. */
void clocks_start(nl_log *log);

/* Examines a record from peer, an address as listener_address_text writes it. It costs almost nothing for other
 * records. Returns whether the record describes a clock. */
bool clocks_put(const nl_record *record, const char *peer);

/* Writes the warnings that were delayed. Called every second. */
void clocks_report(void);

/* Counts the hosts in the table, and those whose clock is wrong. */
void clocks_count(size_t *hosts, size_t *wrong);

/* Appends a Netlogd.Clock for each host to the answer of a request. */
void clocks_describe(request *r);

#endif
