/* nlkernel: what the kernel did, on the same timeline as the program. */
#include "config.h"

#include "command.h"
#include "program/program.h"
#include "rights.h"

#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {{"list", command_list},       {"record", command_record},
                                   {"live", command_live},       {"report", command_report},
                                   {"control", command_control}, {"graph", command_graph},
                                   {"symbols", command_symbols}, {"schema", command_schema},
                                   {"bench", command_bench},     {"workload", command_workload}};

typedef struct arguments {
    const command *command;
    int first; /* its place in argv */
} arguments;

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
            if (strcmp(argument, commands[i].name) == 0)
                a->command = &commands[i];
        if (a->command == NULL)
            argp_error(
                state,
                "\"%s\" is no command: list, record, live, control, report, schema, bench, graph and symbols are",
                argument);
        a->first = state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "list [PATTERN...]\nrecord -e EVENT... [-o FILE] [-- COMMAND...]\nlive -e EVENT... [--dest URL] [-- "
                "COMMAND...]\ncontrol [-r PID] off|on\ncontrol [-r PID] event PATTERN off|on\nreport SCHEMA "
                "[LOG...]\nreport --functions [LOG...]\nschema list\nschema show SCHEMA\n"
                "schema run SCHEMA [-- COMMAND...]\nbench\ngraph [-o FILE] [LOG...]\nsymbols -k VMLINUX",
    .doc = "Bring the kernel's own events into a log, on the same timeline as the programs' events."
           "\vnlkernel COMMAND --help says more of each. Recording wants root, or access to tracefs.",
};

int main(int argc, char **argv)
{
    program_start("nlkernel", argv);
    rights_lower();
    arguments a = {0};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
    char name[32];
    snprintf(name, sizeof name, "nlkernel %s", a.command->name);
    argv[a.first] = name;
    return program_finish(a.command->run(argc - a.first, argv + a.first));
}
