/*
 * Measures the network path to a host whose agent reflects probes (nlagentd --reflect): delay, loss and reordering in
 * each direction, the MTU, the routers and the rate of a short TCP transfer.
 *
 * A thread sends the probes and performs the other measurements, so a measurement of the sensor never waits. The sensor
 * limits the data that it sends. The sensor sends at most RATE_MAX small packets per second, or one per second to a
 * peer that does not reply. To find the MTU and the routers, the sensor sends one packet at a time. Each check has one
 * transfer of limited size and duration. A peer that does not reply receives only small packets.
 */
#include "config.h"

#include "sensors/path_route.h"
#include "sensors/path_transfer.h"
#include "sensors/sensor.h"

#include "base/error.h"
#include "base/monotonic.h"
#include "base/thread.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

enum { RATE_DEFAULT = 10, RATE_MAX = 100, CHECK_DEFAULT_S = 60, CHECK_MIN_S = 30, TRANSFER_MAX_MB = 1000 };

#define BYTES_PER_MB UINT64_C(1000000)
#define TRANSFER_NS (5 * NL_NS_PER_SECOND)

/* Interval at which the thread determines whether a check of the path is due and the peer replies. */
#define ANSWER_POLL_NS (NL_NS_PER_SECOND / 10)

typedef struct path_state {
    char host[256], address[INET6_ADDRSTRLEN];
    long check_s, transfer_mb; /* transfer_mb is 0 without transfers */
    path_probes probes;
    pthread_mutex_t lock; /* protects the following members, which are unlogged results */
    path_hop hops[PATH_HOPS_MAX];
    size_t hop_count;
    bool has_mtu, has_transfer;
    path_mtu mtu;
    path_transfer transfer;
} path_state;

/* ---- the thread ---- */

static void check_path(path_state *s)
{
    path_mtu mtu;
    path_hop hops[PATH_HOPS_MAX];
    bool has_mtu = path_find_mtu(&s->probes, &mtu);
    size_t count = path_find_hops(&s->probes, hops);
    path_transfer transfer = {0};
    if (s->transfer_mb > 0 && path_probes_answered(&s->probes))
        transfer = path_transfer_measure(&s->probes, (uint64_t)s->transfer_mb * BYTES_PER_MB, TRANSFER_NS);
    pthread_mutex_lock(&s->lock);
    s->has_mtu = has_mtu;
    s->mtu = mtu;
    memcpy(s->hops, hops, count * sizeof *hops);
    s->hop_count = count;
    s->has_transfer = transfer.duration_ns > 0 || transfer.problem[0] != '\0';
    s->transfer = transfer;
    pthread_mutex_unlock(&s->lock);
}

/* Never returns, because the thread runs until the process ends. */
static void *path_run(void *user)
{
    path_state *s = user;
    int64_t next_check_ns = 0;
    for (;;) {
        int64_t now_ns = nl_monotonic_ns();
        if (now_ns >= next_check_ns && path_probes_answered(&s->probes)) {
            check_path(s);
            next_check_ns = now_ns + s->check_s * NL_NS_PER_SECOND;
        }
        path_probes_wait(&s->probes, -1, 0, now_ns + ANSWER_POLL_NS);
    }
    return NULL;
}

/* ---- the sensor ---- */

