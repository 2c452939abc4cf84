/* nlkernel report: evaluates rules on the events in logs, and prints their reports. */
#include "config.h"

#include "command.h"
#include "reporting.h"

#include <stdlib.h>

typedef struct arguments {
    reporting_options reporting;
    log_input input;
    const char *rules;
    char **logs;
    size_t log_count;
} arguments;

static const options_usage usage = {
    .name = "nlkernel report",
    .groups = (const options_group[]){REPORTING_GROUPS(arguments), LOG_INPUT_GROUPS(arguments), {0}},
    .operands = "RULES [SOURCE...]",
    .summary =
        "Analyze the events in a log by rules, such as scheduler or locking; nlkernel rules list prints all rules.",
    .notes =
        "nlkernel rules show RULES prints which events the rules need; nlkernel rules run RULES records the events "
        "and prints the report. Events may be in any order. The report omits spans with lost events. Without "
        "SOURCE, read standard input. " PROGRAM_SOURCES ".",
};

static int report_logs(arguments *a)
{
    rules_run run;
    int status = PROGRAM_DONE;
    if (a->reporting.perl)
        return reporting_print_perl(&a->input, a->logs, a->log_count);
    if (!rules_run_open(&run, a->rules, &a->reporting.parameters, a->reporting.derived)) {
        program_print_error();
        return PROGRAM_USAGE;
    }
    for (size_t i = 0; i < a->log_count; i++)
        if (!log_input_read(&a->input, a->logs[i], rules_run_take, &run))
            status = PROGRAM_PROBLEM;
    if (!program_has_records(&a->input.reading, a->input.reading.records, "")) {
        rules_run_close(&run);
        return PROGRAM_PROBLEM;
    }
    if (!rules_run_finish(&run)) {
        program_print_error();
        status = PROGRAM_PROBLEM;
    }
    if (reporting_print(&run, &a->reporting) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    rules_run_close(&run);
    return status;
}

int command_report(int argc, char **argv)
{
    static char *standard_input[] = {"-"};
    arguments a = {.reporting = REPORTING_INITIAL};
    int first = options_parse(&usage, argc, argv, &a);
    if (first == argc)
        options_fail("missing RULES; nlkernel rules list prints all names");
    a.rules = argv[first++];
    a.logs = first < argc ? argv + first : standard_input;
    a.log_count = first < argc ? (size_t)(argc - first) : 1;
    int status = report_logs(&a);
    if (log_input_finish(&a.input) != PROGRAM_DONE && status == PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    free(a.reporting.parameters.list);
    return status;
}
