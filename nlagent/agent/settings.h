/*
 * What nlagentd was told, by its options and its configuration file. Both say the same things by the same names: a line
 * "listen http://127.0.0.1" of the file is the option --listen=http://127.0.0.1.
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
    char *access, *sensor_program, *log, *url, *host;
    char *sensors[SETTINGS_SENSORS_MAX + 1]; /* NAME=COMMAND, up to NULL */
    size_t sensor_count;
    bool is_directory;
    bool confine;    /* give up system calls that neither the agent nor its sensors need */
    char *directory; /* to register with */
    char *token, *token_file, *ca, *cert;
    char *ldap_base, *ldap_bind, *ldap_password;
    int64_t ttl_ns, min_interval_ns;
    agent_limits limits; /* set by agent_settings_finish */
    /* Of the command line only: */
    config_source config;
    bool foreground;
} agent_settings;

/* What holds when nothing is said; the caller's, for agent_settings_free, to which NULL is allowed. */
agent_settings *agent_settings_new(void);
void agent_settings_free(agent_settings *s);

/* The options and directives, about an agent_settings; certificates and tokens are read at once. The second table is
 * --config. */
extern const nl_option agent_settings_rows[], agent_settings_command_rows[];

/* Completes the settings after all were read. Returns false and sets the error when they contradict each other. */
bool agent_settings_finish(agent_settings *s);

/* Notes the files and ports that the settings name, for confine(). */
void agent_settings_keep(const agent_settings *s);

/* The name of a directive that differs and that a running agent cannot change; NULL when there is none. */
const char *agent_settings_fixed_difference(const agent_settings *a, const agent_settings *b);

/* What the registrar wants of them, to which it points. */
registrar_options agent_settings_registrar(const agent_settings *s);

#endif
