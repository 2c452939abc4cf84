/*
 * nlkernel trace: finds the requests of unmodified servers in their socket calls.
 *
 * The path of one record: for a call of a chosen process, bpf/trace.bpf.c writes an event into the kernel's ring.
 * probe_read (trace_probe.h) delivers the event to take_event. exchanges_put (trace/exchanges.h) finds the requests and
 * replies in the bytes. causes_find (trace/causes.h) finds the request that caused a call. When the span is complete,
 * span_make_record (trace/span.h) builds its record, which goes to the log (sink.h).
 */
#include "config.h"

#include "command.h"

#include "base/error.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "child.h"
#include "options.h"
#include "program/program.h"
#include "realtime.h"
#include "rights.h"
#include "rules_file.h"
#include "sink.h"
#include "trace/description.h"
#include "trace/exchanges.h"
#include "trace_probe.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* READ_MS: time between two reads of the kernel's buffer. CHOOSE_MS: time between two searches for processes to
 * trace. */
enum { READ_MS = 20, CHOOSE_MS = 1000 };

typedef struct arguments {
    const char *destination;
    probe_choice choice;
    descriptions *described;
    int64_t duration_ns;
    bool quiet;
} arguments;

typedef struct tracer {
    arguments *options;
    probe *probe;
    exchanges *exchanges;
    realtime clock;
    sink sink;
    child child;
    nl_record *record;
    char host[256];
    sigset_t signals;
    uint64_t events;
    bool counts_waits;
    int64_t begun_ns;
} tracer;

/* ---- options ---- */

static bool add_traced_pids(void *settings, const nl_option *row, const char *value)
{
    probe_choice *c = &((arguments *)settings)->choice;
    (void)row;
    return recording_add_pids(&c->pids, &c->pid_count, value);
}

static bool add_comm(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    g_ptr_array_add(((arguments *)settings)->choice.programs, program_copy(value));
    return true;
}

static bool add_port(void *settings, const nl_option *row, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);
    uint16_t port = (uint16_t)number;
    (void)row;
    if (*end != '\0' || number < 1 || number > UINT16_MAX)
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a port number", value);
    g_array_append_val(((arguments *)settings)->choice.ports, port);
    return true;
}

static bool add_cgroup(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    if (!g_file_test(value, G_FILE_TEST_IS_DIR))
        return nl_error_false(NL_ERROR_NOT_FOUND,
                              "%s: no such directory; use, for example, /sys/fs/cgroup/system.slice/nginx.service",
                              value);
    g_ptr_array_add(((arguments *)settings)->choice.cgroups, program_copy(value));
    return true;
}

static bool add_rules(void *settings, const nl_option *row, const char *value)
{
    rules_file file = {0};
    (void)row;
    bool ok = rules_file_read(&file, value, NULL);
    ok = ok && descriptions_add(((arguments *)settings)->described, &file.sections);
    rules_file_free(&file);
    return ok;
}

