#include "config.h"

#include "otlp_client.h"

#include "accepting.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "connections.h"
#include "counts.h"
#include "flush.h"
#include "otlp_session.h"
#include "otlp_spans.h"
#include "output/outputs.h"
#include "peer_host.h"
#include "server.h"
#include "service/allowance.h"
#include "turns.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    READ_SIZE = 256 << 10,
    UNSENT_MAX = 64 << 10, /* netlogd does not read from a client whose responses have more unsent bytes */
    WORK_PER_BYTE = 10,
    WORK_PER_RECORD = 1000,
    TLS_WORK = 500000, /* units of work of a TLS handshake */
    RETRY_S = 1,       /* time after which a client may send a rejected request again */
};

struct otlp_client {
    otlp_client *next, **link; /* in the list of clients */
    client_entry entry;
    const listener *at;
    nl_channel channel;
    otlp_session *session;
    otlp_sender sender;
    struct event *readable, *writable;
    turn turn;
    allowance allowance; /* allowance of records, for max-rate */
    nl_buffer out;
    size_t sent; /* bytes of `out` that were sent */
    size_t held;
    bool at_once;     /* the client was served without waiting for its turn */
    bool ready;       /* the TLS handshake is complete, or TLS is not used */
    bool waits;       /* the session waits until records are settled */
    bool ending;      /* further bytes are dropped */
    bool stopped;     /* the sending half was closed */
    int64_t since_ns; /* time at which the client became silent, or at which its incomplete request began */
    int64_t connected_ns;
    uint64_t requests, records, rejected;
    char peer[80];
};

static otlp_client *clients;
static size_t all_held;
static char read_buffer[READ_SIZE];

static void otlp_client_close(otlp_client *c)
{
    nl_write(server_log(), NL_DEBUG, "Netlogd.Close", "PEER=%s RECORDS=%llu", c->peer, (unsigned long long)c->records);
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    all_held -= c->held;
    client_table_remove(accepting_get_clients(), &c->entry);
    turns_leave(&c->turn);
    event_free(c->readable);
    event_free(c->writable);
    c->session->kind->close(c->session);
    free(c->session);
    nl_channel_close(&c->channel);
    nl_buffer_free(&c->out);
    free(c);
}

static void otlp_close_entry(client_entry *entry)
{
    otlp_client_close((otlp_client *)((char *)entry - offsetof(otlp_client, entry)));
}

/* ---- for sessions ---- */

void otlp_client_send(otlp_client *c, nl_string bytes)
{
    if (c->sent == c->out.size)
        c->sent = c->out.size = 0;
    nl_buffer_append(&c->out, bytes.data, bytes.size);
    event_active(c->writable, EV_WRITE, 0);
}

void otlp_client_end(otlp_client *c)
{
    c->ending = true;
    c->since_ns = nl_monotonic_ns();
}

bool otlp_client_is_too_much(const otlp_client *c, size_t more)
{
    return connections_get_held() + requests_get_queued() + all_held - c->held + more > server_settings()->max_memory;
}

bool otlp_client_is_late(const otlp_client *c, int64_t since_ns)
{
    (void)c;
    unsigned limit_s = server_settings()->record_s;
    return limit_s > 0 && nl_monotonic_ns() - since_ns > limit_s * NL_NS_PER_SECOND;
}

void otlp_client_await(otlp_client *c)
{
    c->waits = true;
    flush_request(c->at_once);
}

static otlp_result reject(bool throttled, double wait_s, const char *message)
{
    return (otlp_result){
        .code = OTLP_UNAVAILABLE, .throttled = throttled, .wait_s = (unsigned)wait_s + RETRY_S, .message = message};
}

otlp_result otlp_client_export(otlp_client *c, const otlp_request *request, nl_string body)
{
    double rate = (double)server_settings()->max_rate;
    int64_t now_ns = nl_monotonic_ns();
    c->requests++;
    allowance_spend(&c->allowance, rate, now_ns, 0);
    if (server_is_stopping())
        return reject(false, 0, "netlogd is shutting down");
    if (flush_is_paused() || outputs_are_blocked())
        return reject(false, 0, "netlogd cannot write to an output");
    if (rate > 0 && c->allowance.left < 0)
        return reject(true, -c->allowance.left / rate, "more records than max-rate allows");
    otlp_result result = otlp_export(request, body, &c->sender);
    allowance_spend(&c->allowance, rate, now_ns, result.records);
    c->records += result.records;
    c->rejected += result.rejected;
    if (result.accepted > 0)
        client_table_heard(accepting_get_clients(), &c->entry, now_ns);
    turns_charge(&c->turn, WORK_PER_BYTE * (uint64_t)body.size + WORK_PER_RECORD * result.records);
    return result;
}

