#ifndef NETLOGGER_BASE_LEVEL_H
#define NETLOGGER_BASE_LEVEL_H

#include <netlogger.h>

/* The name that BP gives a level, "" for NL_LEVEL_NONE; static storage. Any thread, signal handlers too. */
const char *nl_level_bp_name(nl_level level);

#endif
