/*
 * A UDP socket: each datagram is one or several whole lines, the last one with or without its newline. Nothing is told
 * to whom sent it, and what the kernel drops while netlogd is busy or its output is blocked is lost.
 */
#ifndef NETLOGD_DATAGRAMS_H
#define NETLOGD_DATAGRAMS_H

#include "server.h"

/* Joins the server's list. */
datagrams *datagrams_new(server *srv, const listener *from);

/* Starts or stops reading, while the output is blocked. */
void datagrams_pause(datagrams *d, bool pause);

/* Reads what the kernel holds at this moment; for the end of the program. */
void datagrams_take_what_came(datagrams *d);

/* Does not close the socket, which is the listener's. */
void datagrams_free(datagrams *d);

/* The list that the server keeps. */
datagrams *datagrams_next(const datagrams *d);

#endif
