/* Level names that the public interface does not provide. */
#ifndef NETLOGGER_BASE_LEVEL_H
#define NETLOGGER_BASE_LEVEL_H

#include <netlogger.h>

/*
 * Returns the BP name of a level, in static storage; "" for NL_LEVEL_NONE and invalid levels. Safe in any thread and
 * signal handler.
 */
const char *nl_level_bp_name(nl_level level);

/* Returns whether text is the exact name of the level in ULM or BP. Also returns true if text.data is NULL. */
bool nl_level_has_name(nl_level level, nl_string text);

#endif
