#include "config.h"

#include "connections/connection_entry.h"

#include <math.h>
#include <string.h>

#define LAN_RTT_US 5000.0

/* The share of a cause counts as measured if at most this part of the share is an estimate. */
#define ESTIMATED_MAX 0.1

/*
 * At least LOSSES_MIN losses show a limit of the path if the windows at the losses are similar: their standard
 * deviation, in units of the mean, is below SAME_WINDOW. For random losses, this value is about 0.5.
 */
#define LOSSES_MIN 4
#define SAME_WINDOW 0.25

/* A slow start threshold is at least 2 segments. If the mean is below this number of segments, frequent losses have
 * made the windows similar. */
#define THRESHOLD_MIN 3

/*
 * BBR sends 25 % more than the rate of the path in one of eight round trips, to probe for bandwidth. A policer drops
 * this excess, 3 % of the segments on average, in groups. The variance of the losses in an interval, in units of their
 * mean, is 1 for independent random losses.
 */
#define PROBE_LOSS 0.02
#define GROUPED 1.5

/* The queue is on the way back if more than this part of the additional delay arises there. */
#define REVERSE_PART 0.7

/* A mean round-trip time that exceeds its minimum by this factor shows a queue of BBR, whose probes for bandwidth add
 * at most 25 % in one of eight round trips. */
#define BBR_QUEUE_FACTOR 1.2

/* The delays of probes show the direction of a queue if they have increased by this part of the additional delay. */
#define INCREASE_MIN 0.5

/*
 * The first sequence numbers of both ends differ by at most this number: a sender that has connected counts from its
 * SYN, and the receiver counts the FIN.
 */
enum { SEQUENCE_DIFFERENCE_MAX = 2 };

/* Returns the number of bytes by which the totals of two sockets differ. */
static double difference(const connection_entry *e, const connection_entry *peer)
{
    return fabs(e->last.acked - peer->last.received) + fabs(e->last.received - peer->last.acked);
}

/*
 * Returns the socket at the other end, or NULL. If a port was used again, several sockets have the right addresses. In
 * this case, returns the socket whose totals agree best. Does not compare times, because the clocks of the hosts may
 * differ.
 */
static connection_entry *find_peer(connection_table *t, const connection_entry *e)
{
    connection_set_ends_key(t->key, e->sent.host, e->sent.peer, e->sent.local);
    connection_entry *best = NULL;
    for (connection_entry *p = g_hash_table_lookup(t->by_ends, t->key->str); p != NULL; p = p->older)
        if (p != e && !p->joined && (best == NULL || difference(e, p) < difference(e, best)))
            best = p;
    return best;
}

/* Returns whether the data that one end sends, with the first sequence number `out`, is the data that the other end
 * receives. The numbers may differ by SEQUENCE_DIFFERENCE_MAX. */
static bool is_same_stream(int64_t out, int64_t in)
{
    return (uint32_t)(in - out) <= SEQUENCE_DIFFERENCE_MAX;
}

/*
 * Returns the socket at the other end by its sequence numbers, or NULL. Network address translation (NAT) changes
 * addresses and ports, but not sequence numbers.
 */
static connection_entry *find_translated(const connection_table *t, const connection_entry *e)
{
    for (int64_t d = 0; e->sequence_in >= 0 && d <= SEQUENCE_DIFFERENCE_MAX; d++) {
        int64_t wanted = (int64_t)(uint32_t)(e->sequence_out + d);
        for (connection_entry *p = g_hash_table_lookup(t->by_sequence, &wanted); p != NULL; p = p->older_sequence)
            if (p != e && !p->joined && is_same_stream(p->sequence_out, e->sequence_in))
                return p;
    }
    return NULL;
}

/* Returns whether the receiving program had unread data in most of the records. */
static bool is_unread(const connection_entry *receiver)
{
    return receiver->unread > receiver->receptions / 2;
}

/*
 * If the peer's program read its data, counts the receiver-limited time until the peer enlarged its window as slow
 * start.
 */
