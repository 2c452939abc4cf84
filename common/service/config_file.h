/*
 * A daemon's configuration file. A line "name value" means the same as the option "--name=value"; '#' begins a comment.
 */
#ifndef NETLOGGER_SERVICE_CONFIG_FILE_H
#define NETLOGGER_SERVICE_CONFIG_FILE_H

#include "base/option.h"

/* Receives the message for a problem, which is one line without a newline. */
typedef void (*config_report)(void *user, const char *message);

/* The member of a daemon's settings for --config. */
typedef struct config_source {
    const nl_option *rows; /* the rows of the same settings */
    config_report report;  /* if NULL, a problem ends the process */
    void *user;
    bool failed; /* a problem was reported */
} config_source;

/* The row of --config. `config` is the name of the settings' member. */
#define CONFIG_FILE_ROW(settings, config)                                                                              \
    {                                                                                                                  \
        .name = "config", .letter = 'c', .value = "FILE", .set = config_file_set,                                      \
        .offset = offsetof(settings, config),                                                                          \
        .help = "Read settings from FILE. Each line contains a setting and its value, such as \"listen URL\""          \
    }

nl_option_setter config_file_set;

#endif