static const nl_option options[] = {
    {.name = "comm",
     .value = "NAME",
     .repeatable = true,
     .set = add_comm,
     .help = "Trace the processes with this name in /proc/PID/comm, such as nginx, postgres or redis-server, and "
             "the processes that they start"},
    {.name = "pid",
     .value = "PID[,PID...]",
     .repeatable = true,
     .set = add_traced_pids,
     .help = "Trace these processes, and the processes that they start"},
    {.name = "cgroup",
     .value = "DIRECTORY",
     .repeatable = true,
     .is_path = true,
     .set = add_cgroup,
     .help = "Trace the processes of this control group and of the groups in it, such as a container or a service"},
    {.name = "port",
     .value = "PORT",
     .repeatable = true,
     .set = add_port,
     .help = "Trace the connections of all processes from or to this TCP port. "
             "This option cannot be used with --comm, --pid, --cgroup or COMMAND"},
    {.name = "rules",
     .value = "RULES",
     .repeatable = true,
     .set = add_rules,
     .help = "Also recognize the protocols in the [protocol] sections of RULES. RULES is a name from the output of "
             "nlkernel rules list, or a path that contains a /"},
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     .environment = "NETLOGGER_DEST",
     NL_OPTION_MEMBER(arguments, destination),
     .help = "Send records to URL: x-netlog://HOST, FILE, -, or any other log URL"},
    {.name = "duration",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     NL_OPTION_MEMBER(arguments, duration_ns),
     .help = "Stop after DURATION, and send SIGTERM to COMMAND if it still runs"},
    {.name = "quiet",
     .letter = 'q',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, quiet),
     .help = "Print only errors and warnings"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel trace",
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .operands = "[-- COMMAND...]",
    .first_operand_ends = true,
    .summary =
        "Trace the requests of running, unmodified servers and clients on this machine, and log a span for each "
        "request and each call to another server. Tracing stops when --duration has elapsed, when COMMAND exits, or on "
        "Ctrl-C.",
    .notes = "Example: nlkernel trace --comm nginx --comm gunicorn --comm postgres --comm redis-server --dest "
             "trace.log\n\nnlkernel recognizes HTTP/1.x, HTTP/2 without TLS, memcached, MySQL, PostgreSQL, Redis and "
             "DNS. It logs methods, "
             "paths without queries, the verbs and tables of SQL statements, and statuses, but never values. nlkernel "
             "traces every process that --comm, --pid or --cgroup selects.",
};

/* ---- tracing ---- */

static void take_span(void *user, span *s)
{
    tracer *t = user;
    span_make_record(s, realtime_of(&t->clock, (uint64_t)s->end_ns), t->host, t->record);
    sink_put_record(&t->sink, t->record);
}

static void take_event(void *user, const struct trace_event *event)
{
    tracer *t = user;
    t->events++;
    exchanges_put(t->exchanges, event);
}

/* Returns the time of the kernel's monotonic clock in nanoseconds, without the shift of a time namespace. */
static int64_t kernel_now_ns(const tracer *t)
{
    return nl_monotonic_ns() - t->clock.namespace_ns;
}

static bool got_signal(const tracer *t)
{
    const struct timespec wait = {.tv_nsec = READ_MS * 1000000};
    int number = sigtimedwait(&t->signals, NULL, &wait);
    return number > 0 && number != SIGCHLD;
}

/* Lets the kernel count the waits of threads only while they are necessary. */
static void count_waits(tracer *t)
{
    bool wanted = exchanges_need_waits(t->exchanges) || probe_has_late_senders(t->probe);
    if (wanted == t->counts_waits)
        return;
    rights_raise();
    probe_count_waits(t->probe, wanted);
    rights_lower();
    t->counts_waits = wanted;
}

static void trace_until_end(tracer *t)
{
    int64_t end_ns = t->options->duration_ns > 0 ? t->begun_ns + t->options->duration_ns : INT64_MAX;
    int64_t chosen_ns = t->begun_ns;
    while (!got_signal(t) && !t->child.ended && !t->sink.failed) {
        probe_read(t->probe);
        exchanges_advance(t->exchanges, kernel_now_ns(t));
        realtime_update(&t->clock);
        child_poll(&t->child);
        count_waits(t);
        int64_t now_ns = nl_monotonic_ns();
        if (now_ns >= end_ns)
            break;
        if (now_ns - chosen_ns >= (int64_t)CHOOSE_MS * 1000000) {
            rights_raise();
            probe_choose(t->probe);
            rights_lower();
            chosen_ns = now_ns;
        }
    }
}

