/*
 * A daemon's configuration file: lines "name value", as its options "--name=value"; '#' begins a comment.
 */
#ifndef NETLOGGER_SERVICE_CONFIG_FILE_H
#define NETLOGGER_SERVICE_CONFIG_FILE_H

#include "base/option.h"

/* Gets the message for a problem, a line without its end. */
typedef void (*config_report)(void *user, const char *message);

/* Sets each option that a line of the file names, by its row. False after having reported all problems, with their
 * lines; settings may then be partly changed. */
bool config_file_read(const char *path, const nl_option *rows, void *settings, config_report report, void *user);

#endif
