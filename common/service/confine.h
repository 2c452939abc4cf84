/*
 * A daemon keeps only the rights that its configuration needs, so that a client who makes it run code of his own gains
 * little by that.
 *
 * Two means of the kernel: seccomp (confine_calls.h) refuses system calls. Landlock refuses to read and write files,
 * and to connect to TCP ports, other than those that the configuration names. Neither can be taken back, and both hold
 * for all threads that are started later.
 *
 * Before confine(), the functions confine_keep_... note what the configuration names. After it, they tell whether the
 * process has the right, and change nothing: a configuration that is read again may not name more. They return false
 * with an error that tells to restart the daemon. If confine() was not called, they return true. All functions are for
 * one thread.
 *
 * Rights are kept for directories, not for files, because files are replaced by renaming.
 */
#ifndef NETLOGGER_SERVICE_CONFINE_H
#define NETLOGGER_SERVICE_CONFINE_H

#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum confine_right { CONFINE_READ, CONFINE_WRITE /* and read */ } confine_right;

/* Everything below a directory. It need not be there until confine() is called. */
bool confine_keep_directory(const char *path, confine_right right);

/* The directory of a file, and the one that a symbolic link of that name leads to; of a device or pipe only itself. */
bool confine_keep_file(const char *path, confine_right right);

/* To look up host names, and all that this reads: /etc, for one. */
bool confine_keep_resolver(void);

/* To connect to a TCP port; to any. The kernel limits ports since Linux 6.7. */
bool confine_keep_port(uint16_t port);
bool confine_keep_any_port(void);

/* The files and folders that the options of a URL name: certificates, keys, a spool. */
bool confine_keep_files_of(const nl_url *url);

/* What a log's destination, or its backup, needs: the file, its spool, certificates, the port. */
bool confine_keep_url(const nl_url *url);

/* False when the kernel, or the build, has not all of it: the error tells what is missing, and the rest holds. */
bool confine(void);

/* For a process that starts programs: these need files and calls of their own, and lose only a few calls that no
 * program of a daemon needs. Returns as confine() does. */
bool confine_programs(void);

/* Bytes of the name of a system call. */
enum { CONFINE_CALL_SIZE = 40 };

/*
 * Reports a system call that was refused since the last report on standard error, and returns its name for the daemon's
 * log. Returns false when all are reported; each is reported once.
 */
bool confine_report_refused(char name[CONFINE_CALL_SIZE]);

#endif
