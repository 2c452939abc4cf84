/*
 * What the collector asks of the programs that log to it: the text of a file (marker.h and nl_control have its
 * commands), sent as a whole to every client of the binary protocol when it connects and when the file changes.
 */
#ifndef NETLOGD_ACTIVATION_H
#define NETLOGD_ACTIVATION_H

#include <netlogger.h>

typedef struct activation activation;

/* path is copied. The file may come later. */
activation *activation_new(const char *path);
void activation_free(activation *a); /* NULL is allowed */

/* Looks at the file. Whether what is to be sent has changed; a file that can't be used is said on standard error, once.
 */
bool activation_look(activation *a);

/* The frame to be sent (doc/binary-format.md), empty while there was no file yet. */
nl_string activation_frame(const activation *a);

#endif
