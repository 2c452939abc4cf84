/*
 * What netlogd was told, by its options and its configuration file. Both say the same things by the same names: a line
 * "listen x-netlog://127.0.0.1:14830" of the file is the option --listen=x-netlog://127.0.0.1:14830.
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
    char **outputs; /* URLs, each good by itself */
    size_t output_count;
    char *log;               /* where netlogd's own events go, a URL */
    char *reject;            /* a file for malformed input; NULL: only counted and reported */
    char *control;           /* the URL of the control socket; NULL: none */
    char *metrics;           /* the URL of the HTTP listener; NULL: none */
    listening metrics_place; /* the same */
    bool subscribe;          /* clients may */
    bool confine;            /* it gives up system calls and files that it does not need */
    size_t subscriber_queue; /* bytes for each */
    size_t max_subscribers;
    char *activation; /* a file whose commands clients are sent; NULL: none */
    char *pid_file;
    nl_level level; /* of its own events */
    nl_fraction fraction;
    size_t max_record_size; /* bytes */
    size_t max_connections;
    size_t max_memory;       /* bytes of what clients sent in part and subscribers have not read, of all together */
    unsigned idle_timeout_s; /* 0: connections may be silent for ever */
    size_t max_per_address;  /* connections from one; 0: no limit */
    size_t max_rate;         /* records a second from one client, beyond which it is read later; 0: no limit */
    unsigned record_s;       /* from a record's first byte to its last; 0: no limit */
    unsigned handshake_s;    /* for TLS to begin, or a request's line to end; 0: no limit */
    unsigned stop_s;         /* that the end may take, once all is written */
    unsigned recover_s;      /* how often events of killed processes are looked for; 0: never */
    /* Of the command line only: */
    bool foreground, verify, repair;
    const char *seal_key, *create_seal_key; /* files; NULL: none */
    int64_t since_ns;
    config_source config;
} settings;

/* Begins as zeros; reading the command line sets the defaults. */
void settings_init(settings *s);
void settings_delete(settings *s); /* one that malloc gave; NULL is allowed */

/* Whether its own events go to standard error, as they do unless something is said. */
bool settings_logs_to_stderr(const settings *s);

/* The options and directives, about a settings. Certificates are read at once; listen, output and allow add to those
 * given before. */
extern const nl_option settings_rows[];

/* The options that only the command line has, likewise. */
extern const nl_option settings_command_rows[];

/* Adds a listener or an output that is known to be good. */
void settings_add(settings *s, const char *name, const char *value);

#endif
