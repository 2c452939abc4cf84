/*
 * Reports the kernel's state of each TCP connection: windows, round-trip times, limits of the sender, and the owner.
 * Uses a BPF iterator (socket_states.h). Without the right to use the iterator, uses sock_diag(7) and struct tcp_info.
 * Web100 (RFC 4898) has similar values.
 *
 * The number of connections is unlimited. Two bounds keep the cost low:
 * - The sensor logs a connection if it has changed since its last record, and at least every 10 s.
 * - Reading all connections uses at most 5 % of one processor on average. The sensor skips measurements until the
 *   average is below this share.
 *
 * The kernel's tracepoints report the end of each connection (socket_ends.h), even if the connection begins and ends
 * between two measurements. Without the right to use eBPF, the sensor only polls.
 *
 * Without the iterator, the sensor needs at least 48 bytes of memory per connection. The table of owners
 * (socket_owners.h) also needs memory.
 */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"
#include "base/hash_bytes.h"
#include "base/monotonic.h"
#include "sensors/socket_ends.h"
#include "sensors/socket_owners.h"
#include "sensors/socket_states.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { LISTENING = 10, STATES = 12, COST_FACTOR = 20, LOOKAHEAD = 64 };

/* The processor time that a measurement can use at once, after measurements that used little. */
#define ALLOWANCE_MAX_NS (NL_NS_PER_SECOND / 2)

#define LOGGED_AGAIN_NS (10 * NL_NS_PER_SECOND)

/* The data of a connection that the sensor keeps from one measurement to the next. */
typedef struct connection_seen {
    uint64_t cookie;
    uint64_t digest; /* hash of the values that change when a program uses the connection */
    int64_t logged_ns;
} connection_seen;

typedef struct seen_list {
    connection_seen *list;
    size_t count, capacity;
} seen_list;

typedef struct connections_state {
    int fd;
    long port;             /* local or remote port; 0: any port */
    char peer[64];         /* glob for the peer's ADDRESS:PORT; "": any peer */
    seen_list before, now; /* connections in the kernel's order, which changes little */
    size_t next;           /* expected index in `before` */
    int64_t now_ns;        /* time of this measurement */
    int64_t allowance_ns;  /* processor time that the sensor can use now; negative: it skips measurements */
    int64_t allowed_ns;    /* time at which `allowance_ns` was calculated */
    uint64_t logged;
    /*
     * Without arguments and without eBPF, the sensor counts the connections that it has missed. `opened` is the number
     * of connections that the kernel has opened since its start; `opened_first` is its value in the first measurement.
     * `found` is the number of connections that only later measurements have found.
     */
    bool counts_missed, measured;
    uint64_t opened, opened_first, found;
    uint64_t *sorted; /* cookies in `before`; NULL: not sorted yet */
    nl_buffer text;
    socket_owners *owners;
    socket_ends *ends; /* NULL: the sensor only polls */
    uint64_t closed;
    socket_states *states; /* NULL: sock_diag */
    double jiffy_us;
} connections_state;

/* One connection, from a message of the kernel. */
typedef struct connection {
    const struct inet_diag_msg *socket;
    struct tcp_info info;
    char algorithm[24], local[64], peer[64];
    uint32_t receive_buffer, send_buffer, send_memory; /* bytes; 0 if unknown */
    const struct tcp_state *state;                     /* NULL if the connection is from sock_diag */
} connection;

static bool connections_open(void *state, const sensor_spec *spec)
{
    connections_state *s = state;
    const char *peer = spec_argument(spec, "peer");
    if (!spec_number(spec, "port", 1, 65535, 0, &s->port))
        return false;
    snprintf(s->peer, sizeof s->peer, "%s", peer != NULL ? peer : "");
    s->owners = socket_owners_new();
    if (s->owners == NULL)
        return nl_error_false(NL_ERROR_MEMORY, "out of memory");
    s->ends = socket_ends_new();
    s->counts_missed = s->ends == NULL && s->port == 0 && s->peer[0] == '\0';
    struct timespec jiffy; /* the resolution of the coarse clocks */
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy) == 0 && jiffy.tv_sec == 0) {
        s->jiffy_us = (double)jiffy.tv_nsec / 1e3;
        s->states = socket_states_new((uint16_t)s->port, s->peer[0] != '\0');
    }
    s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (s->fd < 0)
        nl_error_set_errno("sock_diag");
    return s->fd >= 0;
}

/* Requests all connections of an address family, except sockets in the states listen, time-wait and closed. Returns
 * false if sending the request fails. */
