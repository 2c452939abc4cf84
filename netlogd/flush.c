#include "config.h"

#include "flush.h"

#include "base/monotonic.h"
#include "connection.h"
#include "connections.h"
#include "datagrams.h"
#include "file_inputs.h"
#include "journal_input.h"
#include "nats_reader.h"
#include "otlp_client.h"
#include "output/outputs.h"
#include "program/program.h"
#include "server.h"
#include "turns.h"

enum {
    RETRY_MS = 250,
    REPORT_SECONDS = 10, /* minimum time between two reports of a pause */
    LATE_MS = 10,        /* interval between checks whether records have waited too long */
    LATE_NS = 2000000, /* records are late after FLUSH_SHARE times the duration of a flush, but not before this time */
    LATE_MAX_NS = 50000000, /* records are late after this time in any case */
    FLUSH_SHARE = 5,        /* flushes may use at most 1/FLUSH_SHARE of the time */
};

static struct {
    struct event *flush;  /* flushes when no client has sent bytes */
    struct event *late;   /* flushes while clients send bytes without a pause */
    struct event *retry;  /* flushes again while an output is blocked */
    struct event *settle; /* settles outputs whose option fsync= is an interval */
    int64_t since_ns;     /* time at which the first unflushed record was put; 0: all records are flushed */
    bool at_once;         /* some of the unflushed records came from clients that did not wait for their turns */
    int64_t latest_ns;    /* duration of the latest flush */
    int64_t duration_ns;  /* the shorter duration of the latest two flushes, because one may have been preempted */
    int64_t ended_ns;
    bool paused;
    bool reported;       /* the current pause has been reported */
    int64_t reported_ns; /* time of the latest report of a pause; 0: no report */
} flush;

static void pause_connection(connection *c, void *user)
{
    connection_pause(c, *(const bool *)user);
}

static void set_paused(bool pause)
{
    flush.paused = pause;
    connections_visit(pause_connection, &pause);
    datagrams_pause(pause);
    nats_readers_pause(pause);
}

/*
 * Reports a pause once. Limits the rate of reports, because a slow reader of an output that is a pipe causes many
 * pauses.
 */
static void report_pause(void)
{
    int64_t now_ns = nl_monotonic_ns();
    if (flush.reported || (flush.reported_ns != 0 && now_ns - flush.reported_ns < REPORT_SECONDS * NL_NS_PER_SECOND))
        return;
    program_error("%s; clients wait until netlogd can write to the output", nl_error_message());
    flush.reported = true;
    flush.reported_ns = now_ns;
}

static void pause_clients(void)
{
    if (flush.paused)
        return;
    report_pause();
    set_paused(true);
    event_add(flush.retry, &(struct timeval){.tv_usec = RETRY_MS * 1000});
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    if (outputs_settle() != NL_OK) {
        event_add(flush.retry, &(struct timeval){.tv_usec = RETRY_MS * 1000});
        report_pause();
        return;
    }
    if (flush.reported)
        program_error("netlogd can write to all outputs again");
    flush.reported = false;
    flush_acknowledge();
    set_paused(false);
}

void flush_acknowledge(void)
{
    for (connection *c; (c = connections_next_to_acknowledge()) != NULL;)
        connection_acknowledge(c);
    nats_readers_acknowledge();
    otlp_clients_settled();
    file_inputs_acknowledge();
    journal_input_acknowledge();
}

static void flush_all(void)
{
    flush.since_ns = 0;
    flush.at_once = false;
    if (flush.paused && !server_is_stopping())
        return;
    int64_t began_ns = nl_monotonic_ns();
    nl_status status = outputs_flush();
    flush.ended_ns = nl_monotonic_ns();
    int64_t duration_ns = flush.ended_ns - began_ns;
    flush.duration_ns = duration_ns < flush.latest_ns ? duration_ns : flush.latest_ns;
    flush.latest_ns = duration_ns;
    if (status != NL_OK) {
        pause_clients();
    } else if (outputs_are_settled()) {
        flush_acknowledge();
    } else {
        int left_ms = outputs_settle_ms();
        event_add(flush.settle, &(struct timeval){.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000});
    }
}

bool flush_now(void)
{
    flush_all();
    return !flush.paused;
}

static void on_flush(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    turns_idle();
    flush_all();
}

void flush_settle(void)
{
    if (flush.paused)
        return;
    if (outputs_settle() != NL_OK)
        pause_clients();
    else
        flush_acknowledge();
}

static void on_settle(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    flush_settle();
}

static bool is_late(void)
{
    if (flush.since_ns == 0)
        return false;
    int64_t late_ns = FLUSH_SHARE * flush.duration_ns;
    late_ns = late_ns < LATE_NS ? LATE_NS : late_ns > LATE_MAX_NS ? LATE_MAX_NS : late_ns;
    return nl_monotonic_ns() - flush.since_ns >= late_ns;
}

/* Flushes with the priority of clients, because the flush event may not become active while clients send bytes. */
static void on_late(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    if (is_late())
        flush_all();
    else if (flush.since_ns != 0)
        event_add(flush.late, &(struct timeval){.tv_usec = LATE_MS * 1000});
}

void flush_before_turn(void)
{
    bool may_flush = nl_monotonic_ns() - flush.ended_ns >= (FLUSH_SHARE - 1) * flush.duration_ns;
    if ((flush.at_once && may_flush) || is_late())
        flush_all();
}

void flush_request(bool at_once)
{
    flush.at_once |= at_once;
    if (flush.since_ns == 0) {
        flush.since_ns = nl_monotonic_ns();
        if (!event_pending(flush.late, EV_TIMEOUT, NULL))
            event_add(flush.late, &(struct timeval){.tv_usec = LATE_MS * 1000});
    }
    if (outputs_are_blocked())
        pause_clients();
    else if (outputs_are_due() || is_late())
        flush_all();
    else if (!server_is_stopping())
        event_active(flush.flush, EV_TIMEOUT, 0);
}

bool flush_is_paused(void)
{
    return flush.paused;
}

void flush_start(void)
{
    flush.flush = server_new_event(-1, 0, on_flush, NULL);
    event_priority_set(flush.flush, SERVER_PRIORITY_FLUSH);
    flush.late = server_new_event(-1, 0, on_late, NULL);
    flush.retry = server_new_event(-1, 0, on_retry, NULL);
    flush.settle = server_new_event(-1, 0, on_settle, NULL);
}

void flush_free(void)
{
    event_free(flush.flush);
    event_free(flush.late);
    event_free(flush.retry);
    event_free(flush.settle);
}
