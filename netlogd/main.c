/* netlogd: collects records from many machines into one log. Options, and the way into the background. */
#include "config.h"

#include "service/ending.h"
#include "service/inherited.h"
#include "service/listener.h"
#include "confined.h"
#include "metrics.h"
#include "output/failure.h"
#include "output/outputs.h"
#include "output/verify.h"
#include "recovery.h"
#include "server.h"
#include "settings.h"

#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPTION_FIRST = 0x1000 };

/* An option and a directive have the same name; key is OPTION_FIRST plus the place here. */
static const struct {
    const char *name;
    const char *argument;
    const char *doc;
} directives[] = {
    {"listen", "URL",
     "Where clients connect, again and again: x-netlog://HOST[:PORT] (port 14830 unless said, 0 for any free one); "
     "x-netlogs://HOST[:PORT]?cert=FILE&key=FILE (TLS; with &ca=FILE clients must show certificates that those in it "
     "vouch for; with &crl=FILE none that is revoked, with &peers=NAME,... one with such a name, with "
     "&hosts=certificate "
     "they may send records of the hosts in it only); x-netlog+udp://HOST[:PORT] (whole lines in datagrams); "
     "unix:PATH; inherited:NAME, a socket that "
     "systemd opened (with ?cert=FILE and so on for TLS; * for all); nats://HOST/STREAM?durable=NAME&share=K/N, what "
     "others put into NATS JetStream (doc/nats.md). Default inherited:* where there are such, otherwise "
     "x-netlog://127.0.0.1:14830"},
    {"output", "FILE|FOLDER/|URL",
     "Where records go, again and again: a file, appended to; - (the default), standard output; FOLDER/ or "
     "file:FOLDER/NAME-{N}.nlb?rotate_size=256m&rotate_time=1h, numbered files; x-netlog://HOST?spool=FOLDER (or "
     "x-netlogs, unix), another collector, x-syslog://FACILITY?spool=FOLDER, and nats://HOST/STREAM?spool=FOLDER, NATS "
     "JetStream (doc/nats.md), which get all that waits in the folder, at most spool_size=1g. Options of each: "
     "where=EXPRESSION (which records), format=ulm|bp|nlb, zstd=LEVEL, fsync=never|flush|TIME (when what is "
     "acknowledged is safe against a crash of the machine)"},
    {"allow", "NETWORK",
     "Clients that may connect from other machines: 10.0.0.0/8, fd00::/8, 192.0.2.7, with commas "
     "between. Needed to listen off loopback, unless clients show certificates there"},
    {"log", "URL", "Where netlogd's own events go (default file:///dev/stderr)"},
    {"level", "LEVEL", "The threshold of its own events (default Important: all but Debug)"},
    {"reject", "FILE", "Keep malformed input there, as it came"},
    {"fraction", "HOW", "How a DATE's fraction of fewer than six digits is meant: decimal (default) or microseconds"},
    {"max-record-size", "SIZE", "A longer record is malformed (default 1M)"},
    {"max-connections", "N",
     "How many clients may be connected. One more takes the place of the client that has been silent for the longest, "
     "of "
     "the address that has most of them, or is turned away while all are busy (default 10000)"},
    {"max-memory", "SIZE",
     "What all clients together may take for records and blocks whose rest has not come, and subscribers for what they "
     "have not read, of which half at most; beyond that, clients that are the longest about a large one are closed, "
     "and subscribers miss records (default 1G)"},
    {"max-per-address", "N",
     "How many clients of one address (or IPv6 network of 64 bits) may be connected; one more takes the place of the "
     "one "
     "of them that has been silent for the longest (default 5000; 0: no limit)"},
    {"max-rate", "N",
     "Records a second from one client; one who sends more is read later, so that it is held up (default 0: no limit)"},
    {"record-timeout", "SECONDS",
     "Close a connection that takes longer over one record, or until its first record (default 300; 0: never)"},
    {"idle-timeout", "SECONDS", "Close a connection that is silent for so long (default 86400; 0: never)"},
    {"handshake-timeout", "SECONDS",
     "Close a connection on which TLS has not begun by then, or whose request has not come (default 10; 0: never)"},
    {"stop-timeout", "SECONDS",
     "What the end may take, beside writing to the disk: for what clients have still to send and subscribers to read, "
     "and for what is on its way to others, which stays in its spool after that (default 10)"},
    {"activation", "FILE",
     "Send the commands in it (level, event, marker, and destination with another collector's URL) to the programs "
     "that log here in the binary format, now and whenever it changes"},
    {"subscribe", "yes|no", "Whether clients may subscribe to the records as they come (default yes)"},
    {"subscriber-queue", "SIZE",
     "What a subscriber that does not keep up may leave unread; what comes then it misses, and is told (default 4M)"},
    {"max-subscribers", "N",
     "More of them are refused; each takes up to 100 KiB beside its queue, and with an expression of its own up to a "
     "microsecond of each record (default 1000)"},
    {"confine", "yes|no",
     "Give up the system calls and the rights to write files that this configuration does not need, by seccomp and "
     "Landlock (default yes)"},
    {"control", "unix:PATH", "A socket for netlogctl; only this user may open it"},
    {"metrics", "URL",
     "http://HOST:PORT, where Prometheus is answered GET /metrics; off loopback only with --allow. Requests must name "
     "this "
     "host: by its address, its name, or one of ?names=NAME,..."},
    {"recover", "SECONDS",
     "How often to look for events that killed processes of this user have left, and bring them to "
     "where they were going (default 5; 0: never)"},
    {"pid-file", "FILE", "Write the process's number there"},
};

