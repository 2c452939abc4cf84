/*
 * The end of the process, which takes no longer than stop-timeout says, whoever hangs: another collector that takes
 * nothing, a name server that does not answer, whoever takes netlogd's own events.
 *
 * What waits for them is asked to hurry by the time that is left. What does so all the same is left behind: from the
 * moment when all that was received is in the outputs' files and journals, nothing is lost by an end of the process at
 * any moment, for what was to be delivered is in spools. Until then the end takes as long as the disk does.
 *
 * Of the server's thread.
 */
#ifndef NETLOGGER_SERVICE_ENDING_H
#define NETLOGGER_SERVICE_ENDING_H

#include <stdint.h>

/* The end begins; it is to take so many seconds. */
void ending_begin(unsigned seconds);

/* Milliseconds that are left, 0 at least; before the end begins what holds unless something is said. */
int64_t ending_left_ms(void);

/* All is written: when the time is over the process ends, wherever it is. pid_file, which goes first, may be NULL. */
void ending_enforce(const char *pid_file);

/* Removes the file, unless another process has written its number there: one that was begun while this one ended. */
void ending_remove_pid_file(const char *path);

#endif
