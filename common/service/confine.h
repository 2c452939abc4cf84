/*
 * Confines a daemon to the rights that its configuration needs.
 *
 * seccomp (confine_calls.h) denies system calls that the daemon does not need. Landlock denies access to files and TCP
 * ports that the configuration does not name. A process cannot undo either of them. The seccomp filter of confine()
 * applies to all threads. Landlock applies to the calling thread and to the threads that it starts later.
 *
 * Before confine(), the functions confine_keep_... collect the rights that the configuration needs. After confine(),
 * these functions check whether the process has the rights, because a new configuration cannot extend them. The
 * functions return false and set the error if the daemon must be restarted. Only one thread may call these functions.
 *
 * Landlock rules apply to directories, not to files, because programs replace files by renaming other files.
 */
#ifndef NETLOGGER_SERVICE_CONFINE_H
#define NETLOGGER_SERVICE_CONFINE_H

#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum confine_right { CONFINE_READ, CONFINE_WRITE /* also includes reading */ } confine_right;

/* Keeps access to everything below a directory, which must exist when confine() is called. */
bool confine_keep_directory(const char *path, confine_right right);

/*
 * Keeps access to the directory of a file, and to the directory of a symbolic link's target. For a device or pipe,
 * keeps access only to the device or pipe itself.
 */
bool confine_keep_file(const char *path, confine_right right);

/* Keeps the right to resolve host names, with the files that the resolver reads. */
bool confine_keep_resolver(void);

/* Keeps the right to connect to one TCP port, or to any port. The kernel limits ports since Linux 6.7. */
bool confine_keep_port(uint16_t port);
bool confine_keep_any_port(void);

/* Keeps access to the files and directories that a URL's options name, such as certificates, keys and a spool. */
bool confine_keep_files_of(const nl_url *url);

/*
 * Keeps the rights that a log's destination needs: for its file, spool, certificates, port and backup.
 */
bool confine_keep_url(const nl_url *url);

/*
 * Confines the process. Returns false and sets the error if the kernel or this build lacks seccomp or Landlock. If only
 * one of the two is missing, the other is still applied.
 */
bool confine(void);

/*
 * Confines a process that starts programs. Denies only the calls that no program started by a daemon needs. Returns the
 * same values as confine().
 */
bool confine_programs(void);

/* The maximum size of the name of a system call. */
enum { CONFINE_CALL_SIZE = 40 };

/*
 * Reports the next denied system call on standard error, and writes the name of the call to `name`, for the daemon's
 * log. Reports each call once. Returns false if all denied calls were reported.
 */
bool confine_report_refused(char name[CONFINE_CALL_SIZE]);

#endif
