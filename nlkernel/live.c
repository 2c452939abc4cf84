/* nlkernel live: sends events to a destination of libnetlogger, such as a collector, while they occur. */
#include "config.h"

#include "command.h"
#include "rules_file.h"
#include "session.h"

#include <stdlib.h>

typedef struct arguments {
    recording_options recording;
    const char *destination;
    const char *rules; /* send the records that these rules derive; NULL: send the events */
    rules_parameters parameters;
    rules_file file;
} arguments;

static const nl_option options[] = {
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     .environment = "NETLOGGER_DEST",
     NL_OPTION_MEMBER(arguments, destination),
     .help = "Send records to URL: x-netlog://HOST, FILE, -, or any other log URL"},
    {.name = "rules",
     .value = "RULES",
     NL_OPTION_MEMBER(arguments, rules),
     .help = "Send the records that RULES derive from the events, instead of the events. RULES is a name from the "
             "output of nlkernel rules list, or a path that contains a /"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel live",
    .groups = (const options_group[]){{NULL, options, 0},
                                      {NULL, rules_parameter_options, offsetof(arguments, parameters)},
                                      {"Events to record", recording_rows, offsetof(arguments, recording)},
                                      {0}},
    .operands = "[-- COMMAND...]",
    .first_operand_ends = true,
    .summary = "Send the kernel's events to a log, for example to a collector, as they occur. Recording stops when "
               "--duration has elapsed, when COMMAND exits, or on Ctrl-C.",
    .notes = "Example: nlkernel live -e tcp:tcp_retransmit_skb --dest x-netlog://HOST\n\nThe records are the same as "
             "those of nlkernel record. The log drops and counts records that do not fit into its buffer. With "
             "?policy=block, nlkernel waits instead, and the kernel counts the events that its own buffers drop.",
};

static bool open_sink(sink *s, const void *user)
{
    const arguments *a = user;
    nl_synthesis *synthesis = a->rules != NULL ? nl_synthesis_new(&a->file.sections) : NULL;
    if ((a->rules != NULL && synthesis == NULL) || !sink_open_log(s, a->destination)) {
        nl_synthesis_free(synthesis);
        return false;
    }
    if (synthesis != NULL)
        sink_apply(s, synthesis);
    return true;
}

int command_live(int argc, char **argv)
{
    static arguments a;
    int first = options_parse(&usage, argc, argv, &a);
    a.recording.command = first < argc ? argv + first : NULL;
    recording_options_check(&a.recording, a.rules == NULL);
    int status = PROGRAM_USAGE;
    if (a.rules == NULL ||
        (rules_file_read(&a.file, a.rules, &a.parameters) && rules_file_add_events(&a.file, &a.recording)))
        status = session_run(&a.recording, open_sink, &a);
    else
        program_print_error();
    rules_file_free(&a.file);
    free(a.parameters.list);
    recording_options_free(&a.recording);
    return status;
}
