/*
 * What netlogd was told, by its options and its configuration file. Both say the same things by the same names: a line
 * "listen x-netlog://127.0.0.1:14830" of the file is the option --listen=x-netlog://127.0.0.1:14830.
 */
#ifndef NETLOGD_SETTINGS_H
#define NETLOGD_SETTINGS_H

#include "network.h"

#include <netlogger.h>

typedef struct settings {
    char **listen; /* URLs */
    size_t listen_count;
    network *allow;
    size_t allow_count;
    char *output;            /* a path, or "-" */
    char *log;               /* where netlogd's own events go, a URL */
    char *reject;            /* a file for malformed input; NULL: only counted and reported */
    char *control;           /* the URL of the control socket; NULL: none */
    char *metrics;           /* the x-netlog URL with host and port of the HTTP listener; NULL: none */
    bool subscribe;          /* clients may */
    size_t subscriber_queue; /* bytes for each */
    char *activation;        /* a file whose commands clients are sent; NULL: none */
    char *pid_file;
    bool foreground;
    nl_level level; /* of its own events */
    nl_fraction fraction;
    size_t max_record_size; /* bytes */
    size_t max_connections;
    unsigned idle_timeout_s; /* 0: connections may be silent for ever */
    unsigned recover_s;      /* how often events of killed processes are looked for; 0: never */
} settings;

/* What holds when nothing is said. */
void settings_init(settings *s);
void settings_free(settings *s);

/*
 * Sets one by name. NULL when done, otherwise why not ("there is no directive \"lisen\""), valid until the next call.
 * A listen, allow adds to those given before.
 */
const char *settings_set(settings *s, const char *name, const char *value);

/*
 * Reads a file of "name value" lines; '#' begins a comment. False after having said on standard error what is wrong and
 * in which line; s may then be partly changed.
 */
bool settings_read_file(settings *s, const char *path);

#endif
