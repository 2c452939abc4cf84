#include "config.h"

#include "server.h"

#include "accepting.h"
#include "activation.h"
#include "background.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "certificate_watch.h"
#include "clocks.h"
#include "connection.h"
#include "connections.h"
#include "counts.h"
#include "datagrams.h"
#include "flush.h"
#include "gaps.h"
#include "file_inputs.h"
#include "journal_input.h"
#include "metrics.h"
#include "nats_reader.h"
#include "otlp_client.h"
#include "output/outputs.h"
#include "program/program.h"
#include "records.h"
#include "recovery.h"
#include "reload.h"
#include "request.h"
#include "service/confine.h"
#include "service/ending.h"
#include "service/inherited.h"
#include "subscription.h"
#include "turns.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>

enum {
    TURN_MS = 10, /* interval between checks for other events; the time of a check grows with the number of clients */
    CLOCK_MS = 1000,
    RECOVERY_MS = 5,       /* interval between checks of the recovery while netlogd stops */
    READERS_MS = 5,        /* interval between checks of the subscribers' queues while netlogd stops */
    READERS_MAX_MS = 2000, /* maximum time during which no subscriber makes progress */
    REST_MS = 20,          /* time to wait for data that the kernels of clients have not sent yet */
    RETRY_MS = 250,
    NS_PER_MS = 1000000,
    KEPT_PART = 16, /* keep_where= may use 1/KEPT_PART of max-memory for each output */
};

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
enum { SIGNAL_COUNT = sizeof signals / sizeof signals[0] };

static struct {
    const server_parts *parts;
    const settings *settings;
    settings *reloaded; /* settings after a reload; NULL: use the settings from the start */
    struct event_base *base;
    char host[SERVER_HOST_SIZE];
    int64_t start_ns;
    bool ending, stopping;
    struct event *signals[SIGNAL_COUNT];
    struct event *clock;    /* runs once a second */
    struct event *recovery; /* checks, at the end, whether recovery has ended */
} server;

const settings *server_settings(void)
{
    return server.settings;
}

settings *server_read_again(config_report report, void *report_user)
{
    return server.parts->read_settings(server.parts->read_user, report, report_user);
}

void server_replace_settings(settings *now)
{
    settings_delete(server.reloaded);
    server.settings = server.reloaded = now;
}

struct event_base *server_base(void)
{
    return server.base;
}

struct event *server_new_event(evutil_socket_t fd, short what, event_callback_fn callback, void *user)
{
    return nl_memory_check(event_new(server.base, fd, what, callback, user));
}

nl_log *server_log(void)
{
    return server.parts != NULL ? server.parts->log : NULL;
}

const char *server_host(void)
{
    return server.host;
}

int64_t server_start_ns(void)
{
    return server.start_ns;
}

bool server_is_ending(void)
{
    return server.ending;
}

bool server_is_stopping(void)
{
    return server.stopping;
}

/* ---- every second ---- */

static void check_time(connection *c, void *user)
{
    connection_check_time(c, *(const int64_t *)user);
}

static void on_clock(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    int64_t now_ns = nl_monotonic_ns();
    counts_tick(now_ns);
    datagrams_check_drops();
    certificate_watch_tick(now_ns);
    clocks_report();
    gaps_check(now_ns);
    for (char call[CONFINE_CALL_SIZE]; confine_report_refused(call);)
        nl_write(server_log(), NL_WARNING, "Netlogd.CallRefused", "CALL=%s", call);
    if (outputs_have_seal_due())
        flush_settle();
    for (size_t i = 0; outputs_get(i) != NULL; i++)
        output_delete_old(outputs_get(i), subscriptions_get_first_needed(outputs_get(i)),
                          server_settings()->max_memory / KEPT_PART, server_log());
    otlp_clients_check_time(now_ns);
    if (!flush_is_paused())
        connections_visit(check_time, &now_ns);
}

/* ---- signals ---- */

void server_block_signals(bool block)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < SIGNAL_COUNT; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void on_recovery_check(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    if (recovery_is_over(server.parts->recovering))
        event_base_loopbreak(server.base);
    else
        event_add(server.recovery, &(struct timeval){.tv_usec = RECOVERY_MS * 1000});
}

