/*
 * The ends of TCP connections, from an eBPF program (tcp_close.bpf.c), so that connections are seen that begin and end
 * between two measurements.
 *
 * The kernel stores the ends in a ring of 16 MiB, which holds the ends of 80,000 connections. socket_ends_next takes
 * them out. The kernel counts the ends that do not fit. The connections sensor calls this module. Not thread-safe.
 */
#ifndef NLAGENT_SOCKET_ENDS_H
#define NLAGENT_SOCKET_ENDS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "tcp_close.h"

typedef struct socket_ends socket_ends;

/*
 * Starts to watch this network namespace. Returns NULL if the kernel or the process's rights do not allow it, or if the
 * program was built without eBPF. The kernel stops when the process ends.
 */
socket_ends *socket_ends_new(void);

/* Copies the next end. Returns false if there is no further end now. */
bool socket_ends_next(socket_ends *e, struct tcp_close *end);

/* Returns the number of ends that were lost so far, because the ring was full. */
uint64_t socket_ends_missed(const socket_ends *e);

#endif