static void divide_start(connection_entry *e, const connection_entry *peer)
{
    connection_result *r = &e->sent;
    if (e->start_ns <= 0 || (peer != NULL && is_unread(peer)))
        return;
    double left_ns = e->start_ns;
    for (guint i = 0; r->slices != NULL && i < r->slices->len; i++) {
        double *slice = g_array_index(r->slices, connection_slice, i).cause_ns;
        double moved_ns = fmin(left_ns, slice[CAUSE_RECEIVE_BUFFER]);
        slice[CAUSE_RECEIVE_BUFFER] -= moved_ns;
        slice[CAUSE_SLOW_START] += moved_ns;
        left_ns -= moved_ns;
    }
    r->cause_ns[CAUSE_RECEIVE_BUFFER] -= e->start_ns;
    r->cause_ns[CAUSE_SLOW_START] += e->start_ns;
}

/* Divides the time in which the peer's window was the limit among the receiving program, its host and its buffer. */
static void divide_window(connection_entry *e, const connection_entry *peer)
{
    connection_result *r = &e->sent;
    double limited = e->limited_us[0] + e->limited_us[1];
    /* A program that does not read delays acknowledgements, so the round-trip time rises as if there were a queue. */
    if (peer != NULL && is_unread(peer) && e->closed_window_ns > 0)
        connection_move(r, CAUSE_PATH_QUEUE, CAUSE_RECEIVE_BUFFER,
                        fmin(1, e->closed_window_ns / r->cause_ns[CAUSE_PATH_QUEUE]));
    if (peer != NULL && peer->receptions > 0) {
        double estimated_ns = r->estimated_ns[CAUSE_RECEIVE_BUFFER];
        connection_move(r, CAUSE_RECEIVE_BUFFER, CAUSE_RECEIVER_HOST, peer->unread_busy / peer->receptions);
        double left = peer->receptions - peer->unread_busy;
        if (left > 0)
            connection_move(r, CAUSE_RECEIVE_BUFFER, CAUSE_RECEIVER_PROGRAM, (peer->unread - peer->unread_busy) / left);
        /* The receiver has measured these two causes, so no part of them is an estimate. */
        r->estimated_ns[CAUSE_RECEIVER_HOST] = r->estimated_ns[CAUSE_RECEIVER_PROGRAM] = 0;
        r->estimated_ns[CAUSE_RECEIVE_BUFFER] = estimated_ns;
        return;
    }
    if (limited > 0)
        connection_move(r, CAUSE_RECEIVE_BUFFER, CAUSE_RECEIVER_PROGRAM, e->limited_us[1] / limited);
    r->estimated_ns[CAUSE_RECEIVE_BUFFER] = r->cause_ns[CAUSE_RECEIVE_BUFFER];
}

static connection_distance find_distance(const connection_result *r)
{
    if (connection_is_loopback(r->peer) ||
        strncmp(r->local, r->peer, strcspn(r->peer, g_str_has_prefix(r->peer, "[") ? "]" : ":") + 1) == 0)
        return DISTANCE_LOCAL;
    if (r->rtt_min_ns <= 0)
        return DISTANCE_UNKNOWN;
    return r->rtt_min_ns < LAN_RTT_US * 1e3 ? DISTANCE_LAN : DISTANCE_WAN;
}

/* Returns the length of the address in ADDRESS:PORT. */
static size_t address_size(const char *end)
{
    const char *colon = strrchr(end, ':');
    return colon != NULL ? (size_t)(colon - end) : strlen(end);
}

char *connection_pair_name(const connection_result *r)
{
    return g_strdup_printf("%s %.*s %.*s", r->distance == DISTANCE_LOCAL ? r->host : "", (int)address_size(r->local),
                           r->local, (int)address_size(r->peer), r->peer);
}

/* Sets `carried` of each result to the highest rate of all connections between the same two hosts. */
static void find_carried(const GPtrArray *results)
{
    GHashTable *rates = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (int pass = 0; pass < 2; pass++)
        for (guint i = 0; i < results->len; i++) {
            connection_result *r = g_ptr_array_index(results, i);
            char *pair = connection_pair_name(r);
            double *rate = g_hash_table_lookup(rates, pair);
            if (rate == NULL) {
                rate = g_new0(double, 1);
                g_hash_table_insert(rates, g_strdup(pair), rate);
            }
            *rate = fmax(*rate, r->path_rate);
            r->carried = *rate;
            g_free(pair);
        }
    g_hash_table_destroy(rates);
}

