/*
 * Command lines, read by option tables (base/option.h).
 *
 * Every program has --help (-h) and --version (-V) besides its own options. Options and operands may be mixed; "--"
 * ends the options. Defaults are set first, then environment variables, then the command line from left to right. The
 * forms of help are:
 *   --help        text
 *   --help=json   the tables, with each option's present value
 *   --help=words  a line for each word of shell completion
 *   --help=urls   the options of URLs, and the environment variables
 * The functions have no state of their own; use them in one thread.
 */
#ifndef NETLOGGER_PROGRAM_OPTIONS_H
#define NETLOGGER_PROGRAM_OPTIONS_H

#include "base/option.h"

/* Rows, and the offset of their settings within the settings of the program. */
typedef struct options_group {
    const char *title; /* heading in help; NULL: none */
    const nl_option *rows;
    size_t offset;
} options_group;

/* A subcommand, which is the first operand. */
typedef struct options_command {
    const char *name;
    const char *operands; /* such as "SCHEMA [SOURCE...]"; NULL: none */
    const char *help;
} options_command;

/* The options of a program, or of a subcommand that reads its own command line. */
typedef struct options_usage {
    const char *name;                  /* name of such a subcommand: "nlkernel record"; NULL: the program */
    const char *operands;              /* such as "[SOURCE...]"; one line for each form; NULL: none */
    const char *summary;               /* help above the options */
    const char *notes;                 /* help below the options; NULL: none */
    const options_group *groups;       /* the last is a group without rows; NULL: none */
    const options_command *commands;   /* the last is a command without a name; NULL: none */
    const options_group *urls;         /* options of URLs, only for help; NULL: none */
    const options_group *variables;    /* environment variables that belong to no option, only for help; NULL: none */
    void (*read_urls)(void *settings); /* sets the members that urls describes, for JSON; NULL: they have no values */
    bool first_operand_ends;           /* the first operand ends the options: a command to run follows */
    bool optional_command;
} options_usage;

/*
 * Reads a command line into settings. Prints help or the version on request and exits. Reports a usage error in one
 * line and exits with PROGRAM_USAGE. Reorders argv: options first. Returns the index of the first operand.
 */
int options_parse(const options_usage *usage, int argc, char **argv, void *settings);

/*
 * Reads a command line again while the program runs: calls report for a usage error and returns -1. If report is NULL,
 * works like options_parse.
 */
int options_parse_again(const options_usage *usage, int argc, char **argv, void *settings,
                        void (*report)(void *user, const char *message), void *user);

/* Reports a usage error as "program: MESSAGE" and exits with PROGRAM_USAGE. */
#define options_fail(...) program_fail(PROGRAM_USAGE, __VA_ARGS__)

#endif
