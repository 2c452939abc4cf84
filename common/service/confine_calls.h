/*
 * The seccomp filter of system calls, built with libseccomp: a list of the calls and arguments that a daemon needs, as
 * in chrony.
 *
 * chrony kills a process that makes another call. netlogd must not lose events because a resolver module or a new libc
 * makes an unlisted call. Here, a refused call therefore fails: with EPERM if the list has the call with other
 * arguments, else with ENOSYS, which makes libc use an older call. Each refused call is reported once.
 *
 * The module owns the list of refused calls and the handler of SIGSYS. A refused call kills a thread that blocks
 * SIGSYS.
 */
#ifndef NETLOGGER_SERVICE_CONFINE_CALLS_H
#define NETLOGGER_SERVICE_CONFINE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "service/confine.h"

/* Limits all threads to the listed calls. Returns false if the kernel or this build has no seccomp. */
bool confine_calls(void);

/* Denies this process, and the programs that it executes, calls that change the kernel, mount or use kernel keys.
 * Returns false as confine_calls does. */
bool confine_calls_of_programs(void);

/* Writes the name of the next refused call, each name once. Returns false if all were returned. */
bool confine_next_refused(char name[CONFINE_CALL_SIZE]);

/* Returns whether libseccomp can build the filter for an architecture (SCMP_ARCH_...). For tests. */
bool confine_calls_are_valid(uint32_t architecture);

#endif
