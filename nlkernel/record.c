/* nlkernel record: events into a file. */
#include "config.h"

#include "command.h"
#include "session.h"
#include "record/format.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    recording_options recording;
    const char *output;
    nl_format format;
    int zstd_level;
} arguments;

enum { OPTION_ZSTD = 0x1000 };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0,
     "Write there (default nlkernel.nlb; - for standard output): the binary format when it ends in .nlb, else text", 0},
    {"format", 'f', "FORMAT", 0,
     "ulm, bp, logfmt or nlb, whatever FILE is called. Only nlb keeps up with millions a second", 0},
    {"zstd", OPTION_ZSTD, "LEVEL", 0, "nlb: compress (1 to 19; default: not)", 0},
    {0},
};

static const struct argp_child children[] = {{&recording_argp, 0, "", 1}, {0}};

static nl_format read_format(const char *text, struct argp_state *state)
{
    nl_format format = nl_format_parse(text);
    if (format == NL_FORMAT_UNKNOWN)
        argp_error(state, "--format %s: ulm, bp, logfmt or nlb is needed", text);
    return format;
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
    case OPTION_ZSTD:
        a->zstd_level = (int)strtol(argument, &end, 10);
        if (end == argument || *end != '\0' || a->zstd_level < 0 || a->zstd_level > 19)
            argp_error(state, "--zstd %s: a level from 1 to 19 is wanted", argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN; /* the command too (ARGP_KEY_ARG), which the child takes */
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
    int status = session_run(&a.recording, open_sink, &a);
    recording_options_free(&a.recording);
    return status;
}
