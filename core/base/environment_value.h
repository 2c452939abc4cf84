/*
 * Environment variables, for code that may run in a set-user-ID program. The user who starts such a program chooses its
 * environment, so the library reads all variables through nl_environment_value.
 */
#ifndef NETLOGGER_BASE_ENVIRONMENT_VALUE_H
#define NETLOGGER_BASE_ENVIRONMENT_VALUE_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/auxv.h>

/*
 * Returns the variable's value. Returns NULL if the variable is unset or empty, or if the process has raised
 * privileges.
 */
static inline const char *nl_environment_value(const char *name)
{
    bool privileged = getauxval(AT_SECURE) != 0; /* set-user-ID, set-group-ID or file capabilities */
    const char *value = privileged ? NULL : secure_getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

#endif
