/*
 * Reads the ends of TCP connections from an eBPF program (tcp_close.bpf.c). With this module, the connections sensor
 * reports connections that begin and end between two measurements. Not thread-safe.
 *
 * The eBPF program stores the ends in a ring of 16 MiB, which has space for the ends of about 116,000 connections. The
 * program counts the ends for which the ring has no space. socket_ends_next removes ends from the ring.
 */
#ifndef NLAGENT_SOCKET_ENDS_H
#define NLAGENT_SOCKET_ENDS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "tcp_close.h"

typedef struct socket_ends socket_ends;

/*
 * Starts the eBPF program for this network namespace. Returns NULL if the kernel or the rights of the process do not
 * allow eBPF, or if nlsensor was built without eBPF. The kernel removes the eBPF program when the process ends.
 */
socket_ends *socket_ends_new(void);

/* Moves the next end from the ring to *end. Returns false if the ring is empty. */
bool socket_ends_next(socket_ends *e, struct tcp_close *end);

/* Returns the number of ends that were lost since socket_ends_new because the ring had no space. */
uint64_t socket_ends_missed(const socket_ends *e);

#endif
