/*
 * The commands that netlogd sends to the programs that log to it. netlogger/log.h describes the commands (nl_control).
 * The commands come from a file and from the control socket (netlogctl tell). Every client of the binary protocol gets
 * the commands for its program after it has connected, and again when a command changes. A program undoes commands that
 * netlogd no longer sends.
 *
 * The module owns the text of the file and the commands. Only the server's thread may call it.
 */
#ifndef NETLOGD_ACTIVATION_H
#define NETLOGD_ACTIVATION_H

#include <netlogger.h>

/* Reads the file at path (NULL: no file), which need not exist yet, and begins to check it for changes. */
void activation_start(const char *path);
void activation_free(void);

/*
 * Adds a command for programs whose name matches the glob pattern `prog`. An empty command removes all commands for
 * that pattern. The programs then also undo the commands of an earlier netlogd. On failure, sets the error and returns
 * NL_FAILED.
 */
nl_status activation_tell(const char *prog, const char *command);

/*
 * Returns the frame for a program (doc/binary-format.md), which is valid until the next call. The result is empty if no
 * command was set or revoked since the start of netlogd.
 */
nl_string activation_frame(const char *prog);

#endif