enum {
    DIRECTIVE_COUNT = sizeof directives / sizeof directives[0],
    OPTION_CONFIG = 'c',
    OPTION_FOREGROUND = 'f',
    OPTION_VERIFY = 0x2000,
    OPTION_REPAIR
};

typedef struct arguments {
    int argc;
    char **argv;
    settings *settings;
    bool foreground;
    bool verify, repair;
    char **paths; /* to verify */
    int path_count;
    config_report report; /* while the process runs; NULL at its start, when what is wrong ends it */
    void *report_user;
} arguments;

static void report_at_start(void *unused, const char *message)
{
    (void)unused;
    program_error("%s", message);
}

static error_t read_config(arguments *a, const char *path)
{
    if (settings_read_file(a->settings, path, a->report != NULL ? a->report : report_at_start, a->report_user))
        return 0;
    if (a->report == NULL)
        exit(PROGRAM_USAGE);
    return EINVAL;
}

static error_t set(arguments *a, const char *name, const char *value, struct argp_state *state)
{
    const char *why = settings_set(a->settings, name, value);
    if (why == NULL)
        return 0;
    if (a->report == NULL) {
        argp_error(state, "--%s %s: %s", name, value, why);
    } else {
        char message[1024];
        snprintf(message, sizeof message, "--%s %s: %s", name, value, why);
        a->report(a->report_user, message);
    }
    return EINVAL;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    if (key == OPTION_CONFIG)
        return read_config(a, argument);
    if (key == OPTION_FOREGROUND) {
        a->foreground = true;
        return 0;
    }
    if (key == OPTION_VERIFY || key == OPTION_REPAIR) {
        a->verify = true;
        a->repair = a->repair || key == OPTION_REPAIR;
        return 0;
    }
    if (key == ARGP_KEY_ARGS && a->verify) {
        a->paths = state->argv + state->next;
        a->path_count = state->argc - state->next;
        return 0;
    }
    if (key == ARGP_KEY_NO_ARGS && a->verify)
        argp_error(state, "which files? Name them, or their folder");
    if (key == ARGP_KEY_ARG && a->verify)
        return ARGP_ERR_UNKNOWN; /* all of them at once, then */
    if (key >= OPTION_FIRST && key < OPTION_FIRST + DIRECTIVE_COUNT)
        return set(a, directives[key - OPTION_FIRST].name, argument, state);
    if (key == ARGP_KEY_ARG)
        argp_error(state, "what is \"%s\"? Only options are known", argument);
    return ARGP_ERR_UNKNOWN;
}

