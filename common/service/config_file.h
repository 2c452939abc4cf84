/*
 * A daemon's configuration file: lines "name value", as its options "--name=value"; '#' begins a comment.
 */
#ifndef NETLOGGER_SERVICE_CONFIG_FILE_H
#define NETLOGGER_SERVICE_CONFIG_FILE_H

#include "base/option.h"

/* Gets the message for a problem, a line without its end. */
typedef void (*config_report)(void *user, const char *message);

/* How a daemon reads its configuration file: a member of its settings, for the row of --config. */
typedef struct config_source {
    const nl_option *rows; /* the directives, about the same settings */
    config_report report;  /* NULL: problems end the process */
    void *user;
    bool failed; /* problems were reported */
} config_source;

/* The row of --config; CONFIG is the member of SETTINGS. */
#define CONFIG_FILE_ROW(settings, config)                                                                              \
    {                                                                                                                  \
        .name = "config", .letter = 'c', .value = "FILE", .set = config_file_set,                                      \
        .offset = offsetof(settings, config), .help = "Read settings from FILE: lines such as \"listen URL\""          \
    }

nl_option_setter config_file_set;

/* Sets each option that a line of the file names, by its row. False after having reported all problems, with their
 * lines; settings may then be partly changed. */
bool config_file_read(const char *path, const nl_option *rows, void *settings, config_report report, void *user);

#endif
