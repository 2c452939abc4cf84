#include "config.h"

#include "server.h"

#include "accepting.h"
#include "background.h"
#include "base/monotonic.h"
#include "clocks.h"
#include "connection.h"
#include "datagrams.h"
#include "service/ending.h"
#include "gaps.h"
#include "http.h"
#include "service/http_host.h"
#include "service/inherited.h"
#include "metrics.h"
#include "nats_reader.h"
#include "base/error.h"
#include "program/program.h"
#include "service/confine.h"
#include "recovery.h"
#include "reload.h"
#include "request.h"
#include "stream_limit.h"
#include "text_limit.h"
#include "subscription.h"
#include "turns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    /*
     * Signals, then clients that are served at once, old and new alike (libevent's default, which listeners have), then
     * the turns of the others (turns.h) and datagrams, then the output, which is flushed when none of them has anything
     * to read, then work for requests.
     */
    PRIORITY_SIGNALS = 0,
    PRIORITY_FLUSH = 5,
    PRIORITY_BACKGROUND = 6,
    PRIORITIES = 7, /* the default is half of that */
    TURN_MS = 10,   /* between looks for who else wants something, each of which costs with the number of clients */
    RETRY_MS = 250,
    LATE_MS = 10,           /* between looks whether the output waits for too long, while something is to be flushed */
    LATE_NS = 2000000,      /* after which the output does not wait any longer until clients have nothing to be read, */
    LATE_MAX_NS = 50000000, /* or so much later, where flushing takes long: */
    FLUSH_SHARE = 5,        /* of a time that is no longer than so many flushes, one is spent on flushing at most */
    ACTIVATION_MS = 500,
    CLOCK_MS = 1000,
    RECOVERY_MS = 5,        /* between looks, at the end, whether the recovery under way is over; */
    READERS_MS = 5,         /* and whether subscribers have read what they are sent */
    READERS_MOST_MS = 2000, /* without that anybody reads */
    REST_MS = 20,           /* for the rest of what clients have sent */
    NS_PER_MS = 1000000,
    TELL_SECONDS = 10, /* the least between two times that the same is said of outputs */
};

static struct timeval milliseconds(int count)
{
    return (struct timeval){.tv_sec = count / 1000, .tv_usec = count % 1000 * 1000};
}

static void pause_connection(connection *c, void *user)
{
    connection_pause(c, *(const bool *)user);
}

static void set_paused(server *srv, bool pause)
{
    srv->paused = pause;
    connections_visit(srv->connections, pause_connection, &pause);
    for (datagrams *d = srv->datagrams; d != NULL; d = datagrams_next(d))
        datagrams_pause(d, pause);
    for (nats_reader *r = srv->nats_readers; r != NULL; r = nats_reader_next(r))
        nats_reader_pause(r, pause);
}

/* Says once of each pause that there is one, and not too often: who reads a pipe slowly makes one after the other. */
static void tell_pause(server *srv)
{
    int64_t now_ns = nl_monotonic_ns();
    if (srv->pause_told || (srv->told_ns != 0 && now_ns - srv->told_ns < TELL_SECONDS * NL_NS_PER_SECOND))
        return;
    program_error("%s; waiting until it can be written, nothing is lost", nl_error_message());
    srv->pause_told = true;
    srv->told_ns = now_ns;
}

/* The output cannot be written: no client is read until it can, so that nothing is lost and memory does not grow. */
static void pause_clients(server *srv)
{
    if (srv->paused)
        return;
    tell_pause(srv);
    set_paused(srv, true);
    struct timeval interval = milliseconds(RETRY_MS);
    event_add(srv->retry_event, &interval);
}

/* Everything that was decoded is written. */
static void acknowledge_all(server *srv)
{
    for (connection *c; (c = connections_next_to_acknowledge(srv->connections)) != NULL;)
        connection_acknowledge(c);
    for (nats_reader *r = srv->nats_readers; r != NULL; r = nats_reader_next(r))
        nats_reader_acknowledge(r);
}

static void send_activation(connection *c, void *user)
{
    (void)user;
    connection_send_activation(c);
}

static void on_activation(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    if (activation_look(srv->activation))
        connections_visit(srv->connections, send_activation, NULL);
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    if (outputs_settle(srv->outputs) != NL_OK) {
        struct timeval interval = milliseconds(RETRY_MS);
        event_add(srv->retry_event, &interval);
        tell_pause(srv);
        return;
    }
    if (srv->pause_told)
        program_error("all can be written again");
    srv->pause_told = false;
    acknowledge_all(srv);
    set_paused(srv, false);
}

