/*
 * netlogd's settings, from its options and its configuration file. Both use the same names: a line "listen
 * x-netlog://127.0.0.1:14830" of the file equals the option --listen=x-netlog://127.0.0.1:14830. No state.
 */
#ifndef NETLOGD_SETTINGS_H
#define NETLOGD_SETTINGS_H

#include "service/config_file.h"
#include "service/listener.h"
#include "service/network.h"

#include <netlogger.h>

typedef struct settings {
    listening *listen;
    size_t listen_count;
    network_list allow;
    char **outputs; /* valid URLs */
    size_t output_count;
    char *log;               /* the URL of netlogd's own log */
    char *reject;            /* a file for malformed input; NULL: none */
    char *control;           /* the URL of the control socket; NULL: none */
    char *metrics;           /* the URL of the HTTP listener; NULL: none */
    listening metrics_place; /* the same */
    bool subscribe;          /* clients may subscribe */
    bool confine;            /* drop rights that netlogd does not need */
    size_t subscriber_queue; /* bytes, for each subscriber */
    size_t max_subscribers;
    char *activation; /* a file of commands for clients; NULL: none */
    char *pid_file;
    nl_level level; /* threshold of netlogd's own events */
    nl_fraction fraction;
    size_t max_record_size; /* bytes */
    size_t max_connections;
    size_t max_memory;       /* bytes of incomplete input and of subscribers' queues, all together */
    unsigned idle_timeout_s; /* 0: no limit */
    size_t max_per_address;  /* connections; 0: no limit */
    size_t max_rate;         /* records per second of one client; 0: no limit */
    unsigned record_s;       /* seconds for a record to arrive; 0: no limit */
    unsigned handshake_s;    /* seconds for a TLS handshake, or for the line of a request; 0: no limit */
    unsigned stop_s;         /* maximum seconds for the end, not counting writing */
    unsigned recover_s;      /* seconds between recoveries; 0: never */
    /* Options of the command line only: */
    bool foreground, verify, repair;
    const char *seal_key, *create_seal_key; /* files; NULL: none */
    int64_t since_ns;
    config_source config;
} settings;

/* Sets all members to zero; reading the command line sets the defaults. */
void settings_init(settings *s);
void settings_delete(settings *s); /* from malloc; NULL is allowed */

/* Returns whether netlogd's own log is standard error, which is the default. */
bool settings_logs_to_stderr(const settings *s);

/* The options and directives. Their setters read certificates at once; listen, output and allow add to earlier values.
 */
extern const nl_option settings_rows[];

/* The options of the command line only. */
extern const nl_option settings_command_rows[];

/* Returns the listener with a URL (without its options), or NULL. */
const listening *settings_find_listening(const settings *s, const char *url);

/* Adds a valid listener or output. */
void settings_add(settings *s, const char *name, const char *value);

#endif
