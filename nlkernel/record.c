/* nlkernel record: writes events to a file. */
#include "config.h"

#include "command.h"
#include "session.h"
#include "record/format.h"

typedef struct arguments {
    recording_options recording;
    const char *output;
    nl_format format;
    int zstd_level;
} arguments;

static const nl_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "nlkernel.nlb",
     NL_OPTION_MEMBER(arguments, output),
     .help =
         "Write records to FILE; - is standard output. If the name ends in .nlb, the format is binary, otherwise text"},
    {.name = "format",
     .initial = "(by the suffix of FILE)",
     .type = NL_OPTION_CHOICE,
     .list_choices = nl_format_choices,
     NL_OPTION_MEMBER(arguments, format),
     .help = "Format of the records. For a text format, nlkernel records to FILE.partial.nlb, and converts this "
             "file at the end"},
    {.name = "zstd",
     .type = NL_OPTION_COUNT,
     .value = "LEVEL",
     .initial = "0",
     .maximum = 19,
     NL_OPTION_MEMBER(arguments, zstd_level),
     .help = "Compression level of nlb; 0 disables compression"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel record",
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Events to record", recording_rows, offsetof(arguments, recording)},
                                      {0}},
    .operands = "[-- COMMAND...]",
    .first_operand_ends = true,
    .summary =
        "Record the kernel's events in a log, until --duration has elapsed, COMMAND exits, or Ctrl-C is pressed.",
    .notes = "Example: nlkernel record -e 'sched:*' -e tcp:tcp_retransmit_skb -o kernel.nlb -- make\n\n"
             "Each record has the event's fields, CPU, PID and TID, and the thread's name as PROG. A NetLogger.Lost "
             "record reports how many events a CPU's buffer lost, and when. NetLogger.Dump.Begin and "
             "NetLogger.Dump.Finish mark the work of nlkernel itself. NetLogger.Clock relates the kernel's clock to "
             "real time. nlsort puts the events of all CPUs in order.",
};

static bool open_sink(sink *s, const void *user)
{
    const arguments *a = user;
    return sink_open_file(s, a->output, a->format, a->zstd_level);
}

int command_record(int argc, char **argv)
{
    static arguments a;
    int first = options_parse(&usage, argc, argv, &a);
    a.recording.command = first < argc ? argv + first : NULL;
    recording_options_check(&a.recording, true);
    int status = session_run(&a.recording, open_sink, &a);
    recording_options_free(&a.recording);
    return status;
}