static void begin_end(void)
{
    server.ending = true;
    inherited_notify("STOPPING=1");
    ending_begin(server.settings->stop_s);
}

/*
 * Ends the server. If a recovery is running, first waits for its end, because the recovery may be a client of this
 * server. A second signal ends the recovery immediately.
 */
static void on_stop(evutil_socket_t signal, short what, void *user)
{
    int64_t patience_ms = 0;
    if (!server.ending) {
        begin_end();
        patience_ms = ending_left_ms() / 4;
    }
    recovery_end(server.parts->recovering, patience_ms < RECOVERY_PATIENCE_MS ? patience_ms : RECOVERY_PATIENCE_MS);
    on_recovery_check(signal, what, user);
}

static void on_hangup(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what, (void)user;
    reload();
}

/* ---- start ---- */

/* Creates an event base. Events that activate themselves delay other events by at most TURN_MS. */
static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL)
        return NULL;
    event_config_set_max_dispatch_interval(config, &(struct timeval){.tv_usec = TURN_MS * 1000}, -1, 0);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static void start_events(void)
{
    server.base = nl_memory_check(new_base());
    event_base_priority_init(server.base, SERVER_PRIORITIES);
    server.recovery = server_new_event(-1, 0, on_recovery_check, NULL);
    server.clock = server_new_event(-1, EV_PERSIST, on_clock, NULL);
    event_add(server.clock, &(struct timeval){.tv_sec = CLOCK_MS / 1000});
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        server.signals[i] =
            server_new_event(signals[i], EV_SIGNAL | EV_PERSIST, signals[i] == SIGHUP ? on_hangup : on_stop, NULL);
        event_priority_set(server.signals[i], SERVER_PRIORITY_SIGNALS);
        event_add(server.signals[i], NULL);
    }
}

static void start(void)
{
    const server_parts *parts = server.parts;
    start_events();
    flush_start();
    background_start(server.base, SERVER_PRIORITY_BACKGROUND);
    subscriptions_start();
    turns_start(server.base, SERVER_PRIORITY_TURN, flush_before_turn);
    clocks_start(parts->log);
    gaps_start(outputs_streams(), parts->log);
    counts_start();
    activation_start(server.settings->activation);
    recovery_watch(parts->recovering);
    accepting_start(parts->listeners, parts->listener_count, parts->control);
    if (parts->metrics_fd >= 0)
        metrics_start(parts->metrics_fd);
    server_block_signals(false);
    accepting_listen();
    nats_readers_start();
    file_inputs_start();
    journal_input_start();
    inherited_notify("READY=1");
    if (parts->on_ready != NULL)
        parts->on_ready();
}

/* ---- end ---- */

static void take_from_connection(connection *c, void *user)
{
    connection_take_arrived(c, *(const int64_t *)user);
}

static void drain_connection(connection *c, void *user)
{
    connection_drain(c, *(const int64_t *)user);
}

static void find_logging(connection *c, void *user)
{
    *(bool *)user |= !connection_is_over(c);
}

static void close_connection(connection *c, void *user)
{
    (void)user;
    connection_close(c);
}

/* Reads the bytes that the kernel has received from clients, while the outputs can be written. */
static void take_arrived(int64_t deadline_ns)
{
    /*
     * First read the bytes that each client has already sent. Otherwise, a client that keeps sending could use the time
     * for the other clients.
     */
    connections_visit(take_from_connection, &deadline_ns);
    connections_visit(drain_connection, &deadline_ns);
    datagrams_take_arrived();
}

static bool any_client_logs(void)
{
    bool found = false;
    connections_visit(find_logging, &found);
    return found;
}

/*
 * Reads the bytes that have arrived, and writes their records. Repeats this until the outputs can be written, or until
 * half of the remaining time has passed. The kernel of a client's host may keep further data until the socket of this
 * host has space; the server waits REST_MS for this data.
 */