/* Writes what was put, at a moment when no client's block is read in part. */
static void flush_and_acknowledge(server *srv)
{
    srv->wrote_ns = 0;
    srv->wrote_at_once = false;
    if (srv->paused && !srv->stopping)
        return;
    int64_t began_ns = nl_monotonic_ns();
    nl_status status = outputs_flush(srv->outputs);
    srv->flushed_ns = nl_monotonic_ns();
    int64_t took_ns = srv->flushed_ns - began_ns;
    srv->flush_took_ns = took_ns < srv->flush_latest_ns ? took_ns : srv->flush_latest_ns;
    srv->flush_latest_ns = took_ns;
    if (status != NL_OK) {
        pause_clients(srv);
    } else if (outputs_are_settled(srv->outputs)) {
        acknowledge_all(srv);
    } else {
        struct timeval left = milliseconds(outputs_settle_ms(srv->outputs));
        event_add(srv->settle_event, &left);
    }
}

bool server_flush(server *srv)
{
    flush_and_acknowledge(srv);
    return !srv->paused;
}

static void on_flush(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    turns_idle(srv->turns);
    flush_and_acknowledge(srv);
}

static void on_settle(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    if (srv->paused)
        return;
    if (outputs_settle(srv->outputs) != NL_OK)
        pause_clients(srv);
    else
        acknowledge_all(srv);
}

/* Whether what was put waits for too long: there may always be somebody who is to be read. */
static bool is_late(const server *srv)
{
    if (srv->wrote_ns == 0)
        return false;
    int64_t late_ns = FLUSH_SHARE * srv->flush_took_ns;
    late_ns = late_ns < LATE_NS ? LATE_NS : late_ns > LATE_MAX_NS ? LATE_MAX_NS : late_ns;
    return nl_monotonic_ns() - srv->wrote_ns >= late_ns;
}

/* The event of flush has a priority at which it may never come while others have something to be read. */
static void on_late(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    if (is_late(srv))
        flush_and_acknowledge(srv);
    else if (srv->wrote_ns != 0)
        event_add(srv->late_event, &(struct timeval){.tv_usec = LATE_MS * 1000});
}

/* Before a turn of a client that waited: those that did not wait are acknowledged first. */
static void before_turn(void *user)
{
    server *srv = user;
    bool may_flush = nl_monotonic_ns() - srv->flushed_ns >= (FLUSH_SHARE - 1) * srv->flush_took_ns;
    if ((srv->wrote_at_once && may_flush) || is_late(srv))
        flush_and_acknowledge(srv);
}

void server_wrote(server *srv)
{
    if (srv->wrote_ns == 0) {
        srv->wrote_ns = nl_monotonic_ns();
        if (!event_pending(srv->late_event, EV_TIMEOUT, NULL))
            event_add(srv->late_event, &(struct timeval){.tv_usec = LATE_MS * 1000});
    }
    if (outputs_are_blocked(srv->outputs))
        pause_clients(srv);
    else if (outputs_are_due(srv->outputs) || is_late(srv))
        flush_and_acknowledge(srv);
    else if (!srv->stopping)
        event_active(srv->flush_event, EV_TIMEOUT, 0);
}

void server_reject(server *srv, nl_string malformed)
{
    if (srv->reject_fd < 0)
        return;
    /* Best effort, and never in the way of the log itself. */
    struct nl_buffer line = {0};
    nl_buffer_append(&line, malformed.data, malformed.size);
    nl_buffer_append(&line, "\n", 1);
    if (write(srv->reject_fd, line.data, line.size) < 0)
        nl_write(srv->log, NL_WARNING, "Netlogd.RejectFailed", "REASON=%s", strerror(errno));
    nl_buffer_free(&line);
}

static void tell_sum(server *srv, server_sum *sum)
{
    if (sum->count == 0)
        return;
    nl_write(srv->log, NL_WARNING, sum->event, "PEER=%s REASON=%s COUNT=%" PRIu64, sum->peer, sum->reason, sum->count);
    sum->count = 0;
    sum->told_ns = nl_monotonic_ns();
}

void server_add(server *srv, server_sum *sum, const char *peer, const char *reason)
{
    sum->count++;
    snprintf(sum->peer, sizeof sum->peer, "%s", peer);
    sum->reason = reason;
    if (sum->told_ns == 0 || nl_monotonic_ns() - sum->told_ns >= NL_NS_PER_SECOND)
        tell_sum(srv, sum);
}