static bool connections_request(int fd, int family)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 what;
    } request = {
        .head = {.nlmsg_len = sizeof request,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .what = {.sdiag_family = (unsigned char)family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) | 1 << (INET_DIAG_SKMEMINFO - 1),
                 .idiag_states = ((1u << STATES) - 1) & ~(1u << LISTENING | 1u << 6 | 1u << 7)}};
    return send(fd, &request, sizeof request, 0) == (ssize_t)sizeof request;
}

/* Formats an address and port. Formats the IPv4 address of an IPv6 socket like the address of an IPv4 socket, so that
 * both ends of the connection have the same texts. */
static void address_text(int family, const void *address, unsigned port, char out[64])
{
    static const char mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (char)0xff, (char)0xff};
    char host[INET6_ADDRSTRLEN];
    bool mapped = family == AF_INET6 && memcmp(address, mapped_prefix, sizeof mapped_prefix) == 0;
    inet_ntop(mapped ? AF_INET : family, (const char *)address + (mapped ? 12 : 0), host, sizeof host);
    snprintf(out, 64, family == AF_INET6 && !mapped ? "[%s]:%u" : "%s:%u", host, port);
}

static const char *state_name(unsigned state)
{
    static const char *const names[STATES] = {"",           "established", "syn-sent",  "syn-received",
                                              "fin-wait-1", "fin-wait-2",  "time-wait", "closed",
                                              "close-wait", "last-ack",    "listen",    "closing"};
    return state < STATES ? names[state] : "";
}

static const char *recovery_name(unsigned state)
{
    static const char *const names[] = {"open", "disorder", "cwr", "recovery", "loss"};
    return state < sizeof names / sizeof names[0] ? names[state] : "";
}

/* Adds the members of tcp_info. The counters are 0 when the connection opens. */
static void add_info(nl_record *record, const struct tcp_info *i)
{
    const struct {
        const char *name;
        uint64_t value;
    } values[] = {
        {"TCP.CWND", i->tcpi_snd_cwnd},
        {"TCP.SSTHRESH", i->tcpi_snd_ssthresh},
        {"TCP.MSS", i->tcpi_snd_mss},
        {"TCP.WINDOW", i->tcpi_snd_wnd},
        {"TCP.WINDOW.RECEIVE", i->tcpi_rcv_space},
        {"TCP.RTT", i->tcpi_rtt},
        {"TCP.RTT.VAR", i->tcpi_rttvar},
        {"TCP.RTT.MIN", i->tcpi_min_rtt == UINT32_MAX ? 0 : i->tcpi_min_rtt},
        {"TCP.RTO", i->tcpi_rto},
        {"TCP.RTT.RECEIVE", i->tcpi_rcv_rtt},
        {"TCP.UNACKED", i->tcpi_unacked},
        {"TCP.LOST", i->tcpi_lost},
        {"TCP.RETRANS", i->tcpi_total_retrans},
        {"TCP.BYTES.SENT", i->tcpi_bytes_sent},
        {"TCP.BYTES.ACKED", i->tcpi_bytes_acked},
        {"TCP.BYTES.RECEIVED", i->tcpi_bytes_received},
        {"TCP.BYTES.RETRANS", i->tcpi_bytes_retrans},
        {"TCP.UNSENT", i->tcpi_notsent_bytes},
        {"TCP.RATE", i->tcpi_delivery_rate},
        {"TCP.RATE.APP.LIMITED", i->tcpi_delivery_rate_app_limited},
        {"TCP.PACING", i->tcpi_pacing_rate},
        {"TCP.REORDERING", i->tcpi_reordering},
        {"TCP.REORDERED", i->tcpi_reord_seen},
        {"TCP.DSACKS", i->tcpi_dsack_dups},
        {"TCP.ECN", (i->tcpi_options & TCPI_OPT_ECN) != 0},
        {"TCP.ECN.MARKED", i->tcpi_delivered_ce},
        {"TCP.SCALE.OUT", i->tcpi_snd_wscale},
        {"TCP.SCALE.IN", i->tcpi_rcv_wscale},
        {"TCP.IDLE.OUT", i->tcpi_last_data_sent * UINT64_C(1000)},
        {"TCP.BUSY", i->tcpi_busy_time},
        {"TCP.LIMITED.RECEIVER", i->tcpi_rwnd_limited},
        {"TCP.LIMITED.BUFFER", i->tcpi_sndbuf_limited},
    };
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
        nl_record_add_uint(record, values[v].name, values[v].value);
    uint64_t limited = i->tcpi_rwnd_limited + i->tcpi_sndbuf_limited;
    nl_record_add_uint(record, "TCP.LIMITED.NETWORK", i->tcpi_busy_time > limited ? i->tcpi_busy_time - limited : 0);
}