/*
 * Returns whether the losses recur after similar numbers of bytes, as they do at a policer when the window has grown
 * again. Between random losses, the standard deviation of these numbers is about their mean, with a standard error of
 * 1/sqrt(number of losses). In simulations with 4 to 80 random losses, at most 4 % of the connections pass this test,
 * and about 1 % with at least 8 losses.
 */
static bool is_regular(const connection_entry *e)
{
    return sqrt(e->gap_squares / e->losses) < (1 - 2 / sqrt(e->losses + 4)) * e->gap_mean;
}

/* Returns whether the losses of a connection show a limit of the path, a policer or a queue, and not random losses. */
static bool is_limit_of_path(const connection_entry *e)
{
    bool full = e->full_losses > e->losses / 2;
    if (!e->last.keeps_rate)
        return e->threshold_mean >= THRESHOLD_MIN &&
               sqrt(e->threshold_squares / e->losses) < SAME_WINDOW * e->threshold_mean && (full || is_regular(e));
    double lost = e->resent_mean * e->resent_intervals;
    return lost > PROBE_LOSS * e->resent_segments && e->resent_squares > GROUPED * e->resent_mean * e->resent_intervals;
}

/*
 * Decides from all losses of a connection whether the path, a policer or random losses limited the congestion window.
 */
static void divide_losses(connection_entry *e)
{
    connection_result *r = &e->sent;
    if (e->losses < LOSSES_MIN)
        return;
    bool full = e->full_losses > e->losses / 2;
    bool same = is_limit_of_path(e);
    if (same)
        connection_move(r, CAUSE_LOSS, full ? CAUSE_PATH : CAUSE_POLICED, 1);
    if (!full && (same || !e->last.keeps_rate))
        connection_move(r, CAUSE_PATH, same ? CAUSE_POLICED : CAUSE_LOSS, 1);
}

/*
 * Replaces the estimated duration of the handshake with the exact duration, if one of the ends measured it. The socket
 * that accepts the connection begins only after most of the handshake.
 */
static void set_handshake(connection_result *r, const connection_entry *e, const connection_entry *peer)
{
    double exact_ns = fmax(e->sent.handshake_ns, peer != NULL ? peer->sent.handshake_ns : 0);
    double seen_ns = r->cause_ns[CAUSE_HANDSHAKE];
    r->handshake_ns = exact_ns;
    if (exact_ns <= 0)
        return;
    r->wall_ns += exact_ns - seen_ns;
    r->cause_ns[CAUSE_HANDSHAKE] = exact_ns;
    for (guint i = 0; seen_ns > exact_ns && r->slices != NULL && i < r->slices->len; i++)
        g_array_index(r->slices, connection_slice, i).cause_ns[CAUSE_HANDSHAKE] *= exact_ns / seen_ns;
}

/*
 * Returns the duration of the TLS handshake according to a record of a socket's host, or 0. If the addresses were used
 * again, this is the first record after the socket's first record. The handshake begins before the socket's last
 * record; otherwise, it belongs to a later connection.
 */
static double find_tls(connection_table *t, const connection_entry *e)
{
    connection_set_ends_key(t->key, e->sent.host, e->sent.local, e->sent.peer);
    const GArray *list = g_hash_table_lookup(t->tls, t->key->str);
    for (guint i = 0; list != NULL && i < list->len; i++) {
        const connection_tls *tls = &g_array_index(list, connection_tls, i);
        if (tls->time_ns >= e->first_ns)
            return (double)tls->time_ns - tls->duration_ns <= (double)e->last.time_ns ? tls->duration_ns : 0;
    }
    return 0;
}

/*
 * Counts the TLS handshake as time of the handshake. During it, the programs wait for each other's messages, so the
 * module takes the time from the first time in which the sender was idle, and then from the slow start.
 */