static nl_status take_and_write_all(void)
{
    int64_t deadline_ns = nl_monotonic_ns() + ending_left_ms() / 2 * NS_PER_MS, rest_ns = 0;
    for (bool listening = true;;) {
        accepting_take_waiting();
        take_arrived(deadline_ns);
        bool blocked = outputs_are_blocked();
        nl_status status = outputs_settle();
        int64_t now_ns = nl_monotonic_ns();
        if (rest_ns == 0) /* more bytes may have arrived in the meantime */
            rest_ns = now_ns + REST_MS * NS_PER_MS;
        bool done = status == NL_OK && !blocked, rest = any_client_logs() && now_ns < rest_ns;
        if (done && !rest && listening) { /* run once more for clients that are just connecting */
            accepting_take_waiting();
            accepting_end();
            listening = false;
            continue;
        }
        if ((done && !rest) || now_ns >= deadline_ns)
            return status;
        if (done || status != NL_OK)
            poll(NULL, 0, done ? REST_MS / 4 : RETRY_MS);
    }
}

/*
 * Waits until subscribers have read their queues, so that no stream ends inside a record. Waits at most READERS_MAX_MS
 * without progress.
 */
static void let_requests_read(void)
{
    int64_t end_ns = nl_monotonic_ns() + ending_left_ms() / 2 * NS_PER_MS, progress_ns = nl_monotonic_ns();
    for (size_t minimum = SIZE_MAX;;) {
        size_t left = requests_send();
        int64_t now_ns = nl_monotonic_ns();
        if (left < minimum) {
            minimum = left;
            progress_ns = now_ns;
        }
        if (left == 0 || now_ns >= end_ns || now_ns - progress_ns >= READERS_MAX_MS * NS_PER_MS)
            return;
        poll(NULL, 0, READERS_MS);
    }
}

static void free_parts(void)
{
    accepting_free();
    metrics_free();
    datagrams_free();
    nats_readers_free();
    file_inputs_free();
    journal_input_free();
    server_block_signals(true); /* a second request to end must not kill the program */
    for (int i = 0; i < SIGNAL_COUNT; i++)
        event_free(server.signals[i]);
    event_free(server.clock);
    event_free(server.recovery);
    recovery_unwatch(server.parts->recovering);
    flush_free();
    background_free();
    turns_free();
    activation_free();
    gaps_free();
    event_base_free(server.base);
    settings_delete(server.reloaded);
    records_close_reject();
}

static int stop(void)
{
    if (!server.ending)
        begin_end();
    server.stopping = true;
    accepting_enable(false);
    int status = PROGRAM_DONE;
    if (take_and_write_all() != NL_OK) {
        program_error("%s; the latest records are lost", nl_error_message());
        status = PROGRAM_PROBLEM;
    } else {
        flush_acknowledge();
    }
    accepting_end();
    ending_enforce(server.settings->pid_file);
    connections_visit(close_connection, NULL);
    otlp_clients_close();
    subscriptions_deliver(nl_monotonic_ns() + ending_left_ms() / 4 * NS_PER_MS);
    let_requests_read();
    requests_close();
    subscriptions_free();
    counts_tick(INT64_MAX);
    datagrams_check_drops();
    gaps_end();
    nl_write(server_log(), NL_USAGE, "Netlogd.Stop",
             "RECORDS=%" PRIu64 " MALFORMED=%" PRIu64 " LOST=%" PRIu64 " BYTES=%" PRIu64 " CONNECTIONS=%" PRIu64
             " REFUSED=%" PRIu64,
             counts_get(COUNT_RECORDS), counts_get(COUNT_MALFORMED), gaps_count_lost(), counts_get(COUNT_BYTES),
             counts_get(COUNT_CONNECTIONS), counts_get(COUNT_REFUSED));
    free_parts();
    return status;
}

int server_run(const server_parts *parts)
{
    server.parts = parts;
    server.settings = parts->settings;
    server.start_ns = nl_monotonic_ns();
    program_host(server.host, sizeof server.host);
    if (records_open_reject(server.settings->reject) != NL_OK) {
        program_print_error();
        return PROGRAM_PROBLEM;
    }
    start();
    event_base_dispatch(server.base);
    return stop();
}