static bool is_selected(const connections_state *s, long local_port, long peer_port, const char *peer)
{
    return (s->port == 0 || local_port == s->port || peer_port == s->port) &&
           (s->peer[0] == '\0' || fnmatch(s->peer, peer, 0) == 0);
}

static uint64_t connection_digest(const connection *c)
{
    const struct tcp_info *i = &c->info;
    const uint64_t values[] = {c->socket->idiag_state, c->socket->idiag_rqueue, c->socket->idiag_wqueue,
                               i->tcpi_bytes_sent,     i->tcpi_bytes_acked,     i->tcpi_bytes_received,
                               i->tcpi_busy_time,      i->tcpi_segs_in,         i->tcpi_segs_out};
    return hash_bytes(0, (const char *)values, sizeof values);
}

/* Returns the data of a connection from the last measurement. To save time, searches only a few connections from the
 * expected index. If the search does not find the connection, returns the data of a new connection. */
static connection_seen find_seen(connections_state *s, uint64_t cookie)
{
    for (size_t i = s->next; i < s->before.count && i < s->next + LOOKAHEAD; i++)
        if (s->before.list[i].cookie == cookie) {
            s->next = i + 1;
            return s->before.list[i];
        }
    return (connection_seen){.cookie = cookie, .logged_ns = INT64_MIN / 2};
}

static void remember(seen_list *l, connection_seen seen)
{
    if (l->count == l->capacity) {
        size_t capacity = l->capacity > 0 ? 2 * l->capacity : 256;
        connection_seen *list = realloc(l->list, capacity * sizeof *list);
        if (list == NULL)
            return; /* without memory, the sensor logs the connection in each measurement */
        l->list = list;
        l->capacity = capacity;
    }
    l->list[l->count++] = seen;
}

