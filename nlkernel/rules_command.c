/* nlkernel rules: the rules that there are, what one says, and one at work. */
#include "config.h"

#include "command.h"
#include "kernel_sum.h"
#include "reporting.h"
#include "rights.h"
#include "session.h"
#include "workload.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- list and show ---- */

static void list_one(const char *path, void *user)
{
    rules_file s;
    int *status = user;
    if (!rules_file_read(&s, path, NULL)) {
        program_error("%s", nl_error_message());
        *status = PROGRAM_PROBLEM;
        return;
    }
    printf("%-12s %s\n", s.name, s.title);
    rules_file_free(&s);
}

static int list(int argc, char **argv)
{
    static const options_usage usage = {.name = "nlkernel rules list",
                                        .summary = "List the rules.",
                                        .notes = "Rules are files called NAME.rules in the folders of "
                                                 "$NETLOGGER_RULES (with : between), and those that came with the "
                                                 "program. Use any other file by its path: ./FILE."};
    int status = PROGRAM_DONE;
    options_parse(&usage, argc, argv, NULL);
    rules_file_each(list_one, &status);
    return status;
}

static int show(int argc, char **argv)
{
    static const options_usage usage = {.name = "nlkernel rules show",
                                        .operands = "RULES",
                                        .summary = "Print a rules file: the events that it records, its rules, its "
                                                   "reports."};
    const char *name = NULL;
    rules_file s;
    char part[4096];
    int first = options_parse(&usage, argc, argv, NULL);
    if (argc - first != 1)
        options_fail(first == argc ? "missing RULES; nlkernel rules list shows all" : "rules show: too many arguments");
    name = argv[first];
    if (!rules_file_read(&s, name, NULL)) {
        program_error("%s", nl_error_message());
        return PROGRAM_USAGE;
    }
    FILE *file = fopen(s.path, "re");
    if (file == NULL)
        program_error("%s: %s", s.path, strerror(errno));
    for (size_t size; file != NULL && (size = fread(part, 1, sizeof part, file)) > 0;)
        fwrite(part, 1, size, stdout);
    if (file != NULL)
        fclose(file);
    rules_file_free(&s);
    return file != NULL ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

/* ---- run ---- */

enum { LOGS_MAX = 64 };

typedef struct arguments {
    recording_options recording;
    reporting_options reporting;
    const char *name;
    const char *kept;            /* where what is recorded stays; NULL: nowhere */
    const char *extra[LOGS_MAX]; /* logs that are read besides */
    size_t extra_count;
    char *vary;      /* NAME=VALUE,VALUE,...; NULL */
    char folder[64]; /* of files that go at the end */
} arguments;

static bool add_log(void *settings, const nl_option *row, const char *value)
{
    arguments *a = settings;
    (void)row;
    if (a->extra_count == LOGS_MAX) {
        return nl_error_false(NL_ERROR_INVALID, "more than the maximum, %d", LOGS_MAX);
    }
    a->extra[a->extra_count++] = value;
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
     .help = "Save the recording in FILE, for nlkernel report"},
    {.name = "log",
     .value = "SOURCE",
     .repeatable = true,
     .set = add_log,
     .help = "Also read the log SOURCE, such as the log of COMMAND"},
    {.name = "vary",
     .value = "NAME=VALUE,VALUE...",
     .set = set_vary,
     .help = "Run COMMAND once for each VALUE, which replaces {NAME}; the records get a field NAME with the value"},
    {0},
};

static const options_usage run_usage = {
    .name = "nlkernel rules run",
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"What to record besides the events of the rules", recording_rows,
                                       offsetof(arguments, recording)},
                                      REPORTING_GROUPS(arguments),
                                      {0}},
    .operands = "RULES [-- COMMAND...]",
    .first_operand_ends = true,
    .summary = "Record the events that the rules need, until --duration ends, COMMAND exits, or Ctrl-C, and print "
               "their report.",
    .notes = "Example: nlkernel rules run scheduler --duration 10s --draw scheduler.svg",
};

static char *file_in(const arguments *a, const char *name)
{
    char *path = program_format("%s/%s", a->folder, name);
    return path;
}

static bool open_sink(sink *s, const void *user)
{
    return sink_open_file(s, user, NL_FORMAT_NLB, 0);
}

