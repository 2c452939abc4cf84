/* nlkernel record: events into a file. */
#include "config.h"

#include "command.h"
#include "counters.h"
#include "session.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    recording_options recording;
    const char *output;
    const char *counters; /* with each event; NULL: none */
    nl_format format;
    int zstd_level;
} arguments;

enum { OPTION_ZSTD = 0x1000, OPTION_COUNTERS };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0,
     "Write there (default nlkernel.nlb; - for standard output): the binary format when it ends in .nlb, else text", 0},
    {"format", 'f', "FORMAT", 0, "ulm, bp or nlb, whatever FILE is called. Only nlb keeps up with millions a second",
     0},
    {"counters", OPTION_COUNTERS, "NAME[,NAME...]", 0,
     "With each event how far the CPU has counted: cycles, instructions, cache-references, cache-misses, branches, "
     "branch-misses, as far as the machine has them, cpu-clock, page-faults, context-switches, cpu-migrations. By "
     "perf_event_open, for the whole machine, and slower",
     0},
    {"zstd", OPTION_ZSTD, "LEVEL", 0, "nlb: compress (1 to 19; default: not)", 0},
    {0},
};

static const struct argp_child children[] = {{&recording_argp, 0, "", 1}, {0}};

static nl_format read_format(const char *text, struct argp_state *state)
{
    static const struct {
        const char *name;
        nl_format format;
    } formats[] = {{"ulm", NL_FORMAT_ULM}, {"bp", NL_FORMAT_BP}, {"nlb", NL_FORMAT_NLB}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(text, formats[i].name) == 0)
            return formats[i].format;
    argp_error(state, "--format %s: ulm, bp or nlb is wanted", text);
    return NL_FORMAT_UNKNOWN;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    char *end;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->recording;
        return 0;
    case 'o':
        a->output = argument;
        return 0;
    case 'f':
        a->format = read_format(argument, state);
        return 0;
    case OPTION_COUNTERS:
        a->counters = argument;
        return 0;
    case OPTION_ZSTD:
        a->zstd_level = (int)strtol(argument, &end, 10);
        if (end == argument || *end != '\0' || a->zstd_level < 0 || a->zstd_level > 19)
            argp_error(state, "--zstd %s: a level from 1 to 19 is wanted", argument);
        return 0;
    case ARGP_KEY_ARG:
        return ARGP_ERR_UNKNOWN; /* the command, which the child takes */
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "[-- COMMAND...]",
    .doc =
        "Record the kernel's events into a log, until --duration is over, COMMAND has ended, or Ctrl-C."
        "\vExample: nlkernel record -e 'sched:*' -e tcp:tcp_retransmit_skb -o kernel.nlb -- make\n\n"
        "Each record has the event's fields, CPU, PID and TID, and the thread's name as PROG. What the kernel's "
        "buffers were too small for is counted, for each CPU with its time, in the log: NetLogger.Lost. "
        "NetLogger.Dump.Begin and .Finish say when the recorder itself was at work, NetLogger.Clock how the kernel's "
        "clock and real time belong together. nlsort puts the CPUs' events in order.",
};

static bool open_sink(sink *s, const void *user)
{
    const arguments *a = user;
    return sink_open_file(s, a->output, a->format, a->zstd_level);
}

int command_record(int argc, char **argv)
{
    arguments a = {.output = "nlkernel.nlb"};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
    bool counted = a.counters != NULL && counters_any(a.counters);
    int status = PROGRAM_USAGE;
    if (a.counters != NULL && !counted && *nl_error_message() != '\0')
        program_error("%s", nl_error_message());
    else if (counted && (a.recording.follow || a.recording.pid_count > 0))
        program_error("--counters counts by CPU: --pid and --follow do not go with it");
    else if (counted)
        status = counters_record(&a.recording, a.counters, a.output, a.format);
    else
        status = session_run(&a.recording, open_sink, &a);
    recording_options_free(&a.recording);
    return status;
}
