/* nlkernel rules: lists rules, prints them, or records the events that the rules need and prints the report. */
#include "config.h"

#include "child.h"
#include "command.h"
#include "kernel_sum.h"
#include "reporting.h"
#include "rights.h"
#include "session.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"
#include "program/temporary_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- list and show ---- */

static void list_rules(const char *name, void *user)
{
    rules_file file;
    int *status = user;
    if (rules_file_read(&file, name, NULL)) {
        printf("%-12s %s\n", file.name, file.title);
        rules_file_free(&file);
    } else {
        program_print_error();
        *status = PROGRAM_PROBLEM;
    }
}

static int rules_command_list(int argc, char **argv)
{
    static const options_usage usage = {
        .name = "nlkernel rules list",
        .summary = "List the rules.",
        .notes = "Rules are files called NAME.rules. nlkernel looks for them in the directories in $NETLOGGER_RULES "
                 "(separated by colons), and then in the directory that is installed with nlkernel. To use a file from "
                 "elsewhere, give a path with a /, such as ./FILE."};
    int status = PROGRAM_DONE;
    options_parse(&usage, argc, argv, NULL);
    rules_file_each(list_rules, &status);
    return status;
}

static int rules_command_show(int argc, char **argv)
{
    static const options_usage usage = {
        .name = "nlkernel rules show",
        .operands = "RULES",
        .summary = "Print a rules file, which contains the events to record, the rules and the reports."};
    rules_file file;
    int first = options_parse(&usage, argc, argv, NULL), c;
    if (argc - first != 1)
        options_fail(first == argc ? "missing RULES; nlkernel rules list prints all names"
                                   : "rules show: too many arguments");
    if (!rules_file_read(&file, argv[first], NULL)) {
        program_print_error();
        return PROGRAM_USAGE;
    }
    FILE *text = fopen(file.path, "re");
    if (text == NULL)
        program_error("%s: %s", file.path, strerror(errno));
    while (text != NULL && (c = getc(text)) != EOF)
        putchar(c);
    if (text != NULL)
        fclose(text);
    rules_file_free(&file);
    return text != NULL ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

/* ---- run ---- */

enum { LOGS_MAX = 64 };

typedef struct arguments {
    recording_options recording;
    reporting_options reporting;
    log_input input;
    const char *name;
    const char *kept;              /* path at which to keep the recording; NULL: delete the recording */
    const char *sources[LOGS_MAX]; /* other logs to read */
    size_t source_count;
    char *vary;           /* NAME=VALUE,VALUE,...; NULL: one recording */
    char *directory;      /* directory of the temporary files */
    char *logs[LOGS_MAX]; /* temporary files of the workloads */
    size_t log_count;
} arguments;

static bool add_source(void *settings, const nl_option *row, const char *value)
{
    arguments *a = settings;
    (void)row;
    if (a->source_count == LOGS_MAX)
        return nl_error_false(NL_ERROR_INVALID, "too many values; the maximum is %d", LOGS_MAX);
    a->sources[a->source_count++] = value;
    return true;
}

static bool set_vary(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    ((arguments *)settings)->vary = (char *)value;
    return strchr(value, '=') != NULL || nl_error_false(NL_ERROR_INVALID, "\"%s\" is not NAME=VALUE,VALUE...", value);
}

static const nl_option options[] = {
    {.name = "keep",
     .value = "FILE",
     NL_OPTION_MEMBER(arguments, kept),
     .help = "Save the recording to FILE, for nlkernel report"},
    {.name = "source",
     .value = "SOURCE",
     .repeatable = true,
     .set = add_source,
     .help = "Also read the log SOURCE, such as the log of COMMAND"},
    {.name = "vary",
     .value = "NAME=VALUE,VALUE...",
     .set = set_vary,
     .help = "Run COMMAND once for each VALUE. nlkernel replaces {NAME} in COMMAND with VALUE, and adds the field "
             "NAME=VALUE to the records"},
    {0},
};

static const options_usage run_usage = {
    .name = "nlkernel rules run",
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Further events to record", recording_rows, offsetof(arguments, recording)},
                                      REPORTING_GROUPS(arguments),
                                      {0}},
    .operands = "RULES [-- COMMAND...]",
    .first_operand_ends = true,
    .summary =
        "Record the events that the rules need until --duration has elapsed, COMMAND exits, or Ctrl-C is pressed. Then "
        "print the report.",
    .notes = "Example: nlkernel rules run scheduler --duration 10s --plot scheduler.svg",
};

