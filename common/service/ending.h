/*
 * The end of the process within stop-timeout, even if a peer hangs: another collector, a name server, or the
 * destination of netlogd's own events.
 *
 * Code that waits for a peer limits its wait to ending_left_ms. When all received records are in the outputs' files and
 * journals, netlogd calls ending_enforce: from then on the process may end at any moment without loss, because spools
 * hold the undelivered records. Until then the end takes as long as the disk needs. One thread.
 */
#ifndef NETLOGGER_SERVICE_ENDING_H
#define NETLOGGER_SERVICE_ENDING_H

#include <stdint.h>

/* Begins the end, which may take at most this number of seconds. */
void ending_begin(unsigned seconds);

/* Returns the remaining milliseconds, or the default before the end begins. */
int64_t ending_left_ms(void);

/* Makes the process end when the time is over, after removing pid_file, which may be NULL. */
void ending_enforce(const char *pid_file);

/* Removes the file, unless it contains the ID of another process, which was started meanwhile. */
void ending_remove_pid_file(const char *path);

#endif
