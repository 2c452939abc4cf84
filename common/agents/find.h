/*
 * Looking up agents and their sensors in a directory: another agent, or LDAP. Blocking, within the time of client.h;
 * any thread, one at a time for each options.
 */
#ifndef NETLOGGER_AGENTS_FIND_H
#define NETLOGGER_AGENTS_FIND_H

#include "agents/client.h"
#include "agents/ldap_directory.h"

#define AGENTS_DEFAULT_URL "http://127.0.0.1:14831"

enum { AGENTS_TOKEN_SIZE = 300 };

/* How agents and directories are asked. */
typedef struct agents_options {
    client_options client;
    ldap_options ldap; /* without its URL */
} agents_options;

/*
 * Sets the options from the environment, as the rows of nlagent's options have it: NLAGENT_CA, NLAGENT_CERT,
 * NLAGENT_KEY, NLAGENT_TOKEN_FILE and NLAGENT_LDAP_*. token holds the token and lasts as long as the options. Called
 * before other threads ask agents. Returns false on failure.
 */
bool agents_options_from_environment(agents_options *o, char token[AGENTS_TOKEN_SIZE]);

/* Reads a token from the first line of a file. Returns false on failure. */
bool agents_read_token(const char *path, char token[AGENTS_TOKEN_SIZE]);

typedef void agents_found_function(void *user, const char *host, const char *url, const char *sensor,
                                   const char *events);

/* Calls function for each sensor that a directory at url finds; expression is as with ldap_find. Returns false on
 * failure. */
bool agents_find_sensors(const agents_options *o, const char *url, const char *expression,
                         agents_found_function *function, void *user);

#endif