static void add_tls_handshake(connection_table *t, connection_result *r, const connection_entry *e,
                              const connection_entry *peer)
{
    static const connection_cause sources[] = {CAUSE_SENDER_IDLE, CAUSE_SLOW_START, CAUSE_UNKNOWN};
    double own_ns = find_tls(t, e), left_ns = own_ns > 0 || peer == NULL ? own_ns : find_tls(t, peer);
    r->tls_ns = left_ns;
    for (size_t k = 0; k < G_N_ELEMENTS(sources); k++) {
        double moved_ns = fmin(left_ns, r->cause_ns[sources[k]]), left_in_slices_ns = moved_ns;
        r->cause_ns[sources[k]] -= moved_ns;
        r->estimated_ns[sources[k]] = fmin(r->estimated_ns[sources[k]], r->cause_ns[sources[k]]);
        r->cause_ns[CAUSE_HANDSHAKE] += moved_ns;
        left_ns -= moved_ns;
        for (guint i = 0; r->slices != NULL && i < r->slices->len; i++) {
            double *slice = g_array_index(r->slices, connection_slice, i).cause_ns;
            double part_ns = fmin(left_in_slices_ns, slice[sources[k]]);
            slice[sources[k]] -= part_ns;
            slice[CAUSE_HANDSHAKE] += part_ns;
            left_in_slices_ns -= part_ns;
        }
    }
}

/*
 * Counts the time with a queue as time of the reverse path. BBR keeps a queue short, so the other time of the path
 * counts too if the mean round-trip time shows a queue.
 */
static void move_to_reverse(connection_entry *e)
{
    connection_result *r = &e->sent;
    connection_move(r, CAUSE_PATH_QUEUE, CAUSE_REVERSE, 1);
    if (e->last.keeps_rate && r->rtt_ns > BBR_QUEUE_FACTOR * r->rtt_min_ns)
        connection_move(r, CAUSE_PATH, CAUSE_REVERSE, 1);
}

static void finish_sent(const connection_table *t, connection_entry *e, const connection_entry *peer)
{
    connection_result *r = &e->sent;
    divide_start(e, peer);
    divide_window(e, peer);
    divide_losses(e);
    r->rtt_ns = e->rtt_samples > 0 ? e->rtt_sum_us / e->rtt_samples * 1e3 : 0;
    r->path = connection_paths_find(t->paths, r->host, r->local, peer != NULL ? peer->sent.host : "", r->peer,
                                    e->first_ns, e->last.time_ns);
    r->stalled = e->last.times_out;
    double reverse_part = peer != NULL ? connection_reverse_part(e, peer, r->rtt_ns - r->rtt_min_ns) : -1;
    if (reverse_part < 0)
        reverse_part = connection_path_reverse_part(&r->path, INCREASE_MIN * (r->rtt_ns - r->rtt_min_ns));
    /* A program that does not read also delays acknowledgements. */
    if (reverse_part > REVERSE_PART && (peer == NULL || !is_unread(peer)))
        move_to_reverse(e);
    if (peer == NULL)
        return;
    r->ends = ENDS_BOTH;
    r->peer_host = peer->sent.host;
    r->peer_program = peer->sent.program;
    r->peer_buffer = peer->last.buffer_in;
}

/* Completes the result for the data that a socket received, if the log has no records of the sender. */
static void finish_received(connection_entry *e)
{
    connection_result *r = &e->received;
    r->rtt_ns = e->receive_rtt_samples > 0 ? e->receive_rtt_sum_us / e->receive_rtt_samples * 1e3 : 0;
    r->rtt_min_ns = e->sent.rtt_min_ns;
}

/*
 * Returns the result for the direction with more data, or NULL if the connection carried no data. Marks both sockets as
 * joined.
 */
