/* nlkernel report: what the events of a log mean, by rules. */
#include "config.h"

#include "command.h"
#include "reporting.h"

typedef struct arguments {
    reporting_options reporting;
    const char *rules;
    char **logs;
    int log_count;
} arguments;

static const options_usage usage = {
    .name = "nlkernel report",
    .groups = (const options_group[]){REPORTING_GROUPS(arguments), {0}},
    .operands = "RULES [SOURCE...]\n--functions [SOURCE...]",
    .summary = "Analyse the events of a log by rules: scheduler, locking, and others that nlkernel rules "
               "list shows. With --functions, report calls of functions; see nlkernel report --functions --help.",
    .notes =
        "nlkernel rules show NAME prints which events the rules need; nlkernel rules run NAME records and reports "
        "at once. Events may be in any order. The report omits spans with lost events. Without SOURCE, read standard "
        "input. " PROGRAM_SOURCES ".",
};

static int report_report(arguments *a)
{
    static char *standard_input[] = {"-"};
    char **logs = a->log_count > 0 ? a->logs : standard_input;
    int count = a->log_count > 0 ? a->log_count : 1, status = PROGRAM_DONE;
    if (a->reporting.perl)
        return reporting_print_perl(&a->reporting, logs, (size_t)count);
    rules_run run;
    if (!rules_run_open(&run, a->rules, a->reporting.parameters, a->reporting.output)) {
        program_error("%s", nl_error_message());
        return PROGRAM_USAGE;
    }
    for (int i = 0; i < count; i++)
        if (rules_run_read(&run, &a->reporting.reading, logs[i]) != PROGRAM_DONE)
            status = PROGRAM_PROBLEM;
    if (program_reading_finish(&a->reporting.reading) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    if (!rules_run_finish(&run)) {
        program_error("%s", nl_error_message());
        status = PROGRAM_PROBLEM;
    }
    if (reporting_say(&run, &a->reporting) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    rules_run_close(&run);
    return status;
}

int command_report(int argc, char **argv)
{
    if (report_is_of_functions(argc, argv))
        return report_functions(argc, argv);
    arguments a = {.reporting = REPORTING_INITIAL};
    int first = options_parse(&usage, argc, argv, &a);
    if (first == argc)
        options_fail("missing RULES; nlkernel rules list shows all");
    a.rules = argv[first];
    a.logs = argv + first + 1;
    a.log_count = argc - first - 1;
    int status = report_report(&a);
    reporting_options_free(&a.reporting);
    return status;
}
