/*
 * UDP sockets: each datagram is one or more whole lines, the last one with or without its newline. The sender gets no
 * answer, and the kernel drops datagrams while netlogd is busy or an output is blocked.
 *
 * The module owns the list of sockets. The server's thread only.
 */
#ifndef NETLOGD_DATAGRAMS_H
#define NETLOGD_DATAGRAMS_H

#include "service/listener.h"

/* Reads a socket, which the caller owns, from now on. */
void datagrams_new(const listener *from);

/* Stops or starts reading all sockets, while an output is blocked. */
void datagrams_pause(bool pause);

/* Reads the datagrams that the kernel holds now. For the end of the program. */
void datagrams_take_arrived(void);

void datagrams_free(void);

#endif