/* The command that runs a workload of the rules, whose records go into log. To be freed, not what is in it. */
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

/* Runs a command beside all recording. */
static bool run_before(char **command)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        execv(command[0], command);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool runs_before(const nl_section *section)
{
    const char *when = nl_section_value(section, "when");
    return when != NULL && strcmp(when, "before") == 0;
}

/* Does what the rules want done before, and sets the command that they want done while it records. */
static bool prepare_workloads(arguments *a, const rules_file *s, char **logs, size_t *log_count)
{
    for (size_t i = 0; i < s->sections.count && *log_count + 2 < LOGS_MAX; i++) {
        const nl_section *section = &s->sections.list[i];
        bool before = runs_before(section);
        if (strcmp(section->kind, "workload") != 0 || (!before && a->recording.command != NULL))
            continue;
        logs[*log_count] = file_in(a, section->name);
        char **command = workload_command(section, logs[(*log_count)++]);
        bool good = true;
        if (before) {
            good = run_before(command);
            free(command);
        } else {
            a->recording.command = command;
        }
        if (!good)
            return nl_error_set(NL_ERROR_SYSTEM, "the workload %s failed", section->name) == NL_OK;
    }
    return true;
}

static void put_sum(void *user, const nl_record *record)
{
    rules_run_take(user, record);
}

/* What the kernel is to sum meanwhile. Without it there is less to report, which is said. */
static kernel_sums *start_sums(const arguments *a, const rules_run *run)
{
    if (!kernel_sums_wanted(&run->file))
        return NULL;
    rights_raise();
    kernel_sums *sums = kernel_sums_start(&run->file, a->recording.tracefs);
    rights_lower();
    if (sums == NULL)
        program_error("%s; going on without what the kernel would sum itself", nl_error_message());
    return sums;
}

/* Records into path, and reads it and the workloads' logs. */
static int record_and_read(arguments *a, rules_run *run, char *path, char **logs, size_t log_count)
{
    kernel_sums *sums = start_sums(a, run);
    int status = session_run(&a->recording, open_sink, path);
    if (sums != NULL) {
        rights_raise();
        kernel_sums_stop(sums);
        if (status == PROGRAM_DONE)
            kernel_sums_read(sums, put_sum, run);
        kernel_sums_free(sums);
        rights_lower();
    }
    if (status != PROGRAM_DONE)
        return status;
    for (size_t i = 0; i < log_count; i++)
        if (access(logs[i], R_OK) == 0 && rules_run_read(run, &a->reporting.reading, logs[i]) != PROGRAM_DONE)
            status = PROGRAM_PROBLEM;
    for (size_t i = 0; i < a->extra_count; i++)
        if (rules_run_read(run, &a->reporting.reading, a->extra[i]) != PROGRAM_DONE)
            status = PROGRAM_PROBLEM;
    if (rules_run_read(run, &a->reporting.reading, path) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    rules_run_between(run);
    return status;
}

/* The command with a value in place of {NAME}. To be freed, with what is in it. */
static char **varied(char **command, const char *name, const char *value)
{
    size_t count = 0;
    while (command[count] != NULL)
        count++;
    char **copy = nl_memory_check(calloc(count + 1, sizeof *copy)), wanted[128];
    snprintf(wanted, sizeof wanted, "{%s}", name);
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(command[i], wanted);
        int size = at != NULL ? (int)(at - command[i]) : (int)strlen(command[i]);
        copy[i] = program_format("%.*s%s%s", size, command[i], at != NULL ? value : "",
                                 at != NULL ? at + strlen(wanted) : "");
    }
    return copy;
}

static int run_varied(arguments *a, rules_run *run, char *path, char **logs, size_t log_count)
{
    char **command = a->recording.command, *equals = strchr(a->vary, '='), *save = NULL;
    int status = PROGRAM_DONE;
    *equals = '\0';
    run->tag = a->vary;
    for (char *value = strtok_r(equals + 1, ",", &save); value != NULL && status == PROGRAM_DONE;
         value = strtok_r(NULL, ",", &save)) {
        a->recording.command = varied(command, a->vary, value);
        run->tag_value = value;
        status = record_and_read(a, run, path, logs, log_count);
        for (char **word = a->recording.command; *word != NULL; word++)
            free(*word);
        free(a->recording.command);
    }
    a->recording.command = command;
    return status;
}