/* Into a->settings. False after having reported why not. */
static bool read_arguments(arguments *a)
{
    struct argp_option options[DIRECTIVE_COUNT + 5] = {
        {"config", OPTION_CONFIG, "FILE", 0, "Read directives from FILE: lines \"listen URL\", as the options below",
         0},
        {"foreground", OPTION_FOREGROUND, NULL, 0, "Do not go into the background", 0},
        {"verify", OPTION_VERIFY, NULL, 0,
         "Collect nothing: check every record of the files or folders named, say what is damaged and missing; exit 1 "
         "when anything is",
         0},
        {"repair", OPTION_REPAIR, NULL, 0,
         "As --verify, and take what is damaged out of FILE into FILE.damaged, and make FILE.index, its index by time, "
         "anew "
         "where it is not sound",
         0},
    };
    for (int i = 0; i < DIRECTIVE_COUNT; i++)
        options[i + 4] = (struct argp_option){.name = directives[i].name,
                                              .key = OPTION_FIRST + i,
                                              .arg = directives[i].argument,
                                              .doc = directives[i].doc,
                                              .group = 1};
    const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "\n--verify|--repair FILE|FOLDER...",
        .doc = "Collect records from many machines into one log, or several."
               "\vPlain text will do: echo \"DATE=20260101120000 HOST=a PROG=b LVL=Usage NL.EVNT=x\" | nc -N HOST 14830"
               "\n\nSIGHUP opens output files anew, so that they can be moved away, and reads the configuration and "
               "certificates anew, which hold from then on if they can be used; SIGTERM takes over what has arrived, "
               "writes it and ends."};
    if (argp_parse(&argp, a->argc, a->argv, 0, NULL, a) != 0)
        return false;
    if (!a->verify && a->settings->listen_count == 0)
        settings_set(a->settings, "listen", inherited_count() > 0 ? "inherited:*" : "x-netlog://127.0.0.1:14830");
    if (a->settings->output_count == 0)
        settings_set(a->settings, "output", "-");
    return true;
}

