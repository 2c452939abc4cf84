/*
 * The settings of nlagentd, from its command line and its configuration file. The line "listen http://127.0.0.1" in the
 * file is equivalent to --listen=http://127.0.0.1. Not thread-safe.
 */
#ifndef NLAGENT_SETTINGS_H
#define NLAGENT_SETTINGS_H

#include "agent/agent.h"
#include "agent/registrar.h"
#include "service/config_file.h"
#include "service/listener.h"
#include "service/network.h"

enum { SETTINGS_LISTEN_MAX = 16, SETTINGS_SENSORS_MAX = 256 };

typedef struct agent_settings {
    listening listen[SETTINGS_LISTEN_MAX];
    size_t listen_count;
    network_list allow;
    network_list reflect; /* networks whose probes nlagentd reflects */
    uint64_t reflect_port;
    char *access, *sensor_program, *log, *url, *host;
    char *sensors[SETTINGS_SENSORS_MAX + 1]; /* NAME=COMMAND; NULL-terminated */
    size_t sensor_count;
    bool is_directory;
    bool confine;
    char *directory; /* the directory with which to register */
    char *token, *token_file, *ca, *cert;
    char *ldap_base, *ldap_bind, *ldap_password;
    int64_t ttl_ns, min_interval_ns;
    agent_limits limits; /* set by agent_settings_finish */
    /* Options for the command line only: */
    config_source config;
    bool foreground;
} agent_settings;

/* Returns settings for options_parse to fill. The caller frees the settings. */
agent_settings *agent_settings_new(void);
void agent_settings_free(agent_settings *s);

/* The option rows of the settings, and the rows for the command line only. The options for certificates and tokens read
 * the files that they name. */
extern const nl_option agent_settings_rows[], agent_settings_command_rows[];

/* Completes the settings. Returns false and sets the error if the settings are inconsistent. */
bool agent_settings_finish(agent_settings *s);

/* Registers the files and ports that the settings name, so that confine() keeps the rights to use these files and
 * ports. */
void agent_settings_keep(const agent_settings *s);

/* Returns the name of a directive whose values in `a` and `b` differ and that a reload cannot change, or NULL. */
const char *agent_settings_fixed_difference(const agent_settings *a, const agent_settings *b);

/* Returns the options of the registrar, which point into the settings. */
registrar_options agent_settings_registrar(const agent_settings *s);

#endif
