/*
 * The seccomp filter of system calls, which is built with libseccomp. Like chrony's filter, it is a list of the calls
 * and arguments that a daemon needs.
 *
 * chrony kills a process that makes an unlisted call. However, netlogd must not lose events because a resolver module
 * or a new libc makes an unlisted call. Therefore, a denied call only fails. If the list has the call with other
 * arguments, the error is EPERM. Otherwise, the error is ENOSYS, which makes libc use an older call. The module reports
 * each denied call once.
 *
 * The module owns the list of denied calls and the SIGSYS handler. Threads must not block SIGSYS, because a denied call
 * of such a thread kills the process.
 */
#ifndef NETLOGGER_SERVICE_CONFINE_CALLS_H
#define NETLOGGER_SERVICE_CONFINE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "service/confine.h"

/* Limits all threads to the listed calls. Returns false if the kernel or this build has no seccomp. */
bool confine_calls(void);

/*
 * Denies this process, and the programs that it executes, calls that change the kernel, mount file systems or use
 * kernel keys. Returns false in the same cases as confine_calls.
 */
bool confine_calls_of_programs(void);

/* Writes the name of the next denied call to `name`. Returns false if all names have been returned. */
bool confine_next_refused(char name[CONFINE_CALL_SIZE]);

/* Returns whether libseccomp can build the filter for an architecture (SCMP_ARCH_...). Only tests call it. */
bool confine_calls_are_valid(uint32_t architecture);

#endif