static bool open_sink(sink *s, const void *user)
{
    return sink_open_file(s, user, NL_FORMAT_NLB, 0);
}

/* Returns a NULL-terminated command that runs a workload and writes its records to the file `log`. The caller frees
 * only the array. */
static char **workload_command(const nl_section *section, char *log)
{
    char **command = nl_memory_check(calloc(section->setting_count + 5, sizeof *command));
    size_t size = 0;
    command[size++] = "/proc/self/exe";
    command[size++] = "workload";
    command[size++] = section->name;
    command[size++] = log;
    for (size_t i = 0; i < section->setting_count; i++)
        if (strcmp(section->settings[i].key, "argument") == 0)
            command[size++] = section->settings[i].value;
    return command;
}

/* Runs the workloads that precede the recording. If the user gives no COMMAND, the first workload that does not precede
 * the recording becomes the command. Returns false and sets the error if a workload fails. */
static bool prepare_workloads(arguments *a, const rules_file *file)
{
    for (size_t i = 0; i < file->sections.count && a->log_count < LOGS_MAX; i++) {
        const nl_section *section = &file->sections.list[i];
        const char *when = nl_section_value(section, "when");
        bool before = when != NULL && strcmp(when, "before") == 0;
        if (strcmp(section->kind, "workload") != 0 || (!before && a->recording.command != NULL))
            continue;
        char *log = a->logs[a->log_count++] = program_format("%s/%s", a->directory, section->name);
        char **command = workload_command(section, log);
        if (!before) {
            a->recording.command = command;
            continue;
        }
        bool ok = child_run(command, NULL);
        free(command);
        if (!ok)
            return nl_error_false(NL_ERROR_SYSTEM, "the workload %s failed", section->name);
    }
    return true;
}

/* Starts the sums in the kernel. If the sums cannot start, prints a message and returns NULL. The report then has no
 * sums. */
static kernel_sums *start_sums(const arguments *a, const rules_run *run)
{
    if (!kernel_sums_needed(&run->file))
        return NULL;
    rights_raise();
    kernel_sums *sums = kernel_sums_start(&run->file, a->recording.tracefs);
    rights_lower();
    if (sums == NULL)
        program_error("%s; the report lacks the kernel's sums", nl_error_message());
    return sums;
}

/* Writes a recording to `path`, and passes its records and the records of the other logs to the rules. Returns an exit
 * status. */
static int record_and_read(arguments *a, rules_run *run, const char *path)
{
    kernel_sums *sums = start_sums(a, run);
    int status = session_run(&a->recording, open_sink, path);
    if (sums != NULL) {
        rights_raise();
        kernel_sums_stop(sums);
        if (status == PROGRAM_DONE)
            kernel_sums_read(sums, rules_run_take, run);
        kernel_sums_free(sums);
        rights_lower();
    }
    if (status != PROGRAM_DONE)
        return status;
    bool ok = true;
    for (size_t i = 0; i < a->log_count; i++)
        if (access(a->logs[i], R_OK) == 0)
            ok = log_input_read(&a->input, a->logs[i], rules_run_take, run) && ok;
    for (size_t i = 0; i < a->source_count; i++)
        ok = log_input_read(&a->input, a->sources[i], rules_run_take, run) && ok;
    ok = log_input_read(&a->input, path, rules_run_take, run) && ok;
    rules_run_end_recording(run);
    return ok ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

/* Returns a copy of a command. In each argument, `value` replaces the first {NAME}, where NAME is `name`. The caller
 * frees the array and its strings. */
static char **substitute_command(char **command, const char *name, const char *value)
{
    size_t count = 0;
    while (command[count] != NULL)
        count++;
    char **copy = nl_memory_check(calloc(count + 1, sizeof *copy)), place[128];
    snprintf(place, sizeof place, "{%s}", name);
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(command[i], place);
        int size = at != NULL ? (int)(at - command[i]) : (int)strlen(command[i]);
        copy[i] =
            program_format("%.*s%s%s", size, command[i], at != NULL ? value : "", at != NULL ? at + strlen(place) : "");
    }
    return copy;
}

