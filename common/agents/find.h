/*
 * Reads the options of programs that query agents, and searches a directory for sensors. The directory is an agent or
 * an LDAP server. The functions block at most as long as the functions of client.h. Any thread may call them, but only
 * one thread at a time may use an agents_options.
 */
#ifndef NETLOGGER_AGENTS_FIND_H
#define NETLOGGER_AGENTS_FIND_H

#include "agents/client.h"
#include "agents/ldap_directory.h"
#include "base/option.h"

#define AGENTS_DEFAULT_URL "http://127.0.0.1:14831"

typedef struct agents_options {
    client_options client;
    ldap_options ldap;      /* options for LDAP, without the URL of the directory */
    const char *token_file; /* file with the token, which agents_options_finish reads */
    const char **agents;    /* NULL if no agent is set */
    size_t agent_count;
    const char *directory; /* URL of the directory; NULL if no directory is set */
} agents_options;

/*
 * The rows of the options --agent and --directory, and of the options for security and LDAP. A row also names the
 * option's environment variable.
 */
extern const nl_option agents_place_rows[], agents_security_rows[];

/*
 * Reads the token file, if token_file is not NULL. The token stays in memory until the process ends. Returns false and
 * sets the error on failure.
 */
bool agents_options_finish(agents_options *o);

/* Sets the options only from the environment, and reads the token file. Returns false and sets the error on failure. */
bool agents_options_from_environment(agents_options *o);

/* Returns the URL of the first agent, or of this host's agent if the options name no agent. */
const char *agents_first_url(const agents_options *o);

/*
 * Returns the URL of the directory to search: the configured directory, or the first agent if no directory is
 * configured.
 */
const char *agents_directory_url(const agents_options *o);

typedef void agents_found_function(void *user, const char *host, const char *url, const char *sensor,
                                   const char *events);

/*
 * Calls function for each sensor that the directory at url finds for an expression (see directory_filter). "" matches
 * all sensors. Returns false and sets the error on failure.
 */
bool agents_find_sensors(const agents_options *o, const char *url, const char *expression,
                         agents_found_function *function, void *user);

#endif
