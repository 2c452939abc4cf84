/* How netlogd confines itself: what its settings name is kept, see service/confine.h. */
#ifndef NETLOGD_CONFINED_H
#define NETLOGD_CONFINED_H

#include "settings.h"

#include <netlogger.h>

/*
 * Confines the calling thread, and those that it starts, to what the settings name; no other thread may run yet. A
 * message on standard error tells when the kernel cannot do it, and the result is that message for the log, or NULL.
 */
const char *confined_begin(const settings *s);

/* The target of an output that needs what the running process gave up, with an error; or NULL. */
const char *confined_forbids(const settings *s);

#endif