static void log_summary(tracer *t)
{
    static const char event[] = "NetLogger.Trace.Finish";
    const exchange_counts *counts = exchanges_counts(t->exchanges);
    uint64_t lost = probe_missed(t->probe) + counts->refused;
    nl_record_clear(t->record);
    nl_record_set_time(t->record, nl_time_now_ns());
    nl_record_set_host(t->record, t->host, strlen(t->host));
    nl_record_set_prog(t->record, "nlkernel", strlen("nlkernel"));
    nl_record_set_level(t->record, lost > 0 ? NL_WARNING : NL_SYSTEM);
    nl_record_set_event(t->record, event, strlen(event));
    nl_record_add_uint(t->record, "SPANS", counts->spans);
    nl_record_add_uint(t->record, "REQUESTS", counts->requests);
    nl_record_add_uint(t->record, "AMBIGUOUS", counts->causes[SPAN_CAUSE_AMBIGUOUS]);
    nl_record_add_uint(t->record, "UNANSWERED", counts->unanswered);
    nl_record_add_uint(t->record, "UNNAMED", counts->unnamed);
    nl_record_add_uint(t->record, "GAPS", counts->gaps);
    nl_record_add_uint(t->record, "EVENTS", t->events);
    nl_record_add_uint(t->record, "LOST", lost);
    sink_put_own(&t->sink, t->record);
}

static void print_summary(const tracer *t)
{
    const exchange_counts *counts = exchanges_counts(t->exchanges);
    uint64_t lost = probe_missed(t->probe), ambiguous = counts->causes[SPAN_CAUSE_AMBIGUOUS],
             unix_calls = probe_unix_calls(t->probe);
    if (lost > 0)
        program_error("%" PRIu64 " event%s lost, because nlkernel could not read the kernel's buffer in time; trace "
                      "fewer processes",
                      lost, lost == 1 ? " was" : "s were");
    if (counts->refused > 0)
        program_error(
            "%" PRIu64
            " event%s lost, because the traced processes had more than %d sockets open; trace fewer processes",
            counts->refused, counts->refused == 1 ? " was" : "s were", EXCHANGES_ENDS_MAX);
    if (t->sink.refused > 0)
        program_error("%" PRIu64 " record%s lost, because the destination was too slow", t->sink.refused,
                      nl_plural(t->sink.refused));
    if (t->options->quiet)
        return;
    fprintf(stderr, "nlkernel: %" PRIu64 " span%s of %" PRIu64 " request%s in %.3f s, %" PRIu64 " lost, to %s\n",
            counts->spans, nl_plural(counts->spans), counts->requests, nl_plural(counts->requests),
            (double)(nl_monotonic_ns() - t->begun_ns) / 1e9, lost + counts->refused, t->sink.name);
    if (ambiguous > 0)
        fprintf(stderr,
                "nlkernel: %" PRIu64 " call%s may belong to several requests, and %s no parent (EDGE=ambiguous)\n",
                ambiguous, nl_plural(ambiguous), ambiguous == 1 ? "has" : "have");
    if (counts->unnamed > 0)
        fprintf(stderr,
                "nlkernel: %" PRIu64 " span%s of HTTP/2 lack%s the method, path or status (HEADERS=unknown), because "
                "earlier headers of the connection were not traced\n",
                counts->unnamed, nl_plural(counts->unnamed), counts->unnamed == 1 ? "s" : "");
    if (probe_refused_tls(t->probe))
        fprintf(
            stderr,
            "nlkernel: encrypted requests may have no names, because nlkernel lacks CAP_SYS_PTRACE, a process uses a "
            "deleted TLS library, or the kernel rejected probes in a TLS library\n");
    if (unix_calls > 0)
        fprintf(
            stderr,
            "nlkernel: %" PRIu64
            " call%s on Unix sockets %s not in the log; nlkernel requires Linux 6.3 and sockets of type SOCK_STREAM "
            "whose clients have no address\n",
            unix_calls, nl_plural(unix_calls), unix_calls == 1 ? "is" : "are");
}

