/*
 * The TCP connections that records name by the addresses of both ends: TCP.LOCAL and TCP.PEER, or LOCAL and PEER
 * (nlkernel trace), each as ADDRESS:PORT. Numbers the connections from 1. The two ends of a connection name the same
 * addresses in different order, and have the same number. Loopback addresses are different on each host.
 *
 * A record can also name the part of the connection's data that it is about: TCP.OFFSET is the number of bytes that the
 * sender has sent on the connection before this part, and TCP.SIZE is the size of the part in bytes. Each such part has
 * a number of its own. Not thread-safe.
 */
#ifndef NLDIAG_VISIT_ENDS_H
#define NLDIAG_VISIT_ENDS_H

#include <netlogger.h>
#include <stdint.h>

typedef struct visit_ends visit_ends;

visit_ends *visit_ends_new(void);
void visit_ends_free(visit_ends *e);

/* Returns the number of the connection, or of the part of its data, that a record names. Returns 0 if the record names
 * no connection. There are at most VISIT_ENDS_MAX numbers; further connections also have the number 0. */
enum { VISIT_ENDS_MAX = 1 << 20 };
uint32_t visit_ends_read(visit_ends *e, const nl_record *record);

/* Returns the number of a connection, or 0 if no record has named it. `host` is the host of one end. */
uint32_t visit_ends_find(visit_ends *e, const char *host, const char *local, const char *peer);

/* The connection to which a number belongs, and the part of its data: bytes from `offset` to offset + size. `size` is 0
 * if the number is that of a connection. */
typedef struct visit_part {
    uint32_t connection;
    double offset, size;
} visit_part;

/* Returns the part with this number, which is not 0. */
visit_part visit_ends_part(const visit_ends *e, uint32_t number);

/* Returns the highest number. */
uint32_t visit_ends_count(const visit_ends *e);

#endif