static bool path_open(void *state, const sensor_spec *spec)
{
    path_state *s = state;
    const char *host = spec_argument(spec, "peer");
    long port, rate;
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
    pthread_t thread;
    if (!spec_number(spec, "port", 1, 65535, STAMP_PORT, &port) ||
        !spec_number(spec, "rate", 1, RATE_MAX, RATE_DEFAULT, &rate) ||
        !spec_number(spec, "check", CHECK_MIN_S, 86400, CHECK_DEFAULT_S, &s->check_s) ||
        !spec_number(spec, "transfer", 0, TRANSFER_MAX_MB, 0, &s->transfer_mb))
        return false;
    snprintf(service, sizeof service, "%ld", port);
    int error = getaddrinfo(host, service, &hints, &found);
    if (error != 0)
        return nl_error_false(NL_ERROR_NOT_FOUND, "%s: %s", host, gai_strerror(error));
    memcpy(&s->probes.peer, found->ai_addr, found->ai_addrlen);
    s->probes.peer_size = found->ai_addrlen;
    getnameinfo(found->ai_addr, found->ai_addrlen, s->address, sizeof s->address, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    snprintf(s->host, sizeof s->host, "%s", host);
    pthread_mutex_init(&s->lock, NULL);
    if (!path_probes_open(&s->probes, NL_NS_PER_SECOND / rate))
        return false;
    error = nl_thread_create(&thread, NULL, path_run, s);
    return error == 0 || nl_error_false(NL_ERROR_SYSTEM, "cannot start a thread: %s", strerror(error));
}

static nl_record *begin_path(measurement *m, const char *event)
{
    const path_state *s = m->state;
    nl_record *record = record_begin(m, event);
    add_text(record, "PATH.PEER", s->host);
    add_text(record, "PATH.ADDRESS", s->address);
    return record;
}

static void add_delays(nl_record *record, const path_delays *d, const char *const names[3])
{
    if (d->count == 0)
        return;
    add_rounded(record, names[0], d->sum_ns / (double)d->count / 1e3, 1);
    add_rounded(record, names[1], (double)d->min_ns / 1e3, 1);
    add_rounded(record, names[2], (double)d->max_ns / 1e3, 1);
}

static void log_delay(measurement *m)
{
    static const char *const round_trip[] = {"PATH.RTT", "PATH.RTT.MIN", "PATH.RTT.MAX"},
                             *const out[] = {"PATH.DELAY.OUT", "PATH.DELAY.OUT.MIN", "PATH.DELAY.OUT.MAX"},
                             *const back[] = {"PATH.DELAY.BACK", "PATH.DELAY.BACK.MIN", "PATH.DELAY.BACK.MAX"};
    path_state *s = m->state;
    char problem[PATH_PROBLEM_SIZE];
    int64_t error_ns;
    path_report r = path_probes_take(&s->probes, problem, &error_ns);
    nl_record *record = begin_path(m, "PathDelay");
    add_delays(record, &r.round_trip, round_trip);
    add_delays(record, &r.out, out);
    add_delays(record, &r.back, back);
    if (r.replies > 0 && error_ns >= 0 && r.peer_error_ns >= 0)
        add_rounded(record, "PATH.DELAY.ERROR", (double)(error_ns + r.peer_error_ns) / 1e3, 1);
    nl_record_add_uint(record, "PATH.REPLIES", r.replies);
    nl_record_add_uint(record, "PATH.LOST", r.lost);
    if (r.knows_direction) {
        nl_record_add_uint(record, "PATH.LOST.OUT", r.lost_out);
        nl_record_add_uint(record, "PATH.LOST.BACK", r.lost_back);
    }
    if (r.replies + r.lost > 0)
        add_rounded(record, "PATH.LOSS", 100.0 * (double)r.lost / (double)(r.replies + r.lost), 1);
    nl_record_add_uint(record, "PATH.DUPLICATES", r.duplicates);
    nl_record_add_uint(record, "PATH.REORDERED", r.reordered);
    if (r.ttl_out > 0)
        nl_record_add_uint(record, "PATH.ROUTERS.OUT", STAMP_TTL - r.ttl_out);
    if (r.ttl_back > 0)
        nl_record_add_uint(record, "PATH.ROUTERS.BACK", STAMP_TTL - r.ttl_back);
    if (problem[0] != '\0')
        add_text(record, "PATH.ERROR", problem);
    record_end(m);
}

static void log_mtu(measurement *m)
{
    const path_mtu *mtu = &((const path_state *)m->state)->mtu;
    nl_record *record = begin_path(m, "PathMtu");
    nl_record_add_uint(record, "PATH.MTU", mtu->path);
    nl_record_add_uint(record, "PATH.MTU.LOCAL", mtu->local);
    if (mtu->reported > 0)
        nl_record_add_uint(record, "PATH.MTU.REPORTED", mtu->reported);
    record_end(m);
}

static void log_hop(measurement *m, size_t index)
{
    const path_hop *hop = &((const path_state *)m->state)->hops[index];
    nl_record *record = begin_path(m, "PathHop");
    nl_record_add_uint(record, "PATH.HOP", index + 1);
    if (hop->address[0] != '\0') {
        add_text(record, "PATH.HOP.ADDRESS", hop->address);
        add_rounded(record, "PATH.HOP.RTT", (double)hop->round_trip_ns / 1e3, 1);
    }
    record_end(m);
}

static void log_transfer(measurement *m)
{
    const path_transfer *t = &((const path_state *)m->state)->transfer;
    nl_record *record = begin_path(m, "PathTransfer");
    if (t->problem[0] != '\0') {
        add_text(record, "PATH.ERROR", t->problem);
    } else {
        add_rounded(record, "PATH.RATE", (double)t->bytes / (double)t->duration_ns * 1e9, 0);
        nl_record_add_uint(record, "PATH.BYTES", t->bytes);
        add_rounded(record, "PATH.DURATION", (double)t->duration_ns / 1e3, 1);
        nl_record_add_uint(record, "PATH.RETRANS", t->retransmitted);
    }
    record_end(m);
}

static bool path_measure(measurement *m)
{
    path_state *s = m->state;
    if (m->seconds > 0)
        log_delay(m);
    pthread_mutex_lock(&s->lock);
    if (s->has_mtu)
        log_mtu(m);
    for (size_t i = 0; i < s->hop_count; i++)
        log_hop(m, i);
    if (s->has_transfer)
        log_transfer(m);
    s->has_mtu = s->has_transfer = false;
    s->hop_count = 0;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static const sensor_field fields[] = {
    {"PathDelay", "PATH.PEER", "", "host"},
    {"PathDelay", "PATH.ADDRESS", "", "address of the host"},
    {"PathDelay", "PATH.RTT", "us",
     "mean round-trip time without the time in the reflector; absent if there were no replies"},
    {"PathDelay", "PATH.RTT.MIN", "us", "minimum round-trip time"},
    {"PathDelay", "PATH.RTT.MAX", "us", "maximum round-trip time"},
    {"PathDelay", "PATH.DELAY.OUT", "us",
     "mean delay from this host to the peer (time of receipt by the peer's clock minus time of sending by this host's "
     "clock)"},
    {"PathDelay", "PATH.DELAY.OUT.MIN", "us", "minimum delay from this host to the peer"},
    {"PathDelay", "PATH.DELAY.OUT.MAX", "us", "maximum delay from this host to the peer"},
    {"PathDelay", "PATH.DELAY.BACK", "us", "mean delay from the peer to this host"},
    {"PathDelay", "PATH.DELAY.BACK.MIN", "us", "minimum delay from the peer to this host"},
    {"PathDelay", "PATH.DELAY.BACK.MAX", "us", "maximum delay from the peer to this host"},
    {"PathDelay", "PATH.DELAY.ERROR", "us",
     "maximum error of the delays, which is the sum of the errors of both clocks; absent if a clock is not "
     "synchronized"},
    {"PathDelay", "PATH.REPLIES", "packets", "new probes with a reply"},
    {"PathDelay", "PATH.LOST", "packets", "new probes without a reply after 2 s"},
    {"PathDelay", "PATH.LOST.OUT", "packets",
     "new probes that were lost on the way to the peer; counted when the next reply arrives"},
    {"PathDelay", "PATH.LOST.BACK", "packets", "new probes whose reply was lost"},
    {"PathDelay", "PATH.LOSS", "%", "share of probes that were lost"},
    {"PathDelay", "PATH.DUPLICATES", "packets", "new duplicates of replies"},
    {"PathDelay", "PATH.REORDERED", "packets", "new replies that arrived after the reply to a later probe"},
    {"PathDelay", "PATH.ROUTERS.OUT", "", "number of routers on the way to the peer"},
    {"PathDelay", "PATH.ROUTERS.BACK", "", "number of routers on the way back"},
    {"PathDelay", "PATH.ERROR", "", "last error, if it is more recent than the last reply"},
    {"PathMtu", "PATH.PEER", "", "host"},
    {"PathMtu", "PATH.ADDRESS", "", "address of the host"},
    {"PathMtu", "PATH.MTU", "bytes", "size of the largest IP packet that reaches the peer"},
    {"PathMtu", "PATH.MTU.LOCAL", "bytes", "MTU of this host's interface"},
    {"PathMtu", "PATH.MTU.REPORTED", "bytes",
     "smallest MTU that a router reported; if it is absent and PATH.MTU is smaller than PATH.MTU.LOCAL, a router drops "
     "large packets without a report"},
    {"PathHop", "PATH.PEER", "", "host"},
    {"PathHop", "PATH.ADDRESS", "", "address of the host"},
    {"PathHop", "PATH.HOP", "", "number of the router on the way to the peer, from 1; the last hop is the peer"},
    {"PathHop", "PATH.HOP.ADDRESS", "", "address of the router; absent if the router did not reply"},
    {"PathHop", "PATH.HOP.RTT", "us", "round-trip time to the router"},
    {"PathTransfer", "PATH.PEER", "", "host"},
    {"PathTransfer", "PATH.ADDRESS", "", "address of the host"},
    {"PathTransfer", "PATH.RATE", "bytes/s", "mean rate of a TCP transfer to the peer, including slow start"},
    {"PathTransfer", "PATH.BYTES", "bytes", "data that the peer acknowledged"},
    {"PathTransfer", "PATH.DURATION", "us", "duration of the transfer, at most 5 s"},
    {"PathTransfer", "PATH.RETRANS", "segments", "retransmitted segments"},
    {"PathTransfer", "PATH.ERROR", "", "reason why there was no transfer"},
    {0},
};

const sensor_kind path_sensor = {
    .name = "path",
    .what =
        "the delays, losses, MTU and routers of the path to a host whose agent reflects probes (nlagentd --reflect)",
    .arguments = " peer port rate check transfer ",
    .arguments_help =
        "peer=HOST (required), port=N (default 14834), rate=N (mean number of packets per second, default "
        "10), check=SECONDS (interval between measurements of the MTU, the routers and the transfer, "
        "default 60), transfer=MB (maximum size of the TCP transfer, default 0: no transfer)",
    .required = "peer=HOST",
    .fields = fields,
    .open = path_open,
    .measure = path_measure,
    .state_size = sizeof(path_state)};
