/*
 * What the collector asks of the programs that log to it: the text of a file (marker.h and nl_control have its
 * commands) and what it was told over its control socket, sent as a whole to every client of the binary protocol when
 * it connects and when something of it changes. A program undoes what is said no more.
 */
#ifndef NETLOGD_ACTIVATION_H
#define NETLOGD_ACTIVATION_H

#include <netlogger.h>

typedef struct activation activation;

/* path is copied; NULL: there is no file. The file may come later. */
activation *activation_new(const char *path);
void activation_free(activation *a); /* NULL is allowed */

/* Looks at the file. Whether what is to be sent has changed; a file that can't be used is said on standard error, once.
 */
bool activation_look(activation *a);

/*
 * Adds a command for the programs whose name matches the glob prog, for as long as netlogd runs; one without words
 * takes back what was told to that very glob. NULL when done, otherwise why not.
 */
const char *activation_tell(activation *a, const char *prog, const char *command);

/* The frame for a program (doc/binary-format.md), valid until the next call; empty while nothing was ever asked. */
nl_string activation_frame(activation *a, const char *prog);

#endif
