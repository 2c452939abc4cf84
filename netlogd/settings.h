/*
 * netlogd's settings, from its options and its configuration file. Both use the same names: the line "listen
 * x-netlog://127.0.0.1:14830" in the file is equivalent to the option --listen=x-netlog://127.0.0.1:14830. This module
 * has no state.
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
    char *journal; /* directory of the journal to be read; NULL: no journal */
    char **inputs; /* patterns of paths */
    size_t input_count;
    char **outputs; /* valid URLs */
    size_t output_count;
    char *log;               /* URL of netlogd's own log */
    char *reject;            /* path of the file for malformed input; NULL: no file */
    char *control;           /* URL of the control socket; NULL: no control socket */
    char *metrics;           /* URL of the HTTP listener; NULL: no listener */
    listening metrics_place; /* the parsed form of metrics */
    bool subscribe;          /* clients may subscribe */
    bool confine;            /* drop rights that netlogd does not need */
    size_t subscriber_queue; /* bytes per subscriber */
    size_t max_subscribers;
    char *activation; /* path of the file with commands for clients; NULL: no file */
    char *pid_file;
    nl_level level; /* threshold of netlogd's own events */
    nl_fraction fraction;
    size_t max_record_size; /* bytes */
    size_t max_connections;
    size_t max_memory;       /* maximum total bytes of incomplete input and of subscribers' queues */
    unsigned idle_timeout_s; /* 0: no limit */
    size_t max_per_address;  /* connections; 0: no limit */
    size_t max_rate;         /* records per second for each client; 0: no limit */
    unsigned record_s;       /* maximum seconds for a record to arrive; 0: no limit */
    unsigned handshake_s;    /* maximum seconds for a TLS handshake, or for a request line; 0: no limit */
    unsigned stop_s;         /* maximum seconds for ending, not counting writing */
    unsigned recover_s;      /* seconds between recoveries; 0: never */
    /* Options for the command line only: */
    bool foreground, verify, repair;
    const char *seal_key, *create_seal_key; /* paths of files; NULL: not given */
    int64_t since_ns;
    config_source config;
} settings;

/* Sets all members except the rows of options to zero; reading the command line sets the defaults. */
void settings_init(settings *s);
void settings_delete(settings *s); /* accepts NULL; frees s itself */

/* Returns whether netlogd's own log is standard error, which is the default. */
bool settings_logs_to_stderr(const settings *s);

/*
 * The options and directives. Setters read certificates at once. listen, input, output and allow add to earlier values.
 */
extern const nl_option settings_rows[];

/* The options that are allowed only on the command line. */
extern const nl_option settings_command_rows[];

/* Returns the listener with this URL (without its options), or NULL. */
const listening *settings_find_listening(const settings *s, const char *url);

/* Sets the option `name`, or adds the value to a repeatable option. Ends the program if the value is invalid. */
void settings_add(settings *s, const char *name, const char *value);

#endif
