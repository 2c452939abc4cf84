/*
 * UDP sockets: each datagram is one or more whole lines, the last one with or without its newline. The sender gets no
 * reply. While netlogd is busy or an output is blocked, the kernel drops datagrams.
 *
 * The module owns the list of sockets. The server's thread only.
 */
#ifndef NETLOGD_DATAGRAMS_H
#define NETLOGD_DATAGRAMS_H

#include "service/listener.h"

/* Starts to read datagrams from a listener's socket, which the caller owns. */
void datagrams_new(const listener *from);

/* Stops reading all sockets because an output is blocked, or starts again. */
void datagrams_pause(bool pause);

/* Reads the datagrams that the kernel holds now. For the end of the program. */
void datagrams_take_arrived(void);

void datagrams_free(void);

#endif
