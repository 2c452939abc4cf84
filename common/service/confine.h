/*
 * A daemon gives up what it never needs, so that a client who makes it run code of his own gains little by that.
 *
 * Two means of the kernel: seccomp (through libseccomp) refuses system calls, with EPERM, for every thread; Landlock
 * lets the calling thread, and those that it starts from then on, write, create and remove files below given
 * directories only. Both hold for child processes, too, and neither can be taken back. A daemon calls it once, when it
 * has opened what it serves with. chrony's filter is the model.
 */
#ifndef NETLOGGER_SERVICE_CONFINE_H
#define NETLOGGER_SERVICE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

enum { CONFINE_MESSAGE = 200 };

typedef struct confine_options {
    bool executes;               /* it starts programs, which may trace and count: these calls stay */
    const char *const *writable; /* directories; NULL: Landlock is not used */
    size_t writable_count;
} confine_options;

/* False when the kernel, or the build, has not all of it: message says what is missing, and the rest holds. */
bool confine(const confine_options *options, char message[CONFINE_MESSAGE]);

/* Whether a file of that path may be written, as far as this module decides. */
bool confine_permits(const char *path);

#endif
