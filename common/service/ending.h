/*
 * Prevents a peer that hangs from delaying the process's exit beyond stop-timeout. A peer is another collector, a name
 * server, or the destination of netlogd's own events.
 *
 * Code that waits for a peer limits its wait to ending_left_ms. When all received records are in the outputs' files and
 * journals, netlogd calls ending_enforce. After this call, the process may exit at any moment without loss, because the
 * undelivered records are in spools. Before this call, the shutdown takes as long as the disk needs. Only one thread
 * may call these functions.
 */
#ifndef NETLOGGER_SERVICE_ENDING_H
#define NETLOGGER_SERVICE_ENDING_H

#include <stdint.h>

/* Begins the shutdown, which may take at most this number of seconds. */
void ending_begin(unsigned seconds);

/* Returns the time in milliseconds that is left for the shutdown. Before the shutdown begins, returns the default
 * limit. */
int64_t ending_left_ms(void);

/* Makes the process remove pid_file, which may be NULL, and exit when the time for ending has elapsed. */
void ending_enforce(const char *pid_file);

/* Removes the file if it contains the ID of this process. */
void ending_remove_pid_file(const char *path);

#endif
