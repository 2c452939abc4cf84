/*
 * Reads records from datagram sockets. Each datagram contains whole lines, whole blocks or one syslog message. The
 * newline of the last line is optional. The sender gets no reply. While netlogd is busy or an output is blocked, the
 * kernel may drop datagrams; netlogd counts and reports them.
 *
 * The module owns the list of sockets. Only the server's thread may call it.
 */
#ifndef NETLOGD_DATAGRAMS_H
#define NETLOGD_DATAGRAMS_H

#include "service/listener.h"

/* Begins to read datagrams from a listener's socket, which the caller owns. */
void datagrams_new(const listener *from);

/* Stops reading all sockets because an output is blocked, or resumes reading. */
void datagrams_pause(bool pause);

/* Reads the datagrams that the kernel has buffered now. Called at the end of the program. */
void datagrams_take_arrived(void);

/* Counts the datagrams that the kernel has dropped, and writes an event for each socket with new drops. */
void datagrams_check_drops(void);

void datagrams_free(void);

#endif
