/* Declarations that options.c (parsing) and options_help.c (help) share. */
#ifndef NETLOGGER_PROGRAM_OPTIONS_HELP_H
#define NETLOGGER_PROGRAM_OPTIONS_HELP_H

#include "program/options.h"

/* The rows of --help and --version, in this order. */
extern const nl_option options_standard[];

/* Returns the groups of a program or command. The result is never NULL. */
const options_group *options_groups(const options_usage *usage);

/* Returns the name of a program or command. */
const char *options_name(const options_usage *usage);

/* Returns the name of a row's value in help, such as FILE. */
const char *options_value_name(const nl_option *row);

/*
 * Prints the help in a form, which is "" for text, or one of the choices of --help. `settings` has the values for JSON.
 */
void options_print_help(const options_usage *usage, const char *form, void *settings);

#endif
