/* nlkernel: records the kernel's events on the timeline of the programs' events, and reports on them. */
#include "config.h"

#include "command.h"
#include "program/program.h"
#include "rights.h"

#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} functions[] = {{"list", command_list},        {"record", command_record}, {"live", command_live},
                 {"control", command_control},  {"report", command_report}, {"rules", command_rules},
                 {"bench", command_bench},      {"calls", command_calls},   {"graph", command_graph},
                 {"symbols", command_symbols},  {"trace", command_trace},   {"join", command_join},
                 {"workload", command_workload}};

static const options_command commands[] = {
    {"list", "[PATTERN...]", "List the events that this kernel offers"},
    {"record", "-e EVENT... [-o FILE] [-- COMMAND...]", "Record events into a file"},
    {"live", "-e EVENT... [--dest URL] [-- COMMAND...]", "Send events to a log as they occur"},
    {"control", "[-r PID] off|on, or event PATTERN off|on", "Switch a running recorder on or off"},
    {"report", "RULES [SOURCE...]", "Analyze recorded events by rules, and print a report"},
    {"rules", "list, show RULES, or run RULES [-- COMMAND...]",
     "List or print rules, or record events and report them"},
    {"bench", NULL, "Measure the cost of recording"},
    {"calls", "[SOURCE...]", "Report the calls and callers of kernel functions"},
    {"graph", "[-o FILE] [SOURCE...]", "Draw a call graph of kernel functions"},
    {"trace", "--comm NAME|--pid PID|... [--dest URL] [-- COMMAND...]", "Trace the requests of unmodified servers"},
    {"join", "LOG...", "Join the traces of several hosts"},
    {"symbols", "VMLINUX [MODULE...]", "Map functions to source files"},
    {0},
};

static const options_usage usage = {
    .commands = commands,
    .first_operand_ends = true,
    .summary = "Record the kernel's events in a log, on the same timeline as the programs' events.",
    .notes = "See nlkernel COMMAND --help. Recording requires root, or access to tracefs.",
};

int main(int argc, char **argv)
{
    program_start("nlkernel");
    rights_lower();
    /* The list of commands does not contain workload, because only nlkernel itself calls it. */
    bool is_workload = argc > 1 && strcmp(argv[1], "workload") == 0;
    int first = is_workload ? 1 : options_parse(&usage, argc, argv, NULL);
    size_t i = 0;
    while (strcmp(functions[i].name, argv[first]) != 0)
        i++;
    return program_finish(functions[i].run(argc - first, argv + first));
}