static connection_result *join_ends(connection_table *t, connection_entry *e)
{
    connection_entry *peer = find_peer(t, e);
    peer = peer != NULL ? peer : find_translated(t, e);
    connection_entry *sender = e, *receiver = peer;
    double out = e->sent.bytes, in = e->received.bytes;
    if (peer != NULL) {
        peer->joined = true;
        out = fmax(out, peer->received.bytes);
        in = fmax(in, peer->sent.bytes);
    }
    e->joined = true;
    if (in > out)
        sender = peer, receiver = e;
    bool measured = sender != NULL && (sender->sent.bytes > 0 || sender->sent.segments > 0);
    if (!measured && (receiver == NULL || receiver->received.bytes <= 0))
        return NULL;
    connection_result *r = measured ? &sender->sent : &receiver->received;
    if (measured)
        finish_sent(t, sender, receiver);
    else
        finish_received(receiver);
    set_handshake(r, e, peer);
    add_tls_handshake(t, r, e, peer);
    r->returned = fmin(in, out);
    const connection_entry *source = measured ? sender : receiver;
    r->begin_ns = source->first_ns;
    r->end_ns = source->last.time_ns;
    r->rtt_min_ns = isfinite(r->rtt_min_ns) ? r->rtt_min_ns : 0;
    r->total = fmax(r->total, r->bytes);
    r->rate = r->wall_ns > 0 ? r->bytes / r->wall_ns * 1e9 : 0;
    r->distance = find_distance(r);
    for (int c = 0; c < CAUSE_COUNT; c++)
        r->first = r->cause_ns[c] > r->cause_ns[r->first] ? (connection_cause)c : r->first;
    return r;
}

/* Stores the host of an address. If several hosts have the address, as in private networks, the host is unknown. */
static void learn_address(GHashTable *hosts, const char *end, const char *host)
{
    if (host[0] == '\0' || connection_is_loopback(end))
        return;
    char *address = g_strndup(end, address_size(end));
    const char *known = g_hash_table_lookup(hosts, address);
    g_hash_table_replace(hosts, address, (gpointer)(known == NULL || strcmp(known, host) == 0 ? host : ""));
}

/* Sets the host names that are missing from a connection's own records, from the records of other connections. */
static void find_hosts(const connection_table *t, GPtrArray *results)
{
    GHashTable *hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < t->order->len; i++) {
        const connection_entry *e = g_ptr_array_index(t->order, i);
        learn_address(hosts, e->sent.local, e->sent.host);
    }
    for (guint i = 0; i < results->len; i++) {
        connection_result *r = g_ptr_array_index(results, i);
        const char **unknown = r->host[0] == '\0' ? &r->host : &r->peer_host,
                   *end = r->host[0] == '\0' ? r->local : r->peer;
        if ((*unknown)[0] != '\0')
            continue;
        char *address = g_strndup(end, address_size(end));
        const char *host = g_hash_table_lookup(hosts, address);
        *unknown = host != NULL ? host : "";
        g_free(address);
    }
    g_hash_table_destroy(hosts);
}

GPtrArray *connection_table_finish(connection_table *t)
{
    GPtrArray *results = g_ptr_array_new();
    for (guint i = 0; i < t->order->len; i++) {
        connection_entry *e = g_ptr_array_index(t->order, i);
        connection_result *r = !e->joined ? join_ends(t, e) : NULL;
        if (r != NULL)
            g_ptr_array_add(results, r);
    }
    find_carried(results);
    connection_find_sharing(results);
    connection_find_bottlenecks(results);
    find_hosts(t, results);
    return results;
}

const char *connection_cause_name(connection_cause cause)
{
    static const char *const names[CAUSE_COUNT] = {
        "handshake",      "sender idle", "sending host", "send buffer", "receiving program",       "receiving host",
        "receive buffer", "slow start",  "loss",         "path rate",   "path rate, with a queue", "policed rate",
        "reverse path",   "unknown"};
    return names[cause];
}

const char *connection_distance_name(connection_distance distance)
{
    static const char *const names[] = {"local", "LAN", "WAN", "unknown"};
    return names[distance];
}

const char *connection_ends_name(connection_ends ends)
{
    static const char *const names[] = {"sender", "receiver", "both"};
    return names[ends];
}

const char *connection_confidence(const connection_result *r, connection_cause cause)
{
    if (cause == CAUSE_HANDSHAKE && r->handshake_ns > 0)
        return "high";
    bool is_alone = r->origin == ORIGIN_SOCKET && r->ends == ENDS_RECEIVER;
    bool estimated = cause >= CAUSE_SLOW_START || r->estimated_ns[cause] > ESTIMATED_MAX * r->cause_ns[cause];
    if (r->intervals < 10 || cause == CAUSE_UNKNOWN || is_alone)
        return "low";
    return estimated ? "medium" : "high";
}
