/*
 * Environment variables, for code that may run in a set-user-ID program. Whoever starts such a program chooses its
 * environment, so the library reads every variable through nl_environment_value and none through getenv.
 */
#ifndef NETLOGGER_BASE_ENVIRONMENT_VALUE_H
#define NETLOGGER_BASE_ENVIRONMENT_VALUE_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/auxv.h>

/* Whether the process has rights that the user who started it lacks: set-user-ID, set-group-ID or file capabilities. */
static inline bool nl_is_privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}

/* The variable's value. NULL when it is not set or empty, and always when the process is privileged. */
static inline const char *nl_environment_value(const char *name)
{
    const char *value = nl_is_privileged() ? NULL : secure_getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

#endif