static int run_and_report(arguments *a, rules_run *run, char **logs, size_t log_count)
{
    char *path = a->kept != NULL ? strdup(a->kept) : file_in(a, "kernel.nlb");
    int status =
        a->vary != NULL ? run_varied(a, run, path, logs, log_count) : record_and_read(a, run, path, logs, log_count);
    bool said = false;
    if (status == PROGRAM_DONE && a->reporting.perl) {
        said = true;
        status = reporting_print_perl(&a->reporting, &path, 1);
    } else if (status == PROGRAM_DONE && program_reading_finish(&a->reporting.reading) != PROGRAM_DONE) {
        status = PROGRAM_PROBLEM;
    }
    if (!rules_run_finish(run)) {
        program_error("%s", nl_error_message());
        status = PROGRAM_PROBLEM;
    }
    if (status == PROGRAM_DONE && !said)
        status = reporting_say(run, &a->reporting);
    if (a->kept == NULL)
        unlink(path);
    free(path);
    return status;
}

static int run_rules(arguments *a)
{
    rules_run run;
    char *logs[LOGS_MAX];
    size_t log_count = 0;
    const char *temporary = getenv("TMPDIR");
    if (!rules_run_open(&run, a->name, a->reporting.parameters, a->reporting.output)) {
        program_error("%s", nl_error_message());
        return PROGRAM_USAGE;
    }
    rules_run_is_here(&run);
    snprintf(a->folder, sizeof a->folder, "%.40s/nlkernel-XXXXXX", temporary != NULL ? temporary : "/tmp");
    int status = PROGRAM_PROBLEM;
    bool has_command = a->recording.command != NULL;
    if (mkdtemp(a->folder) == NULL) {
        program_error("%s: %s", a->folder, strerror(errno));
        rules_run_close(&run);
        return status;
    }
    if (rules_file_choose(&run.file, &a->recording) && prepare_workloads(a, &run.file, logs, &log_count))
        status = run_and_report(a, &run, logs, log_count);
    else
        program_error("%s", nl_error_message());
    if (!has_command)
        free(a->recording.command);
    for (size_t i = 0; i < log_count; i++) {
        unlink(logs[i]);
        free(logs[i]);
    }
    rmdir(a->folder);
    rules_run_close(&run);
    return status;
}

static int rules_command_run(int argc, char **argv)
{
    arguments a = {.recording.events_elsewhere = true, .reporting = REPORTING_INITIAL};
    /* The name of the rules comes first: the words behind all options are the command's. */
    if (argc > 1 && argv[1][0] != '-') {
        a.name = argv[1];
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    int first = options_parse(&run_usage, argc, argv, &a);
    a.recording.command = first < argc ? argv + first : NULL;
    recording_options_check(&a.recording);
    int status = PROGRAM_USAGE;
    if (a.name == NULL)
        program_error("rules run: missing RULES as the first argument; for example nlkernel rules run scheduler "
                      "--duration 10s");
    else if (a.vary != NULL && a.recording.command == NULL)
        program_error("--vary: needs a COMMAND");
    else
        status = run_rules(&a);
    recording_options_free(&a.recording);
    reporting_options_free(&a.reporting);
    return status;
}

/* ---- the command ---- */

int command_rules(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"list", list}, {"show", show}, {"run", rules_command_run}};
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            static char name[48];
            snprintf(name, sizeof name, "nlkernel rules %s", commands[i].name);
            argv[1] = name;
            return commands[i].run(argc - 1, argv + 1);
        }
    static const options_command subcommands[] = {{"list", NULL, "List the rules"},
                                                  {"show", "RULES", "Print rules"},
                                                  {"run", "RULES [OPTION...] [-- COMMAND...]", "Record and report"},
                                                  {0}};
    static const options_usage usage = {
        .name = "nlkernel rules",
        .commands = subcommands,
        .first_operand_ends = true,
        .summary = "Rules: files that name the kernel's events to record, and define what they mean together and "
                   "what to report.",
        .notes = "See nlkernel rules COMMAND --help."};
    options_parse(&usage, argc, argv, NULL);
    return PROGRAM_USAGE;
}

int command_workload(int argc, char **argv)
{
    return workload_main(argc - 1, argv + 1);
}
