/*
 * Confinement of a daemon to the rights that its configuration needs, so that a client that makes the daemon run
 * foreign code gains little.
 *
 * seccomp (confine_calls.h) refuses system calls. Landlock denies access to files and connections to TCP ports that the
 * configuration does not name. Both are irrevocable, and apply to all threads that are started later.
 *
 * Before confine(), the functions confine_keep_... record the rights that the configuration needs. After confine(),
 * they check whether the process has these rights, because a new configuration cannot extend them. They return false
 * and set the error if the daemon must be restarted. One thread.
 *
 * Landlock rules apply to directories, not to files, because files are replaced by renaming.
 */
#ifndef NETLOGGER_SERVICE_CONFINE_H
#define NETLOGGER_SERVICE_CONFINE_H

#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum confine_right { CONFINE_READ, CONFINE_WRITE /* and read */ } confine_right;

/* Keeps access to everything below a directory, which must exist when confine() is called. */
bool confine_keep_directory(const char *path, confine_right right);

/*
 * Keeps access to the directory of a file, and to the directory of a symbolic link's target. Of a device or pipe, keeps
 * access only to itself.
 */
bool confine_keep_file(const char *path, confine_right right);

/* Keeps the right to resolve host names, with the files that the resolver reads. */
bool confine_keep_resolver(void);

/* Keeps the right to connect to one TCP port, or to any. The kernel limits ports since Linux 6.7. */
bool confine_keep_port(uint16_t port);
bool confine_keep_any_port(void);

/* Keeps access to the files and directories that a URL's options name: certificates, keys, a spool. */
bool confine_keep_files_of(const nl_url *url);

/* Keeps the rights that a log's destination needs: the file, the spool, certificates, the port, the backup. */
bool confine_keep_url(const nl_url *url);

/*
 * Confines the process. Returns false and sets the error if the kernel or this build lacks seccomp or Landlock; the
 * other one still applies.
 */
bool confine(void);

/* Confines a process that starts programs: it loses only the calls that no program started by a daemon needs. Returns
 * as confine() does. */
bool confine_programs(void);

/* The maximum size of the name of a system call. */
enum { CONFINE_CALL_SIZE = 40 };

/*
 * Reports the next refused system call on standard error, each name once, and writes its name for the daemon's log.
 * Returns false if all were reported.
 */
bool confine_report_refused(char name[CONFINE_CALL_SIZE]);

#endif
