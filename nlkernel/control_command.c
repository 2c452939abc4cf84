/* nlkernel control: switches a running recorder, or some of its events, off and on. */
#include "config.h"

#include "command.h"
#include "control.h"
#include "program/program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct arguments {
    int recorder;
    char command[4000];
} arguments;

static const nl_option options[] = {
    {.name = "recorder",
     .letter = 'r',
     .type = NL_OPTION_COUNT,
     .value = "PID",
     .initial = "(the only running recorder)",
     .minimum = 1,
     .maximum = INT_MAX,
     NL_OPTION_MEMBER(arguments, recorder),
     .help = "Process ID of the recorder"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel control",
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .operands = "off|on\nevent PATTERN off|on",
    .summary = "Switch a running recorder, or some of the events that it records, off or on.",
    .notes = "Example: nlkernel control event 'sched:*' off\n\nA NetLogger.Record.Switch event in the log records each "
             "change. nlkernel record --activation FILE reads the same lines from a file whenever it changes.",
};

static void append_word(arguments *a, const char *word)
{
    size_t size = strlen(a->command);
    if (size + strlen(word) + 2 > sizeof a->command)
        options_fail("the command is too long");
    snprintf(a->command + size, sizeof a->command - size, "%s%s", size > 0 ? " " : "", word);
}

int command_control(int argc, char **argv)
{
    arguments a = {0};
    int first = options_parse(&usage, argc, argv, &a);
    if (first == argc)
        options_fail("missing command: off, on, or event PATTERN off|on");
    for (int i = first; i < argc; i++)
        append_word(&a, argv[i]);
    if (control_send(a.recorder, a.command))
        return PROGRAM_DONE;
    program_print_error();
    return PROGRAM_PROBLEM;
}
