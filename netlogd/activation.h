/*
 * The commands that the collector sends to the programs that log to it: the text of a file (nl_control describes the
 * commands), and the commands that arrived at the control socket (netlogctl tell). Every client of the binary protocol
 * gets all of them when it connects, and again when any of them changes. A program undoes commands that are no longer
 * sent.
 *
 * The module owns the text of the file and the commands. The server's thread only.
 */
#ifndef NETLOGD_ACTIVATION_H
#define NETLOGD_ACTIVATION_H

#include <netlogger.h>

/* Reads the file at path and starts to check it for changes. The file need not exist yet. path NULL: no file. */
void activation_start(const char *path);
void activation_free(void);

/*
 * Adds a command for the programs whose name matches the glob prog, as long as netlogd runs. An empty command removes
 * all commands for that glob. Returns NL_FAILED after setting the error.
 */
nl_status activation_tell(const char *prog, const char *command);

/*
 * Returns the frame for a program (doc/binary-format.md), valid until the next call. It is empty if no command was ever
 * set.
 */
nl_string activation_frame(const char *prog);

#endif
