/*
 * Command lines, read by option tables (base/option.h).
 *
 * Every program has -h and --help, -V and --version besides its own options. --help prints text, --help=json the same
 * tables for other programs together with each option's present value, --help=words lines for shell completion, and
 * --help=urls the options of URLs and the environment variables. Options
 * and operands may be mixed; "--" ends the options. Defaults are set first, then environment variables, then the
 * command line from left to right. One thread.
 */
#ifndef NETLOGGER_PROGRAM_OPTIONS_H
#define NETLOGGER_PROGRAM_OPTIONS_H

#include "base/option.h"

/* Rows and the place in the program's settings that they are about. */
typedef struct options_group {
    const char *title; /* above them in help; NULL: none */
    const nl_option *rows;
    size_t offset;
} options_group;

/* A subcommand, which is the first operand. */
typedef struct options_command {
    const char *name;
    const char *operands; /* such as "SCHEMA [SOURCE...]"; NULL: none */
    const char *help;
} options_command;

/* The options of a program, or of a command with its own parser. */
typedef struct options_usage {
    const char *name;                /* of a command with a parser of its own: "nlkernel record"; NULL: the program's */
    const char *operands;            /* such as "[SOURCE...]"; lines for several forms; NULL: none */
    const char *summary;             /* above the options */
    const char *notes;               /* below them; NULL: none */
    const options_group *groups;     /* ended by one without rows; NULL: none */
    const options_command *commands; /* ended by one without a name; NULL: no subcommands */
    const options_group *urls;       /* the options that URLs have, for --help=urls and JSON only; NULL: none */
    const options_group *variables;  /* environment variables of no option, likewise */
    void (*read_urls)(
        void *settings);     /* sets what urls are about, which JSON then has the values of; NULL: no values */
    bool first_operand_ends; /* the options: what follows is a command to run */
    bool optional_command;
} options_usage;

/*
 * Reads a command line into settings. Prints help or the version and exits when asked for. A wrong use is reported in
 * one line, and the program exits with PROGRAM_USAGE. argv is put in order, options first; returns the place of the
 * first operand.
 */
int options_parse(const options_usage *usage, int argc, char **argv, void *settings);

/*
 * As options_parse for a program that reads its command line again while it runs: a wrong use is given to report, and
 * -1 returned. With a NULL report it is options_parse.
 */
int options_parse_again(const options_usage *usage, int argc, char **argv, void *settings,
                        void (*report)(void *user, const char *message), void *user);

/* Reports a wrong use as "program: MESSAGE" and exits with PROGRAM_USAGE. */
_Noreturn void options_fail(const char *format, ...) NL_PRINTF(1, 2);

#endif