/* ---- reading and writing ---- */

/* Continues reading from the client, unless its session waits for the outputs, or too much of the replies is unsent. */
static void otlp_client_continue(otlp_client *c)
{
    size_t held = c->session->kind->held(c->session) + nl_channel_held(&c->channel) + c->out.capacity;
    all_held += held - c->held;
    c->held = held;
    bool waits = c->session->busy && !c->session->kind->reads_while_busy;
    if ((waits || c->out.size - c->sent > UNSENT_MAX) && !c->ending)
        event_del(c->readable);
    else if (nl_channel_has_more(&c->channel) || (c->session->more && !c->ending))
        turns_wait(&c->turn, false);
    else
        event_add(c->readable, NULL);
}

/* Reads from the client, and passes the bytes to the session. Returns false if the connection has ended. */
static bool otlp_client_read(otlp_client *c)
{
    if (c->session->more && !c->ending)
        c->session->kind->feed(c->session, "", 0);
    if (c->session->busy && !c->session->kind->reads_while_busy && !c->ending)
        return true;
    ssize_t got = nl_channel_read(&c->channel, read_buffer, READ_SIZE);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got < 0 && errno == EPROTO) {
        counts_add(COUNT_REFUSED, !c->ready);
        nl_channel_fail(&c->channel, EPROTO);
        nl_write(server_log(), NL_WARNING, "Netlogd.Tls", "PEER=%s REASON=%s", c->peer, nl_error_message());
    }
    if (got <= 0)
        return false;
    c->ready = true;
    counts_add(COUNT_BYTES, (uint64_t)got);
    turns_charge(&c->turn, TURNS_READ_WORK + (uint64_t)got);
    if (c->ending)
        return true;
    bool midway = c->session->midway;
    c->session->kind->feed(c->session, read_buffer, (size_t)got);
    if (!midway || !c->session->midway)
        c->since_ns = nl_monotonic_ns();
    return true;
}

static void otlp_client_serve(otlp_client *c, bool at_once)
{
    c->at_once = at_once;
    if (otlp_client_read(c))
        otlp_client_continue(c);
    else
        otlp_client_close(c);
}

static void on_otlp_turn(void *user)
{
    otlp_client_serve(user, false);
}

static void on_otlp_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    otlp_client *c = user;
    if (turns_may_begin(&c->turn)) {
        otlp_client_serve(c, true);
    } else {
        event_del(c->readable);
        turns_wait(&c->turn, true);
    }
}

static void on_otlp_writable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    otlp_client *c = user;
    while (c->sent < c->out.size) {
        ssize_t sent = nl_channel_write(&c->channel, c->out.data + c->sent, c->out.size - c->sent);
        if (sent < 0 && errno == EAGAIN) {
            event_add(c->writable, NULL);
            return;
        }
        if (sent <= 0) {
            otlp_client_close(c);
            return;
        }
        c->sent += (size_t)sent;
    }
    if (c->out.size > UNSENT_MAX) {
        nl_buffer_free(&c->out);
        c->sent = 0;
        otlp_client_continue(c);
    }
    if (c->ending && !c->stopped) {
        nl_channel_end(&c->channel);
        c->stopped = true;
    }
}

void otlp_clients_settled(void)
{
    bool sync = false;
    for (size_t i = 0; outputs_get(i) != NULL; i++)
        sync = sync || output_get_options(outputs_get(i))->sync_ns != OUTPUT_SYNC_NEVER;
    otlp_spans_save(sync);
    for (otlp_client *c = clients, *next; c != NULL; c = next) {
        next = c->next;
        if (!c->waits)
            continue;
        c->waits = false;
        c->since_ns = nl_monotonic_ns();
        c->session->kind->settled(c->session);
        otlp_client_continue(c);
        if (server_is_stopping())
            on_otlp_writable(-1, 0, c);
    }
}

/* ---- clients ---- */

