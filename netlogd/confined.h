/* Confines netlogd to the rights that its settings need (service/confine.h). This module has no state. */
#ifndef NETLOGD_CONFINED_H
#define NETLOGD_CONFINED_H

#include "settings.h"

/*
 * Confines the calling thread, and threads that it starts later, to the rights that the settings need. Call it before
 * starting other threads. Returns NL_FAILED and sets the error if the kernel or this build does not support a part of
 * the confinement. The other parts then apply.
 */
nl_status confined_begin(const settings *s);

/* Returns NL_FAILED if an output in the settings needs a right that the running process has given up. */
nl_status confined_check(const settings *s);

#endif
