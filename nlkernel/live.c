/* nlkernel live: events into a log as libnetlogger has them, which may be a collector. */
#include "config.h"

#include "command.h"
#include "rules_file.h"
#include "session.h"

#include "base/memory.h"

#include <stdlib.h>

typedef struct arguments {
    recording_options recording;
    const char *destination;
    const char *rules;       /* a rules file: only what its rules make is logged; NULL: the events themselves are */
    const char **parameters; /* of it, NULL at the end; NULL: none */
    size_t parameter_count;
    rules_file file;
} arguments;

static bool add_parameter(void *settings, const nl_option *row, const char *value)
{
    arguments *a = settings;
    (void)row;
    a->parameters = nl_memory_check(reallocarray(a->parameters, a->parameter_count + 2, sizeof *a->parameters));
    a->parameters[a->parameter_count++] = value;
    a->parameters[a->parameter_count] = NULL;
    return true;
}

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
     .help = "Send the records that the rules of RULES derive from its events, instead of the events; RULES is a "
             "name that nlkernel rules list prints, or a path that contains a /"},
    {.name = "set",
     .value = "NAME=VALUE",
     .repeatable = true,
     .set = add_parameter,
     .help = "Set a parameter of the rules"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel live",
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"What to record", recording_rows, offsetof(arguments, recording)},
                                      {0}},
    .operands = "[-- COMMAND...]",
    .first_operand_ends = true,
    .summary = "Send the kernel's events to a log while they occur, for example to a collector, until --duration ends, "
               "COMMAND exits, or Ctrl-C.",
    .notes = "Example: nlkernel live -e tcp:tcp_retransmit_skb --dest 'x-netlog://HOST?format=nlb'\n\n"
             "Records are those of nlkernel record. The log drops and counts records that do not fit into its buffer; "
             "with ?policy=block the kernel's buffers wait instead, and count what they lose.",
};

static bool open_sink(sink *s, const void *user)
{
    const arguments *a = user;
    nl_synthesis *rules = a->rules != NULL ? nl_synthesis_read(a->file.path, a->parameters) : NULL;
    if ((a->rules != NULL && rules == NULL) || !sink_open_log(s, a->destination)) {
        nl_synthesis_free(rules);
        return false;
    }
    if (rules != NULL)
        sink_apply(s, rules);
    return true;
}

int command_live(int argc, char **argv)
{
    arguments a = {.recording.events_elsewhere = true};
    int first = options_parse(&usage, argc, argv, &a);
    a.recording.command = first < argc ? argv + first : NULL;
    recording_options_check(&a.recording);
    if (a.recording.pattern_count == 0 && a.rules == NULL)
        options_fail("missing --event, such as -e sched:sched_switch; nlkernel list shows all events");
    int status = PROGRAM_USAGE;
    if (a.rules != NULL &&
        !(rules_file_read(&a.file, a.rules, a.parameters) && rules_file_choose(&a.file, &a.recording)))
        program_error("%s", nl_error_message());
    else
        status = session_run(&a.recording, open_sink, &a);
    rules_file_free(&a.file);
    free(a.parameters);
    recording_options_free(&a.recording);
    return status;
}