static settings *new_settings(void)
{
    settings *s = malloc(sizeof *s);
    if (s == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    settings_init(s);
    return s;
}

static settings *read_again(void *user, config_report report, void *report_user)
{
    arguments again = *(const arguments *)user;
    again.settings = new_settings();
    again.report = report;
    again.report_user = report_user;
    if (read_arguments(&again))
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

/* The control socket's listener; NULL when it failed or there is none. Its file is this user's alone. */
static listener *open_control(const settings *s, bool *good)
{
    listener *control = NULL;
    size_t count = 0;
    char message[256];
    if (s->control == NULL)
        return NULL;
    mode_t mask = umask(0177);
    *good = listener_open(&(listening){.url = s->control}, false, &control, &count, message);
    umask(mask);
    if (!*good)
        program_error("%s", message);
    else
        control->asked = NULL;
    return control;
}

static bool open_listeners(const settings *s, listener **listeners, size_t *count)
{
    char message[256];
    for (size_t i = 0; i < s->listen_count; i++)
        if (s->listen[i].nats != NULL)
            fprintf(stderr, "netlogd: reading %s\n", s->listen[i].url);
        else if (!listener_open(&s->listen[i], s->allow_count > 0, listeners, count, message)) {
            program_error("%s", message);
            return false;
        }
    for (size_t i = 0; i < *count; i++)
        fprintf(stderr, "netlogd: listening on %s\n", (*listeners)[i].name);
    return true;
}

/* Whether standard output is still needed. */
static bool writes_to_terminal(const settings *s)
{
    for (size_t i = 0; i < s->output_count; i++)
        if (strcmp(s->outputs[i], "-") == 0)
            return true;
    return false;
}

/* ---- into the background ---- */

/* Where the process in the background says that it serves; -1: it is not there, or has said so. */
static int starter = -1;
static bool keeps_streams; /* standard output is written */

/*
 * Goes on in a process of its own. The one that was started waits until that serves, or ends as it does: whatever can
 * go wrong at the start is said on the terminal, and seen in the status.
 */
static void detach(void)
{
    int ends[2], status = 0;
    char said;
    if (pipe2(ends, O_CLOEXEC) != 0)
        program_fail(PROGRAM_PROBLEM, "go into the background: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        program_fail(PROGRAM_PROBLEM, "go into the background: %s", strerror(errno));
    if (child == 0) {
        close(ends[0]);
        starter = ends[1];
        setsid();
        return;
    }
    close(ends[1]);
    ssize_t got;
    do
        got = read(ends[0], &said, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1)
        _exit(PROGRAM_DONE);
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : PROGRAM_PROBLEM);
}

static void let_go(void)
{
    int nothing = starter >= 0 && !keeps_streams ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    if (starter < 0)
        return;
    for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    if (nothing >= 0)
        close(nothing);
    if (write(starter, "", 1) != 1)
        program_error("go into the background: %s", strerror(errno));
    close(starter);
    starter = -1;
}

/* NULL: it has none. Standard error is let go in the background, and must not be held by the log. */
static nl_log *open_log(const settings *s, bool foreground)
{
    if (!foreground && !keeps_streams && settings_logs_to_stderr(s))
        return NULL;
    nl_log *log = nl_open("netlogd", s->log);
    if (log == NULL)
        program_error("its own events go nowhere: %s", nl_error_message());
    nl_set_level(log, s->level);
    nl_set_idle(log, NL_NS_PER_SECOND);
    return log;
}

/* Everything that can go wrong at the start goes wrong before the terminal is let go. */
static int serve(arguments *a)
{
    const settings *s = a->settings;
    keeps_streams = writes_to_terminal(s);
    if (!a->foreground)
        detach();
    server_block_signals(true);
    outputs *out = outputs_open(s->outputs, s->output_count);
    if (out == NULL) {
        program_error("%s", failure_text());
        return PROGRAM_PROBLEM;
    }
    listener *listeners = NULL;
    size_t count = 0;
    server_extras extras = {.metrics_fd = -1, .on_ready = let_go};
    bool wrote_pid_file = false, good = true;
    int status = PROGRAM_PROBLEM;
    nl_log *log = NULL;
    listener *control = open_control(s, &good);
    extras.control = control;
    if (good && s->metrics != NULL)
        good = (extras.metrics_fd = metrics_bind(s)) >= 0;
    if (good && open_listeners(s, &listeners, &count)) {
        log = open_log(s, a->foreground);
        wrote_pid_file = s->pid_file != NULL && write_pid_file(s->pid_file);
        if (s->pid_file == NULL || wrote_pid_file) {
            /* Its thread goes on writing wherever killed programs of this user logged to. */
            extras.recovering = s->recover_s > 0 ? recovery_start(s->recover_s, log) : NULL;
            confined_begin(s, log);
            outputs_start(out, log);
            status = server_run(s, read_again, a, listeners, count, &extras, out, log);
            recovery_end(extras.recovering, RECOVERY_PATIENCE_MS); /* where the server could not begin */
            recovery_free(extras.recovering);
        }
    }
    listener_close_all(listeners, count);
    listener_close_all(control, control != NULL);
    if (outputs_close(out) != NL_OK) {
        program_error("%s", failure_text());
        status = PROGRAM_PROBLEM;
    }
    nl_close(log);
    /* The last of all: who waits for it to go finds everything written. */
    if (wrote_pid_file)
        ending_remove_pid_file(s->pid_file);
    return status;
}

int main(int argc, char **argv)
{
    program_start("netlogd", argv);
    inherited_find();
    signal(SIGPIPE, SIG_IGN); /* an output that is a pipe fails like any other */
    signal(SIGXFSZ, SIG_IGN); /* and a file that may not be larger is as a disk that is full */
    arguments a = {.argc = argc, .argv = argv, .settings = new_settings()};
    read_arguments(&a);
    int status = a.verify ? verify(a.paths, a.path_count, a.repair) : serve(&a);
    settings_delete(a.settings);
    return program_finish(status);
}