static void check_time(connection *c, void *user)
{
    connection_check_time(c, *(const int64_t *)user);
}

static void on_clock(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    int64_t now_ns = nl_monotonic_ns();
    srv->rate = (double)(srv->counts.records - srv->rate_records) * 1e9 / (double)(now_ns - srv->rate_ns);
    srv->rate_records = srv->counts.records;
    srv->rate_ns = now_ns;
    tell_sum(srv, &srv->refused);
    tell_sum(srv, &srv->expanding);
    tell_sum(srv, &srv->displaced);
    tell_sum(srv, &srv->over_rate);
    tell_sum(srv, &srv->foreign);
    clocks_tell(srv->clocks);
    gaps_check(srv->gaps, now_ns);
    for (char call[CONFINE_CALL_SIZE]; confine_report_refused(call);)
        nl_write(srv->log, NL_WARNING, "Netlogd.CallRefused", "CALL=%s", call);
    if (outputs_have_seal_due(srv->outputs))
        on_settle(-1, 0, srv);
    if (!srv->paused)
        connections_visit(srv->connections, check_time, &now_ns);
}

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

void server_block_signals(bool block)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < 3; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void on_recovery_looked_at(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    server *srv = user;
    struct timeval interval = milliseconds(RECOVERY_MS);
    if (recovery_is_over(srv->recovering))
        event_base_loopbreak(srv->base);
    else
        event_add(srv->recovery_event, &interval);
}

static void begin_end(server *srv)
{
    srv->ending = true;
    inherited_notify("STOPPING=1");
    ending_begin(srv->settings->stop_s);
}

/* Clients are served until the recovery is over: it may be one of them. Who asks twice does not want to wait. */
static void on_stop(evutil_socket_t signal, short what, void *user)
{
    server *srv = user;
    int64_t patience_ms = 0;
    if (!srv->ending) {
        begin_end(srv);
        patience_ms = ending_left_ms() / 4;
    }
    recovery_end(srv->recovering, patience_ms < RECOVERY_PATIENCE_MS ? patience_ms : RECOVERY_PATIENCE_MS);
    on_recovery_looked_at(signal, what, user);
}

const char *server_reload(server *srv)
{
    if (srv->ending)
        return "it is ending";
    char state[64];
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, nl_monotonic_ns() / 1000);
    inherited_notify(state);
    const char *reason = reload(srv) ? NULL : srv->reload_failure;
    inherited_notify("READY=1");
    if (outputs_reopen(srv->outputs) != NL_OK) {
        reason = nl_error_message();
        program_error("%s; going on with the old one", reason);
    }
    for (size_t i = 0; outputs_get(srv->outputs, i) != NULL; i++)
        nl_write(srv->log, NL_USAGE, "Netlogd.Reopen", "FILE=%s",
                 output_get_options(outputs_get(srv->outputs, i))->target);
    return reason;
}

static void on_hangup(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what;
    server_reload(user);
}