static bool start_tracing(tracer *t)
{
    if (t->options->choice.ports->len == 0 && !rights_see_all_processes())
        return nl_error_false(
            NL_ERROR_UNSUPPORTED,
            "--comm, --pid, --cgroup and COMMAND do not work in a container, which has its own process "
            "IDs; run nlkernel outside the container, or use --port");
    rights_raise();
    t->probe = probe_start(&t->options->choice, take_event, t);
    rights_lower();
    if (t->probe == NULL)
        return false;
    t->begun_ns = nl_monotonic_ns();
    t->counts_waits = true;
    if (t->child.pid == 0 && !t->options->quiet)
        fprintf(stderr, "nlkernel: tracing; press Ctrl-C to stop\n");
    if (t->child.pid == 0 || child_start(&t->child))
        return true;
    nl_error_prepend("%s", "COMMAND");
    return false;
}

static int run_trace(tracer *t)
{
    bool ok = start_tracing(t);
    if (ok) {
        trace_until_end(t);
        probe_stop(t->probe);
        probe_read(t->probe);
        exchanges_finish(t->exchanges, kernel_now_ns(t));
        log_summary(t);
    } else {
        program_print_error();
    }
    if (!child_end(&t->child))
        program_error("COMMAND did not exit, and is still running");
    if (ok)
        print_summary(t);
    return ok ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

/* Blocks SIGCHLD and the signals that end the trace, so that they interrupt only got_signal. If there is a command,
 * creates its process and chooses the process for tracing. Returns false and sets the error on failure. */
static bool prepare(tracer *t, char **command)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    probe_choice *c = &t->options->choice;
    program_host(t->host, sizeof t->host);
    sigemptyset(&t->signals);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaddset(&t->signals, ends[i]);
    sigprocmask(SIG_BLOCK, &t->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (command == NULL)
        return true;
    if (!child_prepare(&t->child, command))
        return false;
    c->pids = nl_memory_check(reallocarray(c->pids, c->pid_count + 1, sizeof *c->pids));
    c->pids[c->pid_count++] = t->child.pid;
    return true;
}

static void check_choice(const probe_choice *c, bool has_command)
{
    bool others = c->pid_count > 0 || c->programs->len > 0 || c->cgroups->len > 0 || has_command;
    if (c->ports->len > 0 && others)
        options_fail("--port traces every process; it cannot be used with --comm, --pid, --cgroup or a COMMAND");
    if (c->ports->len == 0 && !others)
        options_fail("missing processes to trace, such as --comm nginx; --comm, --pid, --cgroup, --port or a COMMAND "
                     "selects them");
}

int command_trace(int argc, char **argv)
{
    static arguments a;
    a.choice = (probe_choice){.ports = g_array_new(FALSE, FALSE, sizeof(uint16_t)),
                              .programs = g_ptr_array_new_with_free_func(free),
                              .cgroups = g_ptr_array_new_with_free_func(free)};
    a.described = descriptions_new();
    int first = options_parse(&usage, argc, argv, &a), status = PROGRAM_PROBLEM;
    check_choice(&a.choice, first < argc);
    tracer t = {.options = &a, .clock = {.timer_fd = -1}, .record = nl_record_new()};
    t.exchanges = exchanges_new(take_span, &t, a.described);
    realtime_start(&t.clock);
    bool opened = prepare(&t, first < argc ? argv + first : NULL) && sink_open_log(&t.sink, a.destination);
    if (opened)
        status = run_trace(&t);
    if (!opened || !sink_close(&t.sink)) {
        program_print_error();
        status = PROGRAM_PROBLEM;
    }
    probe_free(t.probe);
    exchanges_free(t.exchanges);
    descriptions_free(a.described);
    realtime_stop(&t.clock);
    nl_record_free(t.record);
    free(a.choice.pids);
    g_array_free(a.choice.ports, TRUE);
    g_ptr_array_free(a.choice.programs, TRUE);
    g_ptr_array_free(a.choice.cgroups, TRUE);
    return status;
}
