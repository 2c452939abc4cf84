/* nlkernel control: switches a recorder that runs, or some of its events, off and on. */
#include "config.h"

#include "command.h"
#include "control.h"
#include "program/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    int recorder;
    char command[4000];
} arguments;

static const struct argp_option options[] = {
    {"recorder", 'r', "PID", 0, "The recorder that is this process (default: the only one that runs)", 0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    char *end;
    long pid;
    size_t size;
    switch (key) {
    case 'r':
        pid = strtol(argument, &end, 10);
        if (end == argument || *end != '\0' || pid <= 0 || pid > INT_MAX)
            argp_error(state, "--recorder %s: the number of a process is wanted", argument);
        a->recorder = (int)pid;
        return 0;
    case ARGP_KEY_ARG:
        size = strlen(a->command);
        if (size + strlen(argument) + 2 > sizeof a->command)
            argp_error(state, "the command is too long");
        snprintf(a->command + size, sizeof a->command - size, "%s%s", size > 0 ? " " : "", argument);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command is given: off, on, or event PATTERN off|on");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "off|on\nevent PATTERN off|on",
    .doc = "Switch a recorder that runs, or some of the events that it records, off or on."
           "\vExample: nlkernel control event 'sched:*' off\n\n"
           "The log says when what was switched: NetLogger.Record.Switch. nlkernel record --activation FILE takes the "
           "same lines from a file, whenever it has changed.",
};

int command_control(int argc, char **argv)
{
    arguments a = {0};
    bool good = false;
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    char *answer = control_send(a.recorder, a.command, &good);
    if (answer == NULL || !good)
        program_error("%s", answer != NULL ? answer : nl_error_message());
    free(answer);
    return good ? PROGRAM_DONE : PROGRAM_PROBLEM;
}