static struct event *new_event(server *srv, evutil_socket_t fd, short what, event_callback_fn callback)
{
    struct event *event = event_new(srv->base, fd, what, callback, srv);
    if (event == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return event;
}

static struct event *repeat(server *srv, int interval_ms, event_callback_fn callback)
{
    struct timeval interval = milliseconds(interval_ms);
    struct event *event = new_event(srv, -1, EV_PERSIST, callback);
    event_add(event, &interval);
    return event;
}

/*
 * One whose event makes itself active again (what is within a channel, the past of a subscriber) would otherwise be
 * called again and again before anybody else is looked for, even a signal.
 */
static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL)
        return NULL;
    struct timeval turn = milliseconds(TURN_MS);
    event_config_set_max_dispatch_interval(config, &turn, -1, 0);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static void start_server(server *srv, const server_extras *extras)
{
    srv->base = new_base();
    srv->read_buffer = malloc(SERVER_READ_SIZE);
    if (srv->base == NULL || srv->read_buffer == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    event_base_priority_init(srv->base, PRIORITIES);
    srv->flush_event = new_event(srv, -1, 0, on_flush);
    event_priority_set(srv->flush_event, PRIORITY_FLUSH);
    srv->late_event = new_event(srv, -1, 0, on_late);
    srv->retry_event = new_event(srv, -1, 0, on_retry);
    srv->settle_event = new_event(srv, -1, 0, on_settle);
    srv->recovering = extras->recovering;
    srv->recovery_event = new_event(srv, -1, 0, on_recovery_looked_at);
    srv->background = background_new(srv->base, PRIORITY_BACKGROUND);
    srv->subscriptions = subscriptions_new(srv);
    srv->turns = turns_new(srv->base, SERVER_TURN_PRIORITY, before_turn, srv);
    srv->started_ns = srv->rate_ns = nl_monotonic_ns();
    accepting_start(srv, extras->control);
    if (extras->metrics_fd >= 0)
        srv->metrics = metrics_start(srv, extras->metrics_fd);
    if (srv->metrics != NULL)
        http_host_look_up();
    srv->clock_event = repeat(srv, CLOCK_MS, on_clock);
    if (srv->settings->activation != NULL)
        srv->activation_event = repeat(srv, ACTIVATION_MS, on_activation);
    for (int i = 0; i < 3; i++) {
        event_callback_fn callback = signals[i] == SIGHUP ? on_hangup : on_stop;
        srv->signals[i] = new_event(srv, signals[i], EV_SIGNAL | EV_PERSIST, callback);
        event_priority_set(srv->signals[i], PRIORITY_SIGNALS);
        event_add(srv->signals[i], NULL);
    }
    server_block_signals(false);
    accepting_listen(srv);
    for (size_t i = 0; i < srv->settings->listen_count; i++)
        if (srv->settings->listen[i].nats != NULL)
            nats_reader_new(srv, srv->settings->listen[i].nats, srv->settings->listen[i].url);
}

static void take_from_connection(connection *c, void *user)
{
    connection_take_what_came(c, *(const int64_t *)user);
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

/* What the kernel has taken from clients for us is taken over; all while the output can be written. */
static void take_what_came(server *srv, int64_t deadline_ns)
{
    /* First what each has sent already, so that one who goes on sending does not take the others' time. */
    connections_visit(srv->connections, take_from_connection, &deadline_ns);
    connections_visit(srv->connections, drain_connection, &deadline_ns);
    for (datagrams *d = srv->datagrams; d != NULL; d = datagrams_next(d))
        datagrams_take_what_came(d);
}

static bool somebody_logs(const server *srv)
{
    bool found = false;
    connections_visit(srv->connections, find_logging, &found);
    return found;
}

/*
 * The same, and writes it, again and again while an output is not to be written, until the time is over. The clients'
 * kernels may hold the rest of what they were given until there is room here: they get a moment for that.
 */
static nl_status take_and_write_all(server *srv)
{
    int64_t deadline_ns = nl_monotonic_ns() + ending_left_ms() / 2 * NS_PER_MS, rest_ns = 0;
    for (bool listening = true;;) {
        accepting_take_waiting(srv);
        take_what_came(srv, deadline_ns);
        bool blocked = outputs_are_blocked(srv->outputs);
        nl_status status = outputs_settle(srv->outputs);
        int64_t now_ns = nl_monotonic_ns();
        if (rest_ns == 0) /* what came early in this pass may have been followed by more */
            rest_ns = now_ns + REST_MS * NS_PER_MS;
        bool done = status == NL_OK && !blocked, rest = somebody_logs(srv) && now_ns < rest_ns;
        if (done && !rest && listening) { /* once more for who comes just now */
            accepting_take_waiting(srv);
            accepting_end(srv);
            listening = false;
            continue;
        }
        if ((done && !rest) || now_ns >= deadline_ns)
            return status;
        if (done || status != NL_OK)
            poll(NULL, 0, done ? REST_MS / 4 : RETRY_MS);
    }
}

/* All that begins what a server does, and what it has for that. */
static void free_parts(server *srv)
{
    accepting_free(srv);
    http_free(srv->metrics);
    while (srv->datagrams != NULL) {
        datagrams *d = srv->datagrams;
        srv->datagrams = datagrams_next(d);
        datagrams_free(d);
    }
    while (srv->nats_readers != NULL) {
        nats_reader *r = srv->nats_readers;
        srv->nats_readers = nats_reader_next(r);
        nats_reader_free(r);
    }
    server_block_signals(true); /* asked again to end, it does not end at once */
    for (int i = 0; i < 3; i++)
        event_free(srv->signals[i]);
    event_free(srv->flush_event);
    event_free(srv->late_event);
    event_free(srv->retry_event);
    event_free(srv->settle_event);
    event_free(srv->recovery_event);
    event_free(srv->clock_event);
    if (srv->activation_event != NULL)
        event_free(srv->activation_event);
    background_free(srv->background);
    turns_free(srv->turns);
    event_base_free(srv->base);
    activation_free(srv->activation);
    clocks_free(srv->clocks);
    gaps_free(srv->gaps);
    connections_free(srv->connections);
    stream_limit_free(srv->stream_limit);
    text_limit_free(srv->text_limit);
    settings_delete(srv->reloaded);
    free(srv->read_buffer);
    if (srv->reject_fd >= 0)
        close(srv->reject_fd);
}

/* Subscribers get what was delivered to them while they go on reading: a stream is not to end within a record. */
static void let_requests_read(server *srv)
{
    int64_t end_ns = nl_monotonic_ns() + ending_left_ms() / 2 * NS_PER_MS, read_ns = nl_monotonic_ns();
    for (size_t least = SIZE_MAX;;) {
        size_t left = 0;
        for (request *r = srv->requests; r != NULL; r = r->next) {
            if (request_queued(r) > 0)
                request_send(r);
            if (r->subscription != NULL)
                subscription_drained(r->subscription);
            left += request_queued(r);
        }
        int64_t now_ns = nl_monotonic_ns();
        if (left < least) {
            least = left;
            read_ns = now_ns;
        }
        if (left == 0 || now_ns >= end_ns || now_ns - read_ns >= READERS_MOST_MS * NS_PER_MS)
            return;
        poll(NULL, 0, READERS_MS);
    }
}

static int stop(server *srv)
{
    if (!srv->ending)
        begin_end(srv);
    srv->stopping = true;
    accepting_enable(srv, false);
    int status = PROGRAM_DONE;
    if (take_and_write_all(srv) != NL_OK) {
        program_error("%s; the last records are lost", nl_error_message());
        status = PROGRAM_PROBLEM;
    } else {
        acknowledge_all(srv);
    }
    accepting_end(srv);
    ending_enforce(srv->settings->pid_file);
    connections_visit(srv->connections, close_connection, NULL);
    subscriptions_deliver(srv->subscriptions, nl_monotonic_ns() + ending_left_ms() / 4 * NS_PER_MS);
    let_requests_read(srv);
    while (srv->requests != NULL)
        request_close(srv->requests);
    subscriptions_free(srv->subscriptions);
    tell_sum(srv, &srv->refused);
    tell_sum(srv, &srv->expanding);
    tell_sum(srv, &srv->displaced);
    tell_sum(srv, &srv->over_rate);
    tell_sum(srv, &srv->foreign);
    gaps_end(srv->gaps);
    nl_write(srv->log, NL_USAGE, "Netlogd.Stop",
             "RECORDS=%" PRIu64 " MALFORMED=%" PRIu64 " LOST=%" PRIu64 " BYTES=%" PRIu64 " CONNECTIONS=%" PRIu64
             " REFUSED=%" PRIu64,
             srv->counts.records, srv->counts.malformed, gaps_count_lost(srv->gaps), srv->counts.bytes,
             srv->counts.connections, srv->counts.refused);
    free_parts(srv);
    return status;
}

int server_run(const settings *s, server_read_settings read_settings, void *read_user, listener *listeners,
               size_t listener_count, const server_extras *extras, outputs *out, nl_log *log)
{
    server srv = {.settings = s,
                  .read_settings = read_settings,
                  .read_user = read_user,
                  .outputs = out,
                  .log = log,
                  .sockets = listeners,
                  .listener_count = listener_count,
                  .reject_fd = -1};
    if (s->reject != NULL) {
        srv.reject_fd = open(s->reject, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (srv.reject_fd < 0) {
            program_error("open %s: %s", s->reject, strerror(errno));
            return PROGRAM_PROBLEM;
        }
    }
    srv.refused.event = "Netlogd.Refused";
    srv.expanding.event = "Netlogd.Expanding";
    srv.displaced.event = "Netlogd.Displaced";
    srv.over_rate.event = "Netlogd.OverRate";
    srv.foreign.event = "Netlogd.Foreign";
    srv.streams = outputs_streams(out);
    program_host(srv.host, sizeof srv.host);
    srv.stream_limit = stream_limit_new();
    srv.text_limit = text_limit_new();
    srv.connections = connections_new();
    srv.clocks = clocks_new(log);
    srv.gaps = gaps_new(srv.streams, log);
    srv.activation = activation_new(s->activation);
    activation_look(srv.activation);
    start_server(&srv, extras);
    inherited_notify("READY=1");
    if (extras->on_ready != NULL)
        extras->on_ready();
    event_base_dispatch(srv.base);
    return stop(&srv);
}
