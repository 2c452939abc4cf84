/*
 * netlogd: collects records from many machines into one log. This file parses the options and starts the server, in the
 * background if the options request this.
 */
#include "config.h"

#include "service/confine.h"
#include "service/daemon.h"
#include "service/ending.h"
#include "service/inherited.h"
#include "service/listener.h"
#include "confined.h"
#include "journal_input.h"
#include "metrics.h"
#include "base/error.h"
#include "base/memory.h"
#include "nats/place.h"
#include "output/options.h"
#include "output/outputs.h"
#include "output/seal_key.h"
#include "output/verify.h"
#include "recovery.h"
#include "server.h"
#include "settings.h"

#include "transport/dial.h"
#include "program/message_output.h"
#include "program/own_log.h"
#include "program/program.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct arguments {
    int argc;
    char **argv;
    settings *settings;
    char **paths; /* paths to verify */
    int path_count;
} arguments;

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, settings_command_rows, 0},
                                      {"Settings, also valid in the configuration file", settings_rows, 0},
                                      {0}},
    .file_rows = settings_rows,
    .urls = (const options_group[]){{"Options of every output", output_rows, 0},
                                    {"Options of output files", output_file_rows, 0},
                                    {"Options of outputs with a spool", output_spool_rows, 0},
                                    {"Options of outputs to x-netlogs", nl_dialer_rows, 0},
                                    {"Options of NATS", nats_rows, 0},
                                    {"Options of outputs to NATS", nats_output_rows, 0},
                                    {"Options of listeners that read from NATS", nats_listener_rows, 0},
                                    {"Options of listeners with TLS", listening_tls_rows, 0},
                                    {"Options of listeners with TLS", listening_hosts_rows, 0},
                                    {"Options of the metrics URL", listening_names_rows, 0},
                                    {0}},
    .operands = "\n--verify|--repair FILE|DIRECTORY...\n--verify --seal-key=FILE [--since=TIME] DIRECTORY...\n"
                "--create-seal-key=FILE",
    .summary = "Collect records from many machines into one or more logs.",
    .notes = "netlogd also accepts plain text: echo \"DATE=20260101120000 HOST=a PROG=b LVL=Usage NL.EVNT=x\" | nc -N "
             "HOST 14830\n\nTo rotate an output file, rename it and send SIGHUP. On SIGHUP, netlogd reopens its output "
             "files. It also reads the configuration and certificates again, and applies them if they are valid. On "
             "SIGTERM, netlogd writes the records that have arrived, and exits."};

/* Reads the options into a->settings. On failure, reports the problem and returns false. */
static bool read_arguments(arguments *a, config_report report, void *report_user)
{
    settings *s = a->settings;
    s->config.report = report;
    s->config.user = report_user;
    int first = options_parse_again(&usage, a->argc, a->argv, s, report, report_user);
    if (first < 0 || s->config.failed)
        return false;
    a->paths = a->argv + first;
    a->path_count = a->argc - first;
    if (s->verify && a->path_count == 0)
        options_fail("--verify: missing FILE or DIRECTORY");
    if ((s->seal_key != NULL && (!s->verify || s->repair)) || (s->since_ns != 0 && s->seal_key == NULL))
        options_fail("--seal-key requires --verify, and --since requires --seal-key");
    for (int i = 0; s->seal_key != NULL && i < a->path_count; i++)
        if (!program_is_directory(a->paths[i]))
            options_fail("--seal-key: %s: not a directory", a->paths[i]);
    if (!s->verify && a->path_count > 0)
        options_fail("%s: unexpected argument; see netlogd --help", a->paths[0]);
    if (!s->verify && s->listen_count == 0)
        settings_add(s, "listen", inherited_count() > 0 ? "inherited:*" : "x-netlog://127.0.0.1:14830");
    if (s->output_count == 0)
        settings_add(s, "output", "-");
    return true;
}

static settings *new_settings(void)
{
    settings *s = nl_memory_check(malloc(sizeof *s));
    settings_init(s);
    return s;
}

static settings *read_again(void *user, config_report report, void *report_user)
{
    arguments again = *(const arguments *)user;
    again.settings = new_settings();
    if (read_arguments(&again, report, report_user))
        return again.settings;
    settings_delete(again.settings);
    return NULL;
}

static bool write_pid_file(const char *path)
{
    FILE *file = fopen(path, "we");
    bool good = file != NULL && fprintf(file, "%ld\n", (long)getpid()) > 0;
    good = (file == NULL || fclose(file) == 0) && good;
    if (!good)
        program_error("write %s: %s", path, strerror(errno));
    return good;
}

/*
 * Opens the control socket, whose file only this user can open. Returns NULL if no control socket is configured. On
 * failure, returns NULL and sets *good to false.
 */
static listener *open_control(const settings *s, bool *good)
{
    listener *control = NULL;
    size_t count = 0;
    if (s->control == NULL)
        return NULL;
    mode_t mask = umask(0177);
    *good = listener_open(&(listening){.url = s->control}, false, &control, &count);
    umask(mask);
    if (!*good)
        program_print_error();
    else
        control->asked = NULL;
    return control;
}

