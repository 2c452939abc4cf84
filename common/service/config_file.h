/*
 * A daemon's configuration file: lines "name value", as its options "--name=value"; '#' begins a comment.
 */
#ifndef NETLOGGER_SERVICE_CONFIG_FILE_H
#define NETLOGGER_SERVICE_CONFIG_FILE_H

#include <stdbool.h>

/* Takes the words for what is wrong, a line without its end. */
typedef void (*config_report)(void *user, const char *message);

/* Sets one; NULL, or why not, valid until the next call. */
typedef const char *(*config_set)(void *settings, const char *name, const char *value);

/* Calls set for each line, with "" where there is no value. False after having reported all that is wrong and in which
 * line; settings may then be partly changed. */
bool config_file_read(const char *path, config_set set, void *settings, config_report report, void *user);

#endif
