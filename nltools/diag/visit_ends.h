/*
 * The TCP connections that records name by the addresses of both ends: TCP.LOCAL and TCP.PEER, or LOCAL and PEER
 * (nlkernel trace), each as ADDRESS:PORT. Numbers the connections from 1. The records at both ends of a connection name
 * the same addresses in different order, and get the same number. Equal loopback addresses on different hosts get
 * different numbers. Not thread-safe.
 */
#ifndef NLDIAG_VISIT_ENDS_H
#define NLDIAG_VISIT_ENDS_H

#include <netlogger.h>
#include <stdint.h>

typedef struct visit_ends visit_ends;

visit_ends *visit_ends_new(void);
void visit_ends_free(visit_ends *e);

/* Returns the number of the connection that a record names, or 0. Numbers at most VISIT_ENDS_MAX connections. */
enum { VISIT_ENDS_MAX = 1 << 20 };
uint32_t visit_ends_read(visit_ends *e, const nl_record *record);

/* Returns the number of a connection, or 0 if no record has named it. `host` is the host of one end. */
uint32_t visit_ends_find(visit_ends *e, const char *host, const char *local, const char *peer);

/* Returns the highest number. */
uint32_t visit_ends_count(const visit_ends *e);

#endif
