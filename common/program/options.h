/*
 * Reads command lines according to option tables (base/option.h).
 *
 * Every program has --help (-h) and --version (-V) besides its own options. Options and operands may be mixed; "--"
 * ends the options. The module applies the defaults first, then the environment variables, and then the command line
 * from left to right. The forms of --help are:
 *
 *   --help        text
 *   --help=json   the tables, with each option's present value
 *   --help=words  a line for each word of shell completion
 *   --help=urls   the options of URLs, and the environment variables
 *
 * The functions have no state of their own. Call them in only one thread.
 */
#ifndef NETLOGGER_PROGRAM_OPTIONS_H
#define NETLOGGER_PROGRAM_OPTIONS_H

#include "base/option.h"

/* Rows, and the offset of their settings within the settings of the program. */
typedef struct options_group {
    const char *title; /* heading in help, or NULL */
    const nl_option *rows;
    size_t offset;
} options_group;

/* A subcommand, which is the first operand. */
typedef struct options_command {
    const char *name;
    const char *operands; /* such as "SCHEMA [SOURCE...]"; or NULL */
    const char *help;
} options_command;

/* The options of a program, or of a subcommand that reads its own command line. */
typedef struct options_usage {
    const char *name;                  /* name of such a subcommand, such as "nlkernel record"; NULL for a program */
    const char *operands;              /* such as "[SOURCE...]", with one line for each form; or NULL */
    const char *summary;               /* help above the options */
    const char *notes;                 /* help below the options, or NULL */
    const options_group *groups;       /* the last element is a group without rows; or NULL */
    const options_command *commands;   /* the last element is a command without a name; or NULL */
    const nl_option *file_rows;        /* rows of the group whose options a configuration file may also set, or NULL */
    const options_group *urls;         /* options of URLs, used only for help; or NULL */
    const options_group *variables;    /* environment variables that belong to no option, used only for help; or NULL */
    void (*read_urls)(void *settings); /* sets the members that urls describes, for JSON; NULL if they have no values */
    bool first_operand_ends;           /* the first operand ends the options, because it begins a command to run */
    bool optional_command;
} options_usage;

/*
 * Reads a command line into settings. Prints help or the version on request and exits. Reports a usage error in one
 * line and exits with PROGRAM_USAGE. Reorders argv so that options come first. Returns the index of the first operand.
 */
int options_parse(const options_usage *usage, int argc, char **argv, void *settings);

/*
 * Reads a command line again while the program runs. Calls report for each usage error, and then returns -1. If report
 * is NULL, works like options_parse.
 */
int options_parse_again(const options_usage *usage, int argc, char **argv, void *settings,
                        void (*report)(void *user, const char *message), void *user);

/* Reports a usage error as "program: MESSAGE" and exits with PROGRAM_USAGE. */
#define options_fail(...) program_fail(PROGRAM_USAGE, __VA_ARGS__)

#endif