static int compare_cookies(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns whether the last measurement contained a connection. */
static bool is_known(connections_state *s, uint64_t cookie)
{
    if (s->sorted == NULL && s->before.count > 0) {
        s->sorted = malloc(s->before.count * sizeof *s->sorted);
        for (size_t i = 0; s->sorted != NULL && i < s->before.count; i++)
            s->sorted[i] = s->before.list[i].cookie;
        if (s->sorted != NULL)
            qsort(s->sorted, s->before.count, sizeof *s->sorted, compare_cookies);
    }
    return s->sorted != NULL &&
           bsearch(&cookie, s->sorted, s->before.count, sizeof *s->sorted, compare_cookies) != NULL;
}

/* Reads the number of connections that the kernel has opened: by connect(2) and by accept(2). */
static void read_opened(connections_state *s)
{
    uint64_t active, passive;
    s->counts_missed = proc_read("/proc/self/net/snmp", &s->text) &&
                       proc_find_column(s->text.data, "Tcp", "ActiveOpens", &active) &&
                       proc_find_column(s->text.data, "Tcp", "PassiveOpens", &passive);
    if (!s->counts_missed)
        return;
    s->opened = active + passive;
    if (!s->measured)
        s->opened_first = s->opened;
}

/* Returns whether to log the connection. Adds the connection to s->now. */
static bool is_due(connections_state *s, const connection *c)
{
    const uint32_t *cookie = c->socket->id.idiag_cookie;
    connection_seen seen = find_seen(s, (uint64_t)cookie[1] << 32 | cookie[0]);
    bool is_new = seen.logged_ns < 0;
    if (is_new && s->counts_missed && s->measured)
        s->found += !is_known(s, seen.cookie);
    uint64_t digest = connection_digest(c);
    bool due = digest != seen.digest || s->now_ns - seen.logged_ns >= LOGGED_AGAIN_NS;
    seen.digest = digest;
    seen.logged_ns = due ? s->now_ns : seen.logged_ns;
    remember(&s->now, seen);
    return due;
}

static void add_owner(nl_record *record, connections_state *s, const struct inet_diag_msg *d)
{
    const socket_owner *owner = socket_owners_find(s->owners, d->idiag_inode);
    nl_record_add_uint(record, "TCP.UID", d->idiag_uid);
    if (owner == NULL)
        return;
    socket_owners_read_times(s->owners, owner, s->now_ns);
    nl_record_add_int(record, "TCP.PID", owner->pid);
    nl_record_add_uint(record, "TCP.OWNER.WAIT", owner->wait_us);
    add_text(record, "TCP.OWNER.STATE", (char[]){owner->state, '\0'});
    add_text(record, "TCP.PROGRAM", owner->program);
    add_text(record, "TCP.CGROUP", owner->cgroup);
}

/* Converts a number of jiffies to microseconds, and rounds down as the kernel does in tcp_info. */
static uint64_t jiffies_us(const connections_state *s, uint64_t jiffies)
{
    return (uint64_t)((double)jiffies * s->jiffy_us);
}

/* Returns the delay of the last segment plus an unknown constant, modulo 2^32 ms. */
static uint64_t delay_us(const connections_state *s, const struct tcp_state *t)
{
    uint32_t at_ms = (uint32_t)(jiffies_us(s, t->received_at) / 1000);
    return (uint32_t)(at_ms - t->timestamp_in) * UINT64_C(1000);
}

static void log_connection(measurement *m, connection *c)
{
    connections_state *s = m->state;
    const struct inet_diag_msg *d = c->socket;
    address_text(d->idiag_family, d->id.idiag_src, ntohs(d->id.idiag_sport), c->local);
    address_text(d->idiag_family, d->id.idiag_dst, ntohs(d->id.idiag_dport), c->peer);
    bool is_chosen = c->state != NULL && s->peer[0] == '\0'; /* the kernel has selected the connection */
    if (!is_chosen && (!is_selected(s, ntohs(d->id.idiag_sport), ntohs(d->id.idiag_dport), c->peer) || !is_due(s, c)))
        return;
    s->logged++;
    nl_record *record = record_begin(m, "TcpConnection");
    add_text(record, "TCP.LOCAL", c->local);
    add_text(record, "TCP.PEER", c->peer);
    add_text(record, "TCP.STATE", state_name(d->idiag_state));
    nl_record_add_uint(record, "TCP.COOKIE", (uint64_t)d->id.idiag_cookie[1] << 32 | d->id.idiag_cookie[0]);
    nl_record_add_uint(record, "TCP.INODE", d->idiag_inode);
    add_owner(record, s, d);
    nl_record_add_uint(record, "TCP.QUEUE.IN", d->idiag_rqueue);
    nl_record_add_uint(record, "TCP.QUEUE.OUT", d->idiag_wqueue);
    nl_record_add_uint(record, "TCP.BUFFER.IN", c->receive_buffer);
    nl_record_add_uint(record, "TCP.BUFFER.OUT", c->send_buffer);
    nl_record_add_uint(record, "TCP.MEMORY.OUT", c->send_memory);
    add_text(record, "TCP.ALGORITHM", c->algorithm);
    add_text(record, "TCP.RECOVERY", recovery_name(c->info.tcpi_ca_state));
    if (c->state != NULL) {
        nl_record_add_uint(record, "TCP.SEQUENCE.OUT", c->state->sequence_out);
        nl_record_add_uint(record, "TCP.SEQUENCE.IN", c->state->sequence_in);
        if (c->state->has_timestamps)
            nl_record_add_uint(record, "TCP.DELAY.IN", delay_us(s, c->state));
    }
    add_info(record, &c->info);
    record_end(m);
}

/* Logs a connection that the BPF iterator has passed to the reader. */
static void log_state(void *user, const struct tcp_state *t)
{
    measurement *m = user;
    const connections_state *s = m->state;
    struct inet_diag_msg d = {.idiag_family = (uint8_t)t->family,
                              .idiag_state = t->state,
                              .id = {.idiag_sport = htons(t->local_port),
                                     .idiag_dport = htons(t->peer_port),
                                     .idiag_cookie = {(uint32_t)t->cookie, (uint32_t)(t->cookie >> 32)}},
                              .idiag_rqueue = t->queue_in,
                              .idiag_wqueue = t->queue_out,
                              .idiag_uid = t->uid,
                              .idiag_inode = (uint32_t)t->inode};
    memcpy(d.id.idiag_src, t->local, sizeof t->local);
    memcpy(d.id.idiag_dst, t->peer, sizeof t->peer);
    connection c = {.socket = &d,
                    .state = t,
                    .receive_buffer = t->buffer_in,
                    .send_buffer = t->buffer_out,
                    .send_memory = t->memory_out,
                    .info = {.tcpi_state = t->state,
                             .tcpi_ca_state = t->recovery,
                             .tcpi_options = t->ecn ? TCPI_OPT_ECN : 0,
                             .tcpi_snd_wscale = t->scale_out,
                             .tcpi_rcv_wscale = t->scale_in,
                             .tcpi_delivery_rate_app_limited = t->rate_app_limited,
                             .tcpi_rto = (uint32_t)jiffies_us(s, t->rto),
                             .tcpi_snd_mss = t->mss,
                             .tcpi_unacked = t->unacked,
                             .tcpi_lost = t->lost,
                             .tcpi_last_data_sent = (uint32_t)(jiffies_us(s, t->idle_out) / 1000),
                             .tcpi_rtt = t->rtt_us,
                             .tcpi_rttvar = t->rtt_var_us,
                             .tcpi_snd_ssthresh = t->ssthresh,
                             .tcpi_snd_cwnd = t->cwnd,
                             .tcpi_reordering = t->reordering,
                             .tcpi_rcv_rtt = t->rtt_receive_us,
                             .tcpi_rcv_space = t->window_receive,
                             .tcpi_total_retrans = t->retransmitted,
                             .tcpi_pacing_rate = t->pacing,
                             .tcpi_bytes_acked = t->bytes_acked,
                             .tcpi_bytes_received = t->bytes_received,
                             .tcpi_segs_out = t->segments_out,
                             .tcpi_segs_in = t->segments_in,
                             .tcpi_notsent_bytes = t->unsent,
                             .tcpi_min_rtt = t->rtt_min_us,
                             .tcpi_busy_time = jiffies_us(s, t->busy),
                             .tcpi_rwnd_limited = jiffies_us(s, t->receiver_limited),
                             .tcpi_sndbuf_limited = jiffies_us(s, t->buffer_limited),
                             .tcpi_delivered_ce = t->ecn_marked,
                             .tcpi_bytes_sent = t->bytes_sent,
                             .tcpi_bytes_retrans = t->bytes_retransmitted,
                             .tcpi_dsack_dups = t->dsacks,
                             .tcpi_reord_seen = t->reordered,
                             .tcpi_snd_wnd = t->window}};
    if (t->rate_interval_us > 0) /* tcp_compute_delivery_rate */
        c.info.tcpi_delivery_rate = (uint64_t)t->rate_delivered * t->mss * 1000000 / t->rate_interval_us;
    snprintf(c.algorithm, sizeof c.algorithm, "%.*s", (int)sizeof t->algorithm, t->algorithm);
    log_connection(m, &c);
}

static void log_message(measurement *m, const struct nlmsghdr *head)
{
    connection c = {.socket = NLMSG_DATA(head)};
    bool has_info = false;
    int left = (int)(head->nlmsg_len - NLMSG_LENGTH(sizeof *c.socket));
    for (const struct rtattr *a = (const struct rtattr *)(c.socket + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        size_t size = RTA_PAYLOAD(a);
        uint32_t memory[SK_MEMINFO_VARS] = {0};
        if (a->rta_type == INET_DIAG_INFO) { /* older kernels have fewer members */
            memcpy(&c.info, RTA_DATA(a), size < sizeof c.info ? size : sizeof c.info);
            has_info = true;
        } else if (a->rta_type == INET_DIAG_CONG) {
            snprintf(c.algorithm, sizeof c.algorithm, "%.*s", (int)size, (const char *)RTA_DATA(a));
        } else if (a->rta_type == INET_DIAG_SKMEMINFO) {
            memcpy(memory, RTA_DATA(a), size < sizeof memory ? size : sizeof memory);
            c.receive_buffer = memory[SK_MEMINFO_RCVBUF];
            c.send_buffer = memory[SK_MEMINFO_SNDBUF];
            c.send_memory = memory[SK_MEMINFO_WMEM_QUEUED];
        }
    }
    if (has_info)
        log_connection(m, &c);
}

/* Reads the whole reply and logs its connections. Returns false on failure. */
static bool read_reply(measurement *m, int fd)
{
    static _Alignas(struct nlmsghdr) char bytes[32 << 10];
    for (;;) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        for (const struct nlmsghdr *head = (const struct nlmsghdr *)(void *)bytes; NLMSG_OK(head, got);
             head = NLMSG_NEXT(head, got)) {
            if (head->nlmsg_type == NLMSG_DONE)
                return true;
            if (head->nlmsg_type == NLMSG_ERROR)
                return false;
            log_message(m, head);
        }
    }
}

static void log_end(measurement *m, const struct tcp_close *e, int64_t clock_ns)
{
    connections_state *s = m->state;
    char local[64], peer[64];
    address_text(e->family, e->local, e->local_port, local);
    address_text(e->family, e->peer, e->peer_port, peer);
    if (!is_selected(s, e->local_port, e->peer_port, peer))
        return;
    s->closed++;
    nl_record *record = record_begin(m, "TcpClose");
    nl_record_set_time(record, (int64_t)e->end_ns + clock_ns);
    add_text(record, "TCP.LOCAL", local);
    add_text(record, "TCP.PEER", peer);
    add_text(record, "TCP.STATE", state_name(e->last_state));
    nl_record_add_uint(record, "TCP.COOKIE", e->cookie);
    nl_record_add_uint(record, "TCP.UID", e->uid);
    if (e->begin_ns != 0)
        nl_record_add_uint(record, "TCP.DURATION", (e->end_ns - e->begin_ns) / 1000);
    if (e->begin_ns != 0 && e->established_ns != 0)
        nl_record_add_uint(record, "TCP.HANDSHAKE", (e->established_ns - e->begin_ns) / 1000);
    nl_record_add_uint(record, "TCP.BYTES.SENT", e->bytes_sent);
    nl_record_add_uint(record, "TCP.BYTES.ACKED", e->bytes_acked);
    nl_record_add_uint(record, "TCP.BYTES.RECEIVED", e->bytes_received);
    nl_record_add_uint(record, "TCP.BYTES.RETRANS", e->bytes_retransmitted);
    nl_record_add_uint(record, "TCP.RETRANS", e->retransmitted);
    nl_record_add_uint(record, "TCP.SEGMENTS.OUT", e->segments_out);
    nl_record_add_uint(record, "TCP.SEGMENTS.IN", e->segments_in);
    nl_record_add_uint(record, "TCP.RTT", e->rtt_us);
    nl_record_add_uint(record, "TCP.RTT.MIN", e->rtt_min_us == UINT32_MAX ? 0 : e->rtt_min_us);
    nl_record_add_uint(record, "TCP.MSS", e->mss);
    nl_record_add_uint(record, "TCP.CWND", e->cwnd);
    record_end(m);
}

static void log_ends(measurement *m)
{
    connections_state *s = m->state;
    int64_t clock_ns = nl_time_now_ns() - nl_monotonic_ns();
    struct tcp_close end;
    while (s->ends != NULL && socket_ends_next(s->ends, &end))
        log_end(m, &end, clock_ns);
}

/* Reads all connections with sock_diag. Returns false if this fails both for IPv4 and for IPv6. */
static bool poll_connections(measurement *m)
{
    connections_state *s = m->state;
    bool four = connections_request(s->fd, AF_INET) && read_reply(m, s->fd);
    bool six = connections_request(s->fd, AF_INET6) && read_reply(m, s->fd);
    return four || six;
}

static bool connections_measure(measurement *m)
{
    connections_state *s = m->state;
    log_ends(m);
    s->now_ns = nl_monotonic_ns();
    s->allowance_ns += (s->now_ns - s->allowed_ns) / COST_FACTOR;
    s->allowed_ns = s->now_ns;
    if (s->allowance_ns > ALLOWANCE_MAX_NS)
        s->allowance_ns = ALLOWANCE_MAX_NS;
    if (s->measured && s->allowance_ns < 0)
        return true;
    int64_t used_ns = nl_thread_cpu_ns();
    seen_list before = s->before;
    s->before = s->now;
    s->now = before;
    s->now.count = s->next = s->logged = 0;
    free(s->sorted);
    s->sorted = NULL;
    if (s->counts_missed)
        read_opened(s);
    uint64_t count = 0, examined = 0;
    if (s->states != NULL && !socket_states_read(s->states, log_state, m, &count, &examined)) {
        socket_states_free(s->states);
        s->states = NULL;
    }
    bool iterated = s->states != NULL;
    if (!iterated && !poll_connections(m))
        return nl_error_false(NL_ERROR_SYSTEM, "sock_diag: the kernel does not list connections");
    if (!iterated || s->peer[0] != '\0')
        count = examined = s->now.count;
    nl_record *record = record_begin(m, "TcpConnections");
    nl_record_add_uint(record, "TCP.CONNECTIONS", count);
    nl_record_add_uint(record, "TCP.EXAMINED", examined);
    nl_record_add_uint(record, "TCP.LOGGED", s->logged);
    nl_record_add_uint(record, "TCP.ITERATED", iterated);
    nl_record_add_uint(record, "TCP.ENDS.WATCHED", s->ends != NULL);
    if (s->ends != NULL) {
        nl_record_add_uint(record, "TCP.ENDS", s->closed);
        nl_record_add_uint(record, "TCP.ENDS.MISSED", socket_ends_missed(s->ends));
    } else if (s->counts_missed) {
        uint64_t opened = s->opened - s->opened_first;
        nl_record_add_uint(record, "TCP.ENDS.MISSED", opened > s->found ? opened - s->found : 0);
    }
    s->measured = true;
    used_ns = nl_thread_cpu_ns() - used_ns;
    nl_record_add_int(record, "TCP.COST", used_ns / 1000);
    record_end(m);
    s->allowance_ns -= used_ns;
    return true;
}

#define TCP(name, unit, meaning)                                                                                       \
    {                                                                                                                  \
        "TcpConnection", name, unit, meaning                                                                           \
    }

static const sensor_field fields[] = {
    TCP("TCP.LOCAL", "", "local address and port"),
    TCP("TCP.PEER", "", "remote address and port"),
    TCP("TCP.STATE", "", "state of the connection, such as established or close-wait"),
    TCP("TCP.COOKIE", "", "number of the socket, unique until the next boot"),
    TCP("TCP.INODE", "", "inode of the socket; 0 if no process owns it"),
    TCP("TCP.UID", "", "user that owns the socket"),
    TCP("TCP.PID", "", "process that owns the socket; absent if unknown"),
    TCP("TCP.OWNER.WAIT", "us", "time that the main thread of the process has waited for a processor"),
    TCP("TCP.OWNER.STATE", "", "R: running; S: sleeping; D: waiting for I/O"),
    TCP("TCP.PROGRAM", "", "name of the process"),
    TCP("TCP.CGROUP", "", "control group of the process"),
    TCP("TCP.QUEUE.IN", "bytes", "data received, but not read by the program"),
    TCP("TCP.QUEUE.OUT", "bytes", "data written, but not acknowledged"),
    TCP("TCP.BUFFER.IN", "bytes", "maximum memory for received data, including the kernel's headers"),
    TCP("TCP.BUFFER.OUT", "bytes", "maximum memory for the send queue, including the kernel's headers"),
    TCP("TCP.MEMORY.OUT", "bytes", "memory used by data in the send queue, including the kernel's headers"),
    TCP("TCP.ALGORITHM", "", "congestion control algorithm"),
    TCP("TCP.RECOVERY", "", "state of congestion control: open, disorder, cwr, recovery, loss"),
    TCP("TCP.SEQUENCE.OUT", "",
        "sequence number of the first byte sent, or of the SYN before it; absent without a BPF iterator"),
    TCP("TCP.SEQUENCE.IN", "", "sequence number of the first byte received; larger by 1 after the peer's FIN"),
    TCP("TCP.DELAY.IN", "us",
        "delay of the last received segment plus an unknown constant; absent without a BPF iterator or TCP timestamps"),
    TCP("TCP.CWND", "segments", "congestion window"),
    TCP("TCP.SSTHRESH", "segments", "slow start threshold"),
    TCP("TCP.MSS", "bytes", "maximum segment size"),
    TCP("TCP.WINDOW", "bytes", "receive window of the peer"),
    TCP("TCP.WINDOW.RECEIVE", "bytes", "approximate receive window that this host offers to the peer"),
    TCP("TCP.RTT", "us", "smoothed round-trip time"),
    TCP("TCP.RTT.VAR", "us", "variation of the round-trip time"),
    TCP("TCP.RTT.MIN", "us", "minimum round-trip time; 0 if unknown"),
    TCP("TCP.RTO", "us", "retransmission timeout"),
    TCP("TCP.RTT.RECEIVE", "us", "round-trip time as the receiver estimates it; 0 if unknown"),
    TCP("TCP.UNACKED", "segments", "segments in flight"),
    TCP("TCP.LOST", "segments", "segments that the kernel now presumes lost"),
    TCP("TCP.RETRANS", "segments", "total number of segments retransmitted"),
    TCP("TCP.BYTES.SENT", "bytes", "total data sent, including retransmissions"),
    TCP("TCP.BYTES.ACKED", "bytes", "total data acknowledged"),
    TCP("TCP.BYTES.RECEIVED", "bytes", "total data received"),
    TCP("TCP.BYTES.RETRANS", "bytes", "total data retransmitted"),
    TCP("TCP.UNSENT", "bytes", "data written, but not sent"),
    TCP("TCP.RATE", "bytes/s", "recent delivery rate"),
    TCP("TCP.RATE.APP.LIMITED", "", "1 if the program did not write enough while TCP.RATE was measured, otherwise 0"),
    TCP("TCP.PACING", "bytes/s", "rate at which the sender paces segments"),
    TCP("TCP.REORDERING", "segments", "largest distance by which segments have been reordered"),
    TCP("TCP.REORDERED", "events", "total number of reorderings that the kernel detected"),
    TCP("TCP.DSACKS", "segments", "total number of duplicate segments that the peer has reported"),
    TCP("TCP.ECN", "", "1 if both ends use explicit congestion notification, otherwise 0"),
    TCP("TCP.ECN.MARKED", "segments", "total number of segments received with a congestion mark"),
    TCP("TCP.SCALE.OUT", "bits", "window scale of the peer"),
    TCP("TCP.SCALE.IN", "bits", "window scale of this host"),
    TCP("TCP.IDLE.OUT", "us", "time since data was last sent"),
    TCP("TCP.BUSY", "us", "time in which the connection had data to send"),
    TCP("TCP.LIMITED.RECEIVER", "us", "part of TCP.BUSY in which the peer's window was the limit"),
    TCP("TCP.LIMITED.BUFFER", "us", "part of TCP.BUSY in which the send buffer was the limit"),
    TCP("TCP.LIMITED.NETWORK", "us", "part of TCP.BUSY in which congestion control was the limit"),
    {"TcpClose", "TCP.LOCAL", "", "local address and port of a connection that has ended"},
    {"TcpClose", "TCP.PEER", "", "remote address and port"},
    {"TcpClose", "TCP.STATE", "",
     "state before the connection closed; syn-sent if the peer did not accept the connection"},
    {"TcpClose", "TCP.COOKIE", "", "number of the socket, unique until the next boot"},
    {"TcpClose", "TCP.UID", "", "user that owned the socket"},
    {"TcpClose", "TCP.DURATION", "us",
     "duration of the connection; absent if the connection began before the sensor started"},
    {"TcpClose", "TCP.HANDSHAKE", "us", "duration of the handshake on this host; absent if unknown"},
    {"TcpClose", "TCP.BYTES.SENT", "bytes", "data sent, including retransmissions"},
    {"TcpClose", "TCP.BYTES.ACKED", "bytes",
     "data acknowledged; 1 byte more on the host that opened the connection, for its SYN"},
    {"TcpClose", "TCP.BYTES.RECEIVED", "bytes", "data received"},
    {"TcpClose", "TCP.BYTES.RETRANS", "bytes", "data retransmitted"},
    {"TcpClose", "TCP.RETRANS", "segments", "segments retransmitted"},
    {"TcpClose", "TCP.SEGMENTS.OUT", "segments", "segments sent"},
    {"TcpClose", "TCP.SEGMENTS.IN", "segments", "segments received"},
    {"TcpClose", "TCP.RTT", "us", "smoothed round-trip time when the connection closed"},
    {"TcpClose", "TCP.RTT.MIN", "us", "minimum round-trip time; 0 if unknown"},
    {"TcpClose", "TCP.MSS", "bytes", "maximum segment size"},
    {"TcpClose", "TCP.CWND", "segments", "congestion window when the connection closed"},
    {"TcpConnections", "TCP.CONNECTIONS", "", "number of connections that match the arguments"},
    {"TcpConnections", "TCP.EXAMINED", "", "connections read; since Linux 6.3, unused connections are read every 2 s"},
    {"TcpConnections", "TCP.LOGGED", "records", "connections that this measurement logged"},
    {"TcpConnections", "TCP.ITERATED", "",
     "1 with BPF, which requires CAP_BPF, CAP_PERFMON and a kernel with type information; 0 with sock_diag, which "
     "takes more time"},
    {"TcpConnections", "TCP.ENDS.WATCHED", "",
     "1 if the kernel reports ends of connections (requires CAP_BPF and CAP_PERFMON)"},
    {"TcpConnections", "TCP.ENDS", "", "TcpClose records so far; absent if the kernel does not report ends"},
    {"TcpConnections", "TCP.ENDS.MISSED", "",
     "connections missed so far; absent if the sensor has arguments and TCP.ENDS.WATCHED is 0"},
    {"TcpConnections", "TCP.COST", "us", "processor time of this measurement"},
    {0},
};

const sensor_kind connections_sensor = {
    .name = "connections",
    .what = "the windows, round-trip times, sender limits and owner of each TCP connection, and the connections that "
            "have ended",
    .arguments = " port peer ",
    .arguments_help = "port=N (log only connections with the local or remote port N), peer=GLOB (log only connections "
                      "whose remote address and port match GLOB, such as 10.0.0.*:443). The sensor logs a connection "
                      "when it has changed, and at least every 10 s. It skips measurements to use at most 5 % of one "
                      "processor",
    .fields = fields,
    .open = connections_open,
    .measure = connections_measure,
    .finish = log_ends,
    .state_size = sizeof(connections_state)};
