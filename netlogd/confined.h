/* How netlogd confines itself: which directories it may write, by its settings. */
#ifndef NETLOGD_CONFINED_H
#define NETLOGD_CONFINED_H

#include "output/outputs.h"
#include "settings.h"

/*
 * Confines the calling thread, and those that it starts, to what the settings name; all threads lose system calls that
 * netlogd never needs. Call it when all is open that is opened once. A message says when it cannot be done.
 */
void confined_begin(const settings *s, nl_log *log);

/* The target of an output that writes where the running process may not, or NULL. It stays valid until the next call.
 */
const char *confined_forbids(const settings *s);

#endif
