/*
 * What the hosts that log have said of their clocks (ClockKernel, ClockTracking, ClockOffset: doc/clocks.md): the
 * latest of each host, and a warning in netlogd's own log when a host's clock is not synchronized, or far from this
 * one's, and when it is right again; of each host once a minute at most.
 *
 * Anybody may invent hosts. The table holds 1,024. When it is full, a new host takes the place of one that was silent
 * for 15 minutes, or else of the one that was silent for longest among the hosts of the address that has brought most.
 * At most 1,024 warnings a minute are logged.
 *
 * The server's thread alone.
 */
#ifndef NETLOGD_CLOCKS_H
#define NETLOGD_CLOCKS_H

#include "request.h"
#include "reader/decoder.h"

typedef struct clocks clocks;

/* log may be NULL, or is to outlive it. The caller's, for clocks_free; that there is no memory ends the program. */
clocks *clocks_new(nl_log *log);

/* Looks at a record that came from peer (as listener_address_text has it); costs next to nothing when it is not of a
 * clock. Returns whether it is of a clock. */
bool clocks_put(clocks *c, const nl_record *record, const char *peer);

/* Says what could not be said before, because something had just been said of that host; to be called now and then. */
void clocks_tell(clocks *c);

/* How many hosts have said something, and how many of them are not synchronized or off. */
void clocks_count(const clocks *c, size_t *hosts, size_t *wrong);

/* A Netlogd.Clock for each host. */
void clocks_describe(const clocks *c, request *r);

void clocks_free(clocks *c);

#endif