static bool open_listeners(const settings *s, listener **listeners, size_t *count)
{
    for (size_t i = 0; i < s->listen_count; i++)
        if (s->listen[i].nats != NULL)
            fprintf(stderr, "netlogd: reading %s\n", s->listen[i].url);
        else if (!listener_open(&s->listen[i], s->allow.count > 0, listeners, count)) {
            program_print_error();
            return false;
        }
    for (size_t i = 0; i < *count; i++)
        fprintf(stderr, "netlogd: listening on %s\n", (*listeners)[i].name);
    return true;
}

/* Returns whether an output writes to standard output. */
static bool writes_to_terminal(const settings *s)
{
    for (size_t i = 0; i < s->output_count; i++)
        if (strcmp(s->outputs[i], "-") == 0)
            return true;
    return false;
}

/*
 * Opens netlogd's own log. Returns NULL on failure, or if the log is standard error and netlogd runs in the background.
 */
static nl_log *open_log(const settings *s)
{
    if (daemon_has_no_streams() && settings_logs_to_stderr(s))
        return NULL;
    nl_log *log = program_open_log("netlogd", s->log, true);
    if (log == NULL)
        program_error("cannot log netlogd's own events: %s", nl_error_message());
    nl_set_policy(log, NL_POLICY_NEWEST, 0, NL_LEVEL_NONE); /* a slow reader of the log must not delay clients */
    nl_set_level(log, s->level);
    nl_set_idle(log, NL_NS_PER_SECOND);
    return log;
}

static int serve_outputs(arguments *a, recovery *recovering)
{
    const settings *s = a->settings;
    server_parts parts = {.settings = s,
                          .read_settings = read_again,
                          .read_user = a,
                          .metrics_fd = -1,
                          .recovering = recovering,
                          .on_ready = daemon_ready};
    bool good = true;
    listener *control = open_control(s, &good);
    parts.control = control;
    if (good && s->metrics != NULL)
        good = (parts.metrics_fd = metrics_bind(s)) >= 0;
    good = good && open_listeners(s, &parts.listeners, &parts.listener_count);
    if (good && s->journal != NULL && !journal_input_load()) {
        program_error("--input journal: %s", nl_error_message());
        good = false;
    }
    bool wrote_pid_file = good && s->pid_file != NULL && write_pid_file(s->pid_file);
    int status = PROGRAM_PROBLEM;
    if (good) {
        nl_error problem = {0};
        if (confined_begin(s) != NL_OK) { /* before starting threads, which inherit the confinement */
            nl_error_save(&problem);
            program_error("%s", problem.message);
        }
        parts.log = open_log(s);
        if (problem.code != NL_ERROR_NONE)
            nl_write(parts.log, NL_WARNING, "Netlogd.NotConfined", "REASON=%s", problem.message);
        outputs_start(parts.log);
        if (s->pid_file == NULL || wrote_pid_file) {
            message_output_never_wait();
            status = server_run(&parts);
            message_output_report_dropped(program_get_name());
        }
    }
    recovery_free(recovering);
    listener_close_all(parts.listeners, parts.listener_count);
    listener_close_all(control, control != NULL);
    if (outputs_close() != NL_OK) {
        program_print_error();
        status = PROGRAM_PROBLEM;
    }
    for (char call[CONFINE_CALL_SIZE]; confine_report_refused(call);)
        nl_write(parts.log, NL_WARNING, "Netlogd.CallRefused", "CALL=%s", call);
    nl_close(parts.log);
    /* Remove the file last, because a program that waits for its removal expects that all records have been written. */
    if (wrote_pid_file)
        ending_remove_pid_file(s->pid_file);
    return status;
}

/* Starts and runs the server. Before going into the background, reports all problems on the terminal. */
static int serve(arguments *a)
{
    const settings *s = a->settings;
    if (!s->foreground)
        daemon_detach(writes_to_terminal(s));
    server_block_signals(true);
    recovery *recovering = s->recover_s > 0 ? recovery_start(s->recover_s, s->confine) : NULL;
    if (outputs_open(s->outputs, s->output_count) == NL_OK)
        return serve_outputs(a, recovering);
    program_print_error();
    recovery_free(recovering);
    return PROGRAM_PROBLEM;
}

/* Creates a seal key, and prints the line that is needed to verify seals. */
static int create_seal_key(const char *path)
{
    char text[SEAL_KEY_TEXT_SIZE + 1];
    if (seal_key_create(path, text) != NL_OK) {
        program_print_error();
        return PROGRAM_PROBLEM;
    }
    fprintf(
        stderr,
        "netlogd: save this line in a file on another machine; --verify needs it, and netlogd prints it only once\n");
    fputs(text, stdout);
    return PROGRAM_DONE;
}

int main(int argc, char **argv)
{
    program_start("netlogd");
    inherited_find();
    signal(SIGPIPE, SIG_IGN); /* makes writes to a closed pipe fail with an error */
    signal(SIGXFSZ, SIG_IGN); /* makes writes beyond the file size limit fail with an error */
    arguments a = {.argc = argc, .argv = argv, .settings = new_settings()};
    read_arguments(&a, NULL, NULL);
    const settings *s = a.settings;
    const verify_options checks = {.repair = s->repair, .seal_key = s->seal_key, .since_ns = s->since_ns};
    int status = s->create_seal_key != NULL ? create_seal_key(s->create_seal_key)
                 : s->verify                ? verify(a.paths, a.path_count, &checks)
                                            : serve(&a);
    settings_delete(a.settings);
    return program_finish(status);
}