void otlp_client_new(int fd, const listener *at, const struct sockaddr *peer)
{
    const otlp_session_kind *kind = at->asked->grpc ? &otlp_grpc : &otlp_http1;
    nl_tls *tls = at->asked->tls;
    otlp_client *c = nl_memory_check(calloc(1, sizeof *c));
    c->channel.fd = fd;
    c->at = at;
    c->ready = tls == NULL;
    c->connected_ns = c->since_ns = nl_monotonic_ns();
    c->turn = (turn){.run = on_otlp_turn, .user = c};
    c->allowance = allowance_new((double)server_settings()->max_rate, c->connected_ns);
    if (tls != NULL && !nl_channel_secure(&c->channel, tls, NULL))
        nl_memory_failed();
    if (tls != NULL)
        turns_charge(&c->turn, TLS_WORK);
    listener_address_text(peer, c->peer, sizeof c->peer);
    c->sender.peer = c->peer;
    c->sender.channel = &c->channel;
    c->sender.hosts_certified = at->asked->hosts_certified;
    peer_address_host(peer, c->sender.host);
    c->session = nl_memory_check(calloc(1, kind->size));
    *c->session = (otlp_session){.kind = kind, .client = c};
    c->readable = server_new_event(fd, EV_READ | EV_PERSIST, on_otlp_readable, c);
    c->writable = server_new_event(fd, EV_WRITE, on_otlp_writable, c);
    c->next = clients;
    c->link = &clients;
    if (c->next != NULL)
        c->next->link = &c->next;
    clients = c;
    c->entry.fd = fd;
    c->entry.close = otlp_close_entry;
    if (!client_table_add(accepting_get_clients(), &c->entry, peer, c->connected_ns))
        nl_memory_failed();
    event_add(c->readable, NULL);
    nl_write(server_log(), NL_DEBUG, "Netlogd.Open", "PEER=%s", c->peer);
}

/* Returns the number of seconds that the client may stay in its current state; 0 means no limit. */
static unsigned time_limit(const otlp_client *c)
{
    const settings *s = server_settings();
    bool unsent = c->sent < c->out.size;
    return !c->ready || c->ending                             ? s->handshake_s
           : c->session->midway || unsent || !c->entry.proven ? s->record_s
                                                              : s->idle_timeout_s;
}

void otlp_clients_check_time(int64_t now_ns)
{
    for (otlp_client *c = clients, *next; c != NULL; c = next) {
        next = c->next;
        c->ready = c->ready || nl_channel_is_ready(&c->channel);
        unsigned limit_s = time_limit(c);
        if (c->waits || turns_is_waiting(&c->turn) || limit_s == 0 || now_ns - c->since_ns < limit_s * NL_NS_PER_SECOND)
            continue;
        nl_write(server_log(), NL_WARNING, "Netlogd.Late",
                 "PEER=%s NOTE=\"closed: the client was silent for too long\"", c->peer);
        otlp_client_close(c);
    }
}

void otlp_clients_settings_changed(void)
{
    for (otlp_client *c = clients, *next; c != NULL; c = next) {
        next = c->next;
        if (!accepting_may_stay(c->at, &c->channel, c->peer))
            otlp_client_close(c);
    }
}

void otlp_clients_describe(request *r)
{
    for (const otlp_client *c = clients; c != NULL; c = c->next) {
        nl_record *record = request_record(r, NL_USAGE, "Netlogd.Client");
        request_add_text(record, "PEER", c->peer);
        request_add_text(record, "FORMAT", c->session->kind->name);
        nl_record_add_double(record, "SECONDS", (double)((nl_monotonic_ns() - c->connected_ns) / 1000000) / 1e3);
        nl_record_add_uint(record, "RECORDS", c->records);
        nl_record_add_uint(record, "REQUESTS", c->requests);
        nl_record_add_uint(record, "MALFORMED", c->rejected);
        nl_record_add_uint(record, "HELD", c->held);
        nl_record_add_uint(record, "WORK", c->turn.work);
        request_put(r, record);
    }
}

size_t otlp_clients_held(void)
{
    return all_held;
}

void otlp_clients_close(void)
{
    while (clients != NULL)
        otlp_client_close(clients); /* NOLINT(clang-analyzer-unix.Malloc): the list changes */
    otlp_export_free();
}
