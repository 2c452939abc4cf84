/*
 * The filter of system calls, by seccomp through libseccomp. chrony's filter is the model: a list of what a daemon
 * needs, with the arguments that it needs.
 *
 * chrony kills a process that makes another call. netlogd must not lose events because a resolver module or a new libc
 * makes a call that this list lacks, so a refused call fails instead: with EPERM when the list has the call with
 * other arguments, and with ENOSYS otherwise, which makes libc use the older call. Each refused call is reported once.
 *
 * Owns the list of refused calls, and the handler of SIGSYS. A thread that blocks SIGSYS is killed by a refused call.
 */
#ifndef NETLOGGER_SERVICE_CONFINE_CALLS_H
#define NETLOGGER_SERVICE_CONFINE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "service/confine.h"

/* Limits all threads of the process to the listed calls. False when the kernel or this build has no seccomp. */
bool confine_calls(void);

/* Takes the calls from this process and from the programs that it executes which neither needs: those that change the
 * kernel, mount, or trade keys. False as above. */
bool confine_calls_of_programs(void);

/* The next system call that was refused since the start, by name, each once. False when there is no other. */
bool confine_next_refused(char name[CONFINE_CALL_SIZE]);

/* Whether libseccomp can build the filter of confine_calls for this architecture (SCMP_ARCH_...). For tests. */
bool confine_calls_are_valid(uint32_t architecture);

#endif
