/* nlkernel report: what the events of a log mean, by a schema. */
#include "config.h"

#include "command.h"
#include "reporting.h"

typedef struct arguments {
    reporting_options reporting;
    const char *schema;
    char **logs;
    int log_count;
} arguments;

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    (void)argument;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->reporting;
        return 0;
    case ARGP_KEY_ARGS:
        a->schema = state->argv[state->next];
        a->logs = state->argv + state->next + 1;
        a->log_count = state->argc - state->next - 1;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no schema is given: nlkernel schema list shows what there is");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&reporting_argp, 0, "", 1}, {0}};

static const struct argp argp = {
    .parser = parse,
    .children = children,
    .args_doc = "SCHEMA [SOURCE...]",
    .doc = "Say what the events of a log mean, by a schema: scheduler, locking, and what nlkernel schema list shows."
           "\vA schema says which events it is made of (nlkernel schema show NAME); nlkernel schema run NAME records "
           "and reports in one go. Events may be in any order. What spans events that were lost is left out. Without "
           "SOURCE standard input is read. " PROGRAM_SOURCES ".",
};

static int report(arguments *a)
{
    static char *standard_input[] = {"-"};
    char **logs = a->log_count > 0 ? a->logs : standard_input;
    int count = a->log_count > 0 ? a->log_count : 1, status = PROGRAM_DONE;
    if (a->reporting.perl)
        return reporting_print_perl(&a->reporting, logs, (size_t)count);
    schema_run run;
    if (!schema_run_open(&run, a->schema, a->reporting.parameters, a->reporting.output)) {
        program_error("%s", nl_error_message());
        return PROGRAM_USAGE;
    }
    for (int i = 0; i < count; i++)
        if (schema_run_read(&run, &a->reporting.reading, logs[i]) != PROGRAM_DONE)
            status = PROGRAM_PROBLEM;
    if (program_reading_finish(&a->reporting.reading) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    if (!schema_run_finish(&run)) {
        program_error("%s", nl_error_message());
        status = PROGRAM_PROBLEM;
    }
    if (reporting_say(&run, &a->reporting) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    schema_run_close(&run);
    return status;
}

int command_report(int argc, char **argv)
{
    if (report_is_of_functions(argc, argv))
        return report_functions(argc, argv);
    arguments a = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    int status = report(&a);
    reporting_options_free(&a.reporting);
    return status;
}