static int record_varied(arguments *a, rules_run *run, const char *path)
{
    char **command = a->recording.command, *equals = strchr(a->vary, '='), *save = NULL;
    int status = PROGRAM_DONE;
    *equals = '\0';
    run->tag = a->vary;
    for (char *value = strtok_r(equals + 1, ",", &save); value != NULL && status == PROGRAM_DONE;
         value = strtok_r(NULL, ",", &save)) {
        a->recording.command = substitute_command(command, a->vary, value);
        run->tag_value = value;
        status = record_and_read(a, run, path);
        for (char **argument = a->recording.command; *argument != NULL; argument++)
            free(*argument);
        free(a->recording.command);
    }
    a->recording.command = command;
    return status;
}

static int record_and_report(arguments *a, rules_run *run)
{
    char *path = a->kept != NULL ? program_copy(a->kept) : program_format("%s/kernel.nlb", a->directory);
    int status = a->vary != NULL ? record_varied(a, run, path) : record_and_read(a, run, path);
    if (!rules_run_finish(run)) {
        program_print_error();
        status = PROGRAM_PROBLEM;
    }
    if (status == PROGRAM_DONE)
        status = a->reporting.perl ? reporting_print_perl(&a->input, &path, 1) : reporting_print(run, &a->reporting);
    if (a->kept == NULL)
        unlink(path);
    free(path);
    return status;
}

static int run_rules(arguments *a)
{
    rules_run run;
    bool has_command = a->recording.command != NULL;
    if (!rules_run_open(&run, a->name, &a->reporting.parameters, a->reporting.derived)) {
        program_print_error();
        return PROGRAM_USAGE;
    }
    rules_run_read_symbols(&run);
    int status = PROGRAM_PROBLEM;
    a->directory = temporary_directory_make("/tmp");
    if (a->directory == NULL) {
        program_print_error();
        rules_run_close(&run);
        return status;
    }
    if (rules_file_add_events(&run.file, &a->recording) && prepare_workloads(a, &run.file))
        status = record_and_report(a, &run);
    else
        program_print_error();
    if (!has_command)
        free(a->recording.command);
    for (size_t i = 0; i < a->log_count; i++) {
        unlink(a->logs[i]);
        free(a->logs[i]);
    }
    rmdir(a->directory);
    free(a->directory);
    rules_run_close(&run);
    return status;
}

static int rules_command_run(int argc, char **argv)
{
    static arguments a;
    a.reporting = (reporting_options)REPORTING_INITIAL;
    /* RULES precedes the options, because all arguments after the options belong to COMMAND */
    if (argc > 1 && argv[1][0] != '-') {
        a.name = argv[1];
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    int first = options_parse(&run_usage, argc, argv, &a);
    a.recording.command = first < argc ? argv + first : NULL;
    recording_options_check(&a.recording, false);
    if (a.name == NULL)
        options_fail("rules run: the first argument must be RULES; for example, nlkernel rules run scheduler "
                     "--duration 10s");
    if (a.vary != NULL && a.recording.command == NULL)
        options_fail("--vary requires a COMMAND");
    int status = run_rules(&a);
    if (log_input_finish(&a.input) != PROGRAM_DONE && status == PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    recording_options_free(&a.recording);
    free(a.reporting.parameters.list);
    return status;
}

/* ---- the command ---- */

int command_rules(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"list", rules_command_list}, {"show", rules_command_show}, {"run", rules_command_run}};
    static const options_command subcommands[] = {{"list", NULL, "List the rules"},
                                                  {"show", "RULES", "Print rules"},
                                                  {"run", "RULES [OPTION...] [-- COMMAND...]", "Record and report"},
                                                  {0}};
    static const options_group variables[] = {{"Environment variables", rules_environment_options, 0}, {0}};
    static const options_usage usage = {.name = "nlkernel rules",
                                        .variables = variables,
                                        .commands = subcommands,
                                        .first_operand_ends = true,
                                        .summary = "Rules are files that name the kernel events to record, derive "
                                                   "records from these events, and define reports.",
                                        .notes = "See nlkernel rules COMMAND --help."};
    int first = options_parse(&usage, argc, argv, NULL);
    size_t i = 0;
    while (strcmp(commands[i].name, argv[first]) != 0)
        i++;
    char name[48];
    snprintf(name, sizeof name, "nlkernel rules %s", argv[first]);
    argv[first] = name;
    return commands[i].run(argc - first, argv + first);
}
