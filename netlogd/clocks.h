/*
 * Keeps the state of hosts' clocks, from the ClockKernel, ClockTracking and ClockOffset events that the hosts send
 * (doc/clocks.md). Writes a warning to netlogd's own log when a host's clock is wrong or not synchronized, and a notice
 * when the clock is right again. Writes at most one message per minute for each host. While all hosts are one machine
 * (CLOCK.MACHINE), a clock that is not synchronized is not wrong, because no other clock disagrees with it.
 *
 * Memory and messages are limited, because clients may invent host names. The table has space for 1,024 hosts. When it
 * is full, a new host replaces a host that has been silent for 15 minutes. If no host has been silent for 15 minutes,
 * the module finds the address with the most hosts. The new host then replaces the host of this address that has been
 * silent longest. netlogd logs at most 1,024 such messages per minute.
 *
 * The module owns the table. Only the server's thread may call it.
 */
#ifndef NETLOGD_CLOCKS_H
#define NETLOGD_CLOCKS_H

#include "request.h"

/* Starts with an empty table. `log` may be NULL, and must outlive the module. */
void clocks_start(nl_log *log);

/*
 * Examines a record from peer, an address in the form of listener_address_text. Returns whether the record describes a
 * clock.
 */
bool clocks_put(const nl_record *record, const char *peer);

/* Writes the warnings that were delayed. Called every second. */
void clocks_report(void);

/* Counts the hosts in the table, and the hosts whose clock is wrong. */
void clocks_count(size_t *hosts, size_t *wrong);

/* Appends a Netlogd.Clock record for each host to the reply to a request. */
void clocks_describe(request *r);

#endif
