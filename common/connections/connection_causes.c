#include "config.h"

#include "connections/connection_entry.h"

#include <math.h>
#include <string.h>

/* The value of TCP.SSTHRESH before the first loss. */
#define SSTHRESH_INFINITE 0x7fffffff

/* Data counts as queued on the path if the round-trip time exceeds its minimum by this factor and by this time. */
#define QUEUE_FACTOR 1.5
#define QUEUE_US 2000.0

/*
 * Data can wait in a queue if this share of the data is in flight that the path carries in its minimum round-trip time.
 * The share is below 1, because other connections may fill the rest of the queue. The rate that the path carries is the
 * highest mean of about this number of intervals, because acknowledgements that arrive together raise the rate of a
 * single interval.
 */
#define FILLING 0.5
#define MEAN_INTERVALS 8

/* A receiver with a small window delays acknowledgements by at most this time (TCP_DELACK_MAX). */
#define ACK_DELAY_US 200000.0

/*
 * A full queue on the path counts as the cause of a loss if, before the loss, the round-trip time exceeded its minimum
 * by this factor and by this time.
 */
#define FILLED_FACTOR 1.2
#define FILLED_US 500.0

/*
 * For the statistics of all losses, the queue counts as full at a loss if the round-trip time has exceeded its minimum
 * by this factor.
 */
#define FULL_FACTOR 1.3

/* In slow start, the congestion window grows by this factor within two round trips. */
#define START_GROWTH 1.1

/* After a loss, the loss counts as the limit while the rate is below this share of the highest rate. */
#define LOSS_RATE 0.9

/*
 * A receiving program counts as slow if unread data occupies this share of the receive buffer. A program that keeps up
 * leaves only the data that arrives while it wakes up.
 */
#define UNREAD 0.1

/* A send buffer counts as full if data occupies this share of it (the rest is overhead). */
#define FILLED 0.4

/*
 * If the log states how much memory a send buffer uses (including overhead), the buffer counts as full above this
 * share. The kernel wakes a writer when 2/3 or less is in use (sk_stream_min_wspace).
 */
#define MEMORY_FILLED 0.6

/*
 * If a sender paces its segments, a full send buffer counts as its limit only if less than this share of the data in
 * the buffer is unsent. The kernel wakes a writer when a third of the buffer is free (sk_stream_min_wspace). BBR sends
 * the data of the next write slowly, so up to a third is unsent.
 */
#define UNSENT 0.25
#define UNSENT_BBR 0.4

/*
 * BBR probes for more bandwidth once in a cycle of this number of round trips. A limit to which BBR has adapted its
 * pacing is visible only then.
 */
#define CYCLE_TRIPS 8

/* If the window is below this share of the largest window, unread data counts as the reason. */
#define WINDOW_CLOSED 0.5

/*
 * Without the sender's records, a receive buffer counts as full if the data of a round trip occupies this share of it.
 * A buffer that the kernel adjusts is larger (tcp_rcv_space_adjust).
 */
#define TRIP_FILLED 0.45

/* If the peer enlarges its window within this number of round trips after the start, the time before counts as
 * start-up. */
#define START_TRIPS 30

/* A program counts as waiting for its host if it waits for a processor in more than this share of the time. */
#define WAITED 0.5

/* If an interval spans more slices than this number, the table adds the interval only to the interval's last slice. */
enum { SLICES_MAX = 64 };

/* To limit the number of slices, the table doubles the length of its slices, up to this length. */
#define SLICE_NS_MAX (3600 * NL_NS_PER_SECOND)

/* The kernel's clocks count in ticks of at most this length. */
#define TICK_US 10000.0

/*
 * The module replaces larger values of fields with this value, so that no sum overflows. 1e15 bytes are 1 PB, and 1e15
 * us are 31 years.
 */
#define NUMBER_MAX 1e15

/* TCP.DELAY.IN counts modulo this value: timestamps in segments have 32 bits and count milliseconds. */
#define DELAY_MODULUS_US 4294967296e3

/* In older logs, this value of the kernel stands for an unknown minimum round-trip time. */
#define RTT_MIN_UNKNOWN_US 4294967295.0

enum { TEXT_MAX = 256 /* bytes; the module truncates longer texts of fields */ };

static void connection_entry_free(gpointer data)
{
    connection_entry *e = data;
    g_clear_pointer(&e->sent.slices, g_array_unref);
    g_clear_pointer(&e->progress, g_array_unref);
    g_clear_pointer(&e->received.slices, g_array_unref);
    g_free(e->key);
    g_free(e);
}

connection_table *connection_table_new(int64_t slice_ns, size_t slices_max)
{
    connection_table *t = g_new0(connection_table, 1);
    t->slice_ns = slice_ns;
    t->slices_max = slices_max;
    t->order = g_ptr_array_new();
    t->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, connection_entry_free);
    t->by_ends = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    t->tls = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
    t->by_sequence = g_hash_table_new(g_int64_hash, g_int64_equal);
    t->paths = connection_paths_new();
    t->names = g_string_chunk_new(4096);
    t->key = g_string_new("");
    return t;
}

void connection_table_free(connection_table *t)
{
    if (t == NULL)
        return;
    g_hash_table_destroy(t->by_ends);
    g_hash_table_destroy(t->tls);
    g_hash_table_destroy(t->by_sequence);
    g_ptr_array_unref(t->order);
    g_hash_table_destroy(t->entries);
    connection_paths_free(t->paths);
    g_string_chunk_free(t->names);
    g_string_free(t->key, TRUE);
    g_free(t);
}

int64_t connection_table_slice_ns(const connection_table *t)
{
    return t->slice_ns;
}

size_t connection_table_count(const connection_table *t)
{
    return g_hash_table_size(t->entries);
}

uint64_t connection_table_ignored(const connection_table *t)
{
    return t->ignored;
}

/* ---- sockets ---- */

static double sample_number(const nl_record *record, const char *name)
{
    nl_field field;
    double value;
    return nl_record_find(record, name, &field) && nl_field_double(&field, &value) && isfinite(value)
               ? CLAMP(value, 0, NUMBER_MAX)
               : 0;
}

static bool has_field(const nl_record *record, const char *name)
{
    nl_field field;
    return nl_record_find(record, name, &field);
}

/* Returns a sequence number, or -1 if the field is missing or invalid. */
static int64_t sample_sequence(const nl_record *record, const char *name)
{
    nl_field field;
    double value;
    bool valid =
        nl_record_find(record, name, &field) && nl_field_double(&field, &value) && value >= 0 && value <= UINT32_MAX;
    return valid ? (int64_t)value : -1;
}

/* Returns a text that is not NULL and has at most TEXT_MAX bytes. */
static nl_string cut_text(nl_string text)
{
    return text.size > 0 ? (nl_string){text.data, MIN(text.size, TEXT_MAX)} : (nl_string){"", 0};
}

/* Returns the text of a field, or "". */
static nl_string sample_text(const nl_record *record, const char *name, char scratch[NL_FIELD_TEXT_SIZE])
{
    nl_field field;
    return cut_text(nl_record_find(record, name, &field) ? nl_field_text(&field, scratch) : (nl_string){"", 0});
}

/* Returns a copy of the text that is valid as long as the table exists. Equal texts share a copy. */
static const char *keep_text(connection_table *t, nl_string text)
{
    char *copy = g_strndup(text.data, text.size);
    const char *kept = g_string_chunk_insert_const(t->names, copy);
    g_free(copy);
    return kept;
}

static bool is_text(const nl_record *record, const char *name, const char *const *values)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = sample_text(record, name, scratch);
    for (; *values != NULL; values++)
        if (text.size == strlen(*values) && memcmp(text.data, *values, text.size) == 0)
            return true;
    return false;
}

static connection_sample sample_read(const nl_record *record)
{
    static const char *const recovering[] = {"recovery", "loss", NULL}, *const connecting[] = {"syn-sent", NULL},
                             *const timeout[] = {"loss", NULL}, *const bbr[] = {"bbr", NULL},
                             *const disk[] = {"D", NULL},
                             *const closed[] = {"fin-wait-1", "fin-wait-2", "closing", "last-ack", NULL};
    double rtt_min_us = sample_number(record, "TCP.RTT.MIN");
    return (connection_sample){
        .time_ns = record->time_ns,
        .busy_us = sample_number(record, "TCP.BUSY"),
        .receiver_us = sample_number(record, "TCP.LIMITED.RECEIVER"),
        .buffer_us = sample_number(record, "TCP.LIMITED.BUFFER"),
        .acked = sample_number(record, "TCP.BYTES.ACKED"),
        .sent = sample_number(record, "TCP.BYTES.SENT"),
        .received = sample_number(record, "TCP.BYTES.RECEIVED"),
        .retransmitted = sample_number(record, "TCP.RETRANS"),
        .resent = sample_number(record, "TCP.BYTES.RETRANS"),
        .rtt_us = sample_number(record, "TCP.RTT"),
        .receive_rtt_us = sample_number(record, "TCP.RTT.RECEIVE"),
        .rtt_min_us = rtt_min_us < RTT_MIN_UNKNOWN_US ? rtt_min_us : 0,
        .cwnd = sample_number(record, "TCP.CWND"),
        .ssthresh = sample_number(record, "TCP.SSTHRESH"),
        .unacked = sample_number(record, "TCP.UNACKED"),
        .unsent = sample_number(record, "TCP.UNSENT"),
        .mss = sample_number(record, "TCP.MSS"),
        .window = sample_number(record, "TCP.WINDOW"),
        .rate = sample_number(record, "TCP.RATE"),
        .rate_limited = sample_number(record, "TCP.RATE.APP.LIMITED"),
        .queue_in = sample_number(record, "TCP.QUEUE.IN"),
        .buffer_in = sample_number(record, "TCP.BUFFER.IN"),
        .buffer_out = sample_number(record, "TCP.BUFFER.OUT"),
        .queue_out = sample_number(record, "TCP.QUEUE.OUT"),
        .memory_out = sample_number(record, "TCP.MEMORY.OUT"),
        .waited_us = sample_number(record, "TCP.OWNER.WAIT"),
        .waits_for_disk = is_text(record, "TCP.OWNER.STATE", disk),
        .delay_us = has_field(record, "TCP.DELAY.IN") ? sample_number(record, "TCP.DELAY.IN") : -1,
        .sequence_out = sample_sequence(record, "TCP.SEQUENCE.OUT"),
        .sequence_in = sample_sequence(record, "TCP.SEQUENCE.IN"),
        .recovers = is_text(record, "TCP.RECOVERY", recovering),
        .times_out = is_text(record, "TCP.RECOVERY", timeout),
        .keeps_rate = is_text(record, "TCP.ALGORITHM", bbr),
        .connects = is_text(record, "TCP.STATE", connecting),
        .closed = is_text(record, "TCP.STATE", closed),
    };
}

bool connection_is_loopback(const char *address)
{
    return g_str_has_prefix(address, "127.") || g_str_has_prefix(address, "[::1]");
}

void connection_set_ends_key(GString *key, const char *host, const char *local, const char *peer)
{
    g_string_printf(key, "%s %s %s", local, peer, connection_is_loopback(peer) ? host : "");
}

/*
 * Returns the entry of a record's socket, or NULL if the table is full or an address is missing. The cookie
 * distinguishes sockets that have the same addresses one after the other.
 */
static connection_entry *find_entry(connection_table *t, const nl_record *record)
{
    char scratch[3][NL_FIELD_TEXT_SIZE];
    nl_string host = cut_text(record->host), local = sample_text(record, "TCP.LOCAL", scratch[0]);
    nl_string peer = sample_text(record, "TCP.PEER", scratch[1]),
              cookie = sample_text(record, "TCP.COOKIE", scratch[2]);
    if (local.size == 0 || peer.size == 0)
        return NULL;
    g_string_printf(t->key, "%.*s %.*s %.*s %.*s", (int)host.size, host.data, (int)local.size, local.data,
                    (int)peer.size, peer.data, (int)cookie.size, cookie.data);
    connection_entry *e = g_hash_table_lookup(t->entries, t->key->str);
    if (e == NULL && g_hash_table_size(t->entries) < CONNECTIONS_MAX) {
        e = g_new0(connection_entry, 1);
        e->key = g_strdup(t->key->str);
        e->sent = (connection_result){.ends = ENDS_SENDER,
                                      .host = keep_text(t, host),
                                      .local = keep_text(t, local),
                                      .peer = keep_text(t, peer),
                                      .peer_host = "",
                                      .program = "",
                                      .peer_program = "",
                                      .rtt_min_ns = INFINITY};
        e->sequence_out = e->sequence_in = -1;
        e->received = e->sent;
        e->received.ends = ENDS_RECEIVER;
        e->received.host = "";
        e->received.peer_host = e->sent.host;
        e->received.local = e->sent.peer;
        e->received.peer = e->sent.local;
        if (t->slice_ns > 0) {
            e->sent.slices = g_array_new(FALSE, TRUE, sizeof(connection_slice));
            e->received.slices = g_array_new(FALSE, TRUE, sizeof(connection_slice));
        }
        g_hash_table_insert(t->entries, e->key, e);
        g_ptr_array_add(t->order, e);
        connection_set_ends_key(t->key, e->sent.host, e->sent.local, e->sent.peer);
        e->older = g_hash_table_lookup(t->by_ends, t->key->str);
        g_hash_table_replace(t->by_ends, g_strdup(t->key->str), e);
    }
    return e;
}

/* Keeps the first sequence numbers after the handshake. */
static void keep_sequence(connection_table *t, connection_entry *e, const connection_sample *now)
{
    if (e->sequence_in >= 0 || now->connects || now->sequence_in < 0 || now->sequence_out < 0)
        return;
    e->sequence_in = now->sequence_in;
    e->sequence_out = now->sequence_out;
    e->older_sequence = g_hash_table_lookup(t->by_sequence, &e->sequence_in);
    g_hash_table_replace(t->by_sequence, &e->sequence_in, e);
}

/* ---- causes ---- */

/* Returns b - a. Requires b >= a. */
static double elapsed_ns(int64_t a_ns, int64_t b_ns)
{
    return (double)((uint64_t)b_ns - (uint64_t)a_ns);
}

/* Returns whether the data in flight can fill the path, and wait in a queue. With less data, the delays only vary. */
static bool fills_path(const connection_entry *e, const connection_sample *s)
{
    return s->unacked * s->mss >= FILLING * e->carried_rate * s->rtt_min_us / 1e6;
}

/* Returns whether data waits in a queue on the path. */
static bool is_queued(const connection_entry *e, const connection_sample *s)
{
    return s->rtt_min_us > 0 && s->rtt_us > QUEUE_FACTOR * s->rtt_min_us && s->rtt_us > s->rtt_min_us + QUEUE_US &&
           fills_path(e, s);
}

/* Adds a loss to the statistics. Ignores the first loss, which ends slow start, because it may occur at any window. */
static void add_loss(connection_entry *e, const connection_sample *b)
{
    if (e->had_loss && b->rtt_min_us > 0) {
        double deviation = b->ssthresh - e->threshold_mean;
        e->losses++;
        e->threshold_mean += deviation / e->losses;
        e->threshold_squares += deviation * (b->ssthresh - e->threshold_mean);
        e->full_losses += e->rtt_high_us > FULL_FACTOR * b->rtt_min_us;
        double gap = b->acked - e->loss_acked, gap_deviation = gap - e->gap_mean;
        e->gap_mean += gap_deviation / e->losses;
        e->gap_squares += gap_deviation * (gap - e->gap_mean);
    }
    e->had_loss = true;
    e->loss_acked = b->acked;
}

/* Returns whether data in flight fills the peer's receive window. */
static bool is_window_full(const connection_sample *s)
{
    return s->window > 0 && (s->unacked + 1) * s->mss > s->window;
}

/* Adds an interval after the first loss to the statistics of retransmissions. */
static void add_retransmissions(connection_entry *e, const connection_sample *a, const connection_sample *b)
{
    if (!e->had_loss || b->sent <= a->sent)
        return;
    double count = fmax(0, b->retransmitted - a->retransmitted), deviation = count - e->resent_mean;
    e->resent_intervals++;
    e->resent_mean += deviation / e->resent_intervals;
    e->resent_squares += deviation * (count - e->resent_mean);
    e->resent_segments += b->mss > 0 ? (b->sent - a->sent) / b->mss : 0;
}

/* Updates the entry's state: the growth of its window, the last time when the peer's window was full, and its losses.
 */
static void follow_window(connection_entry *e, const connection_sample *a, const connection_sample *b)
{
    if (b->cwnd > START_GROWTH * e->cwnd_max) {
        e->cwnd_max = b->cwnd;
        e->grown_ns = b->time_ns;
    }
    if (is_window_full(b) || b->receiver_us > a->receiver_us)
        e->window_full_ns = b->time_ns;
    add_retransmissions(e, a, b);
    double queued_rtt_us = fills_path(e, b) ? b->rtt_us : 0;
    e->rtt_high_us = fmax(e->rtt_high_us, queued_rtt_us);
    if (b->retransmitted > a->retransmitted) {
        bool full = e->rtt_high_us > FILLED_FACTOR * b->rtt_min_us && e->rtt_high_us > b->rtt_min_us + FILLED_US;
        if (!a->recovers)
            add_loss(e, b);
        /*
         * A recovery empties the queue. During the recovery, an empty queue is therefore no sign that the first loss
         * had another cause.
         */
        e->queue_lost = full || (a->recovers && e->queue_lost);
        e->rtt_high_us = queued_rtt_us;
    }
}

/*
 * Returns whether all data that the program has written is in flight. Ignores unsent data that is smaller than a
 * segment, because such data may wait for an acknowledgement (RFC 896).
 */
static bool is_all_sent(const connection_sample *s)
{
    return s->unsent < fmax(s->mss, 1);
}

/* Returns whether the program that owns the socket waited for a processor or a disk. */
static bool is_waiting(const connection_sample *a, const connection_sample *b)
{
    return b->waits_for_disk || b->waited_us - a->waited_us > WAITED * elapsed_ns(a->time_ns, b->time_ns) / 1e3;
}

/* Returns the cause of the time in which the sending program did not write. */
static connection_cause idle_cause(const connection_sample *a, const connection_sample *b)
{
    return is_waiting(a, b) ? CAUSE_SENDER_HOST : CAUSE_SENDER_IDLE;
}

static bool is_filled(const connection_sample *s)
{
    return s->memory_out > 0 ? s->memory_out > MEMORY_FILLED * s->buffer_out
                             : s->buffer_out > 0 && s->queue_out > FILLED * s->buffer_out;
}

/*
 * Returns whether the send buffer is full and can be a limit. If the kernel adjusts the buffer, the buffer has twice
 * the size that the congestion window needs (tcp_sndbuf_expand). An adjusted buffer is therefore full only at its
 * maximum size. If the log lacks the used memory, an adjusted buffer does not count as full. A program that has closed
 * the socket writes no more.
 */
static bool is_limited_by_buffer(const connection_entry *e, const connection_sample *s)
{
    return is_filled(s) && !s->closed && (s->memory_out > 0 || !e->buffer_grows);
}

/*
 * Returns whether the peer's window was full in the last cycle of BBR. While the peer's window is the limit, BBR paces
 * its segments at the rate that the window allows, and the window is full only when BBR probes for more bandwidth.
 */
static bool was_window_full(const connection_entry *e, const connection_sample *b)
{
    return e->window_full_ns > 0 && elapsed_ns(e->window_full_ns, b->time_ns) <= CYCLE_TRIPS * 1e3 * b->rtt_us;
}

/*
 * Returns the window or buffer that is full although the congestion window is not, or CAUSE_UNKNOWN. The kernel's
 * clocks do not count such a limit if the sender paces its segments, as BBR does, at the rate that the limit allows.
 */
static connection_cause full_cause(const connection_entry *e, const connection_sample *b)
{
    if (is_window_full(b) || (b->keeps_rate && was_window_full(e, b)))
        return CAUSE_RECEIVE_BUFFER;
    bool in_flight = b->unsent < (b->keeps_rate ? UNSENT_BBR : UNSENT) * b->queue_out;
    bool grows = e->buffer_grows && b->time_ns <= e->grown_ns; /* the kernel enlarges the buffer with the window */
    return in_flight && !grows && is_limited_by_buffer(e, b) ? CAUSE_SEND_BUFFER : CAUSE_UNKNOWN;
}

/*
 * Returns whether the congestion window has grown since the first record, but is still smaller than the path needs: the
 * round-trip time remains near its minimum. CUBIC can reach its slow start threshold before the window fills the path
 * (HyStart).
 */
static bool is_growing(const connection_entry *e, const connection_sample *s)
{
    bool filling = s->rtt_us > FILLED_FACTOR * s->rtt_min_us + FILLED_US;
    return !s->keeps_rate && !filling && s->cwnd > START_GROWTH * e->cwnd_first;
}

/* Returns the cause of the time in which congestion control was the limit. */
static connection_cause congestion_cause(const connection_entry *e, const connection_sample *a,
                                         const connection_sample *b, double rate)
{
    bool lost = b->keeps_rate ? a->times_out || b->times_out
                              : b->retransmitted > a->retransmitted || b->recovers || a->recovers;
    /*
     * The sender sent all data immediately. If data in flight fills the send buffer, the buffer was the limit.
     * Otherwise, the program was the limit. The kernel's own clock misses the buffer's limit if the program fills the
     * buffer with a single write.
     */
    if (!lost && is_all_sent(a) && is_all_sent(b)) {
        if (is_filled(b) && is_queued(e, b))
            return CAUSE_PATH_QUEUE;
        return is_limited_by_buffer(e, b) ? CAUSE_SEND_BUFFER : idle_cause(a, b);
    }
    if (is_queued(e, b))
        return CAUSE_PATH_QUEUE;
    if (!lost && b->unacked + 1 < b->cwnd) {
        connection_cause full = full_cause(e, b);
        if (full != CAUSE_UNKNOWN)
            return full;
        /* BBR paces the data of a program that has written too little to fill the path. */
        if (b->keeps_rate && a->rate_limited > 0 && b->rate_limited > 0 && b->queue_out < b->cwnd * b->mss)
            return idle_cause(a, b);
    }
    if (b->retransmitted > 0 && e->queue_lost)
        return CAUSE_PATH;
    bool reduced = !b->keeps_rate && b->retransmitted > 0 && b->ssthresh < SSTHRESH_INFINITE;
    if (lost || (reduced && rate < LOSS_RATE * e->path_rate))
        return CAUSE_LOSS;
    if (b->retransmitted == 0 && (b->cwnd < b->ssthresh || is_growing(e, b)) &&
        (b->time_ns <= e->grown_ns || elapsed_ns(e->grown_ns, b->time_ns) < 2e3 * b->rtt_us))
        return CAUSE_SLOW_START;
    return CAUSE_PATH;
}

/* ---- slices of time ---- */

/* Adds a part of an interval to the slice with this index, which is the last slice or comes after it. */
static void add_to_slice(GArray *slices, int64_t index, const connection_slice *interval, double part)
{
    if (slices->len == 0 || g_array_index(slices, connection_slice, slices->len - 1).index < index) {
        g_array_set_size(slices, slices->len + 1);
        g_array_index(slices, connection_slice, slices->len - 1).index = index;
    }
    connection_slice *slice = &g_array_index(slices, connection_slice, slices->len - 1);
    slice->bytes += interval->bytes * part;
    slice->retransmitted += interval->retransmitted * part;
    for (int c = 0; c < CAUSE_COUNT; c++)
        slice->cause_ns[c] += interval->cause_ns[c] * part;
}

/* Joins pairs of slices, because the slices become twice as long. */
static void join_slices(GArray *slices)
{
    guint kept = 0;
    for (guint i = 0; i < slices->len; i++) {
        connection_slice slice = g_array_index(slices, connection_slice, i), *last;
        slice.index = (slice.index - (slice.index & 1)) / 2;
        last = kept > 0 ? &g_array_index(slices, connection_slice, kept - 1) : NULL;
        if (last == NULL || last->index != slice.index) {
            g_array_index(slices, connection_slice, kept++) = slice;
            continue;
        }
        last->bytes += slice.bytes;
        last->retransmitted += slice.retransmitted;
        for (int c = 0; c < CAUSE_COUNT; c++)
            last->cause_ns[c] += slice.cause_ns[c];
    }
    g_array_set_size(slices, kept);
}

/* Doubles the length of the slices, up to SLICE_NS_MAX, if the table has more than slices_max slices. */
static void limit_slices(connection_table *t)
{
    if (t->slices_max == 0 || t->slice_count <= t->slices_max || t->slice_ns >= SLICE_NS_MAX)
        return;
    t->slice_ns *= 2;
    t->slice_count = 0;
    for (guint i = 0; i < t->order->len; i++) {
        connection_entry *e = g_ptr_array_index(t->order, i);
        join_slices(e->sent.slices);
        join_slices(e->received.slices);
        t->slice_count += e->sent.slices->len + e->received.slices->len;
    }
}

static void add_slices(connection_table *t, GArray *slices, int64_t begin_ns, int64_t end_ns,
                       const connection_slice *interval)
{
    int64_t first = begin_ns / t->slice_ns, last = (end_ns - 1) / t->slice_ns;
    if (elapsed_ns(first, last) > SLICES_MAX)
        first = last;
    guint before = slices->len;
    for (int64_t i = first; i <= last; i++) {
        double from = i == first ? 0 : (double)(i * t->slice_ns - begin_ns);
        double until = i == last ? elapsed_ns(begin_ns, end_ns) : (double)((i + 1) * t->slice_ns - begin_ns);
        add_to_slice(slices, i, interval, (until - from) / elapsed_ns(begin_ns, end_ns));
    }
    t->slice_count += slices->len - before;
}

/* ---- intervals ---- */

static void add_interval(connection_table *t, connection_result *r, const connection_sample *a,
                         const connection_sample *b, const connection_slice *interval)
{
    r->intervals++;
    r->wall_ns += elapsed_ns(a->time_ns, b->time_ns);
    r->bytes += interval->bytes;
    r->retransmitted += interval->retransmitted;
    for (int c = 0; c < CAUSE_COUNT; c++)
        r->cause_ns[c] += interval->cause_ns[c];
    if (r->slices != NULL)
        add_slices(t, r->slices, a->time_ns, b->time_ns, interval);
}

void connection_move(connection_result *r, connection_cause from, connection_cause to, double share)
{
    double moved_ns = r->cause_ns[from] * share;
    r->cause_ns[to] += moved_ns;
    r->estimated_ns[to] += moved_ns;
    r->cause_ns[from] -= moved_ns;
    r->estimated_ns[from] = fmin(r->estimated_ns[from], r->cause_ns[from]);
    for (guint i = 0; r->slices != NULL && i < r->slices->len; i++) {
        double *slice = g_array_index(r->slices, connection_slice, i).cause_ns;
        slice[to] += slice[from] * share;
        slice[from] -= slice[from] * share;
    }
}

/*
 * Returns whether the peer has enlarged its window during the start. The time before the enlargement is part of the
 * start, because a receiver begins with a small window and enlarges the window while data arrives
 * (tcp_rcv_space_adjust), on a busy host later than on other hosts.
 */
static bool follow_peer_window(connection_entry *e, const connection_sample *b)
{
    double before = e->sent.window;
    e->sent.window = fmax(before, b->window);
    return before > 0 && b->window > START_GROWTH * before && b->retransmitted == 0 && b->cwnd < b->ssthresh &&
           elapsed_ns(e->first_ns, b->time_ns) < START_TRIPS * 1e3 * b->rtt_us;
}

/* Adds the delay of the last segment, unless no segment arrived between two records. */
static void add_delay(connection_entry *e, const connection_sample *a, const connection_sample *b)
{
    if (b->delay_us < 0 || (b->acked <= a->acked && b->received <= a->received))
        return;
    if (e->delays == 0)
        e->delay_first_us = b->delay_us;
    double delay_us = remainder(b->delay_us - e->delay_first_us, DELAY_MODULUS_US);
    e->delay_min_us = e->delays == 0 ? delay_us : fmin(e->delay_min_us, delay_us);
    e->delay_sum_us += delay_us;
    e->delays++;
}

/* Returns the cause with the largest part of an interval. */
static connection_cause main_cause(const connection_slice *interval)
{
    connection_cause main = 0;
    for (connection_cause c = 0; c < CAUSE_COUNT; c++)
        main = interval->cause_ns[c] > interval->cause_ns[main] ? c : main;
    return main;
}

/* Divides the time between two records of the sending socket among the causes. */
static void divide_sent(connection_table *t, connection_entry *e, const connection_sample *a,
                        const connection_sample *b)
{
    connection_result *r = &e->sent;
    connection_slice interval = {0};
    double wall_us = elapsed_ns(a->time_ns, b->time_ns) / 1e3, *cause_ns = interval.cause_ns;
    double busy = b->busy_us - a->busy_us, receiver = b->receiver_us - a->receiver_us;
    double buffer = b->buffer_us - a->buffer_us, acked = b->acked - a->acked;
    if (a->connects || busy < 0 || receiver < 0 || buffer < 0 || acked < 0) {
        cause_ns[a->connects ? CAUSE_HANDSHAKE : CAUSE_UNKNOWN] = wall_us * 1e3;
        add_interval(t, r, a, b, &interval);
        return;
    }
    /* The kernel counts in ticks. Carry the error of up to a tick over to the next interval. */
    busy = fmax(busy, receiver + buffer);
    double idle = wall_us - busy + e->tick_us;
    e->tick_us = fabs(idle) <= TICK_US ? idle : idle > 0 ? 0 : -TICK_US;
    idle = idle > TICK_US ? fmin(idle, wall_us) : 0;
    double scale = busy > 0 ? (wall_us - idle) / busy : 0;
    receiver *= scale, buffer *= scale;
    /* With a queue on the path, a larger buffer or window only makes the queue longer. */
    if (is_queued(e, b)) {
        buffer = 0;
        receiver = b->rtt_us > b->rtt_min_us + ACK_DELAY_US ? 0 : receiver;
    }
    double congestion = fmax(0, wall_us - idle - receiver - buffer), rate = acked / wall_us * 1e6;
    cause_ns[idle_cause(a, b)] = idle * 1e3;
    cause_ns[CAUSE_SEND_BUFFER] += buffer * 1e3;
    cause_ns[CAUSE_RECEIVE_BUFFER] += receiver * 1e3; /* connection_results.c divides this time among the receiving
                                                         program, its host and its buffer */
    e->limited_us[b->window < WINDOW_CLOSED * r->window] += receiver;
    follow_window(e, a, b);
    if (congestion > 0) {
        /* If the program stopped writing in the interval, the module assumes that it stopped in the middle of the
         * interval. */
        connection_cause cause = congestion_cause(e, a, b, rate), ending = cause;
        if (!is_all_sent(a) && is_all_sent(b) && cause != CAUSE_LOSS)
            ending = is_limited_by_buffer(e, b) ? CAUSE_SEND_BUFFER : idle_cause(a, b);
        for (int half = 0; half < 2; half++) {
            connection_cause c = half == 0 ? cause : ending;
            cause_ns[c] += congestion / 2 * 1e3;
            r->estimated_ns[c] += congestion / 2 * 1e3;
            if (c == CAUSE_PATH_QUEUE && b->keeps_rate && was_window_full(e, b))
                e->closed_window_ns += congestion / 2 * 1e3;
        }
    }
    interval.bytes = acked;
    interval.retransmitted = fmax(0, b->retransmitted - a->retransmitted);
    add_interval(t, r, a, b, &interval);
    e->last_cause = main_cause(&interval);
    if (b->mss > 0)
        r->segments += fmax(0, b->sent - a->sent) / b->mss;
    if (acked > 0) {
        e->rtt_sum_us += b->rtt_us;
        e->rtt_samples++;
    }
    if (!a->recovers && !b->recovers) /* the end of a recovery acknowledges data that arrived long before */
        e->path_rate = fmax(e->path_rate, rate);
    e->mean_rate += (rate - e->mean_rate) / MEAN_INTERVALS;
    e->carried_rate = fmax(e->carried_rate, e->mean_rate);
}

/*
 * Divides the time of the sending socket from the end of the handshake to the first record after it. The congestion
 * window begins small, so it is the limit while data is in flight. Ignores a time that is too long for a start, because
 * the connection may be older than the sensor.
 */
static void divide_beginning(connection_table *t, connection_entry *e, int64_t established_ns)
{
    const connection_sample begin = {.time_ns = established_ns}, *first = &e->first;
    if (first->time_ns <= established_ns ||
        elapsed_ns(established_ns, first->time_ns) > START_TRIPS * 1e3 * first->rtt_us)
        return;
    connection_slice interval = {.bytes = first->acked, .retransmitted = first->retransmitted};
    double wall_us = elapsed_ns(established_ns, first->time_ns) / 1e3, busy_us = fmin(first->busy_us, wall_us);
    double receiver_us = fmin(first->receiver_us, busy_us), buffer_us = fmin(first->buffer_us, busy_us - receiver_us);
    interval.cause_ns[idle_cause(&begin, first)] += (wall_us - busy_us) * 1e3;
    interval.cause_ns[CAUSE_RECEIVE_BUFFER] += receiver_us * 1e3;
    interval.cause_ns[CAUSE_SEND_BUFFER] += buffer_us * 1e3;
    connection_cause cause = first->retransmitted > 0 ? CAUSE_LOSS : CAUSE_SLOW_START;
    interval.cause_ns[cause] += (busy_us - receiver_us - buffer_us) * 1e3;
    add_interval(t, &e->sent, &begin, first, &interval);
}

/*
 * Divides the time of the sending socket from the last record to the end of the connection. If the last record is part
 * of the handshake, the causes of the time after the handshake are unknown.
 */
static void divide_end(connection_table *t, connection_entry *e, int64_t established_ns, const connection_sample *end)
{
    connection_sample from = e->last;
    connection_cause cause = is_all_sent(&from) ? idle_cause(&from, &from) : e->last_cause;
    if (from.connects) {
        cause = e->sent.handshake_ns > 0 ? CAUSE_UNKNOWN : CAUSE_HANDSHAKE;
        from.time_ns = MAX(from.time_ns, e->sent.handshake_ns > 0 ? established_ns : from.time_ns);
    }
    if (end->time_ns <= from.time_ns)
        return;
    connection_slice interval = {.bytes = fmax(0, end->acked - from.acked)};
    interval.cause_ns[cause] = elapsed_ns(from.time_ns, end->time_ns);
    e->sent.estimated_ns[cause] += interval.cause_ns[cause];
    add_interval(t, &e->sent, &from, end, &interval);
}

/* Divides the time between two records of the receiving socket, which show only the limits of the receiver. */
static void divide_received(connection_table *t, connection_entry *e, const connection_sample *a,
                            const connection_sample *b)
{
    connection_result *r = &e->received;
    double bytes = b->received - a->received, wall_ns = elapsed_ns(a->time_ns, b->time_ns);
    connection_slice interval = {.bytes = fmax(0, bytes)};
    bool unread = b->buffer_in > 0 && b->queue_in > UNREAD * b->buffer_in;
    connection_cause cause = CAUSE_UNKNOWN;
    if (a->connects)
        cause = CAUSE_HANDSHAKE;
    else if (bytes >= 0 && unread)
        cause = is_waiting(a, b) ? CAUSE_RECEIVER_HOST : CAUSE_RECEIVER_PROGRAM;
    else if (bytes > 0 && b->buffer_in > 0 && bytes / wall_ns * b->receive_rtt_us * 1e3 > TRIP_FILLED * b->buffer_in)
        cause = CAUSE_RECEIVE_BUFFER;
    interval.cause_ns[cause] = wall_ns;
    r->estimated_ns[cause] += wall_ns;
    add_interval(t, r, a, b, &interval);
    r->path_rate = fmax(r->path_rate, bytes / wall_ns * 1e9);
    r->peer_buffer = b->buffer_in;
    if (bytes > 0 && b->receive_rtt_us > 0) {
        e->receive_rtt_sum_us += b->receive_rtt_us;
        e->receive_rtt_samples++;
    }
    if (bytes > 0 || b->queue_in > 0) {
        e->receptions++;
        e->unread += unread;
        e->unread_busy += unread && is_waiting(a, b);
    }
}

/* ---- short connections ---- */

/* Adds the time from a to b to both directions. */
static void add_brief(connection_table *t, connection_entry *e, const connection_sample *a, const connection_sample *b,
                      connection_cause cause)
{
    if (b->time_ns <= a->time_ns)
        return;
    connection_slice interval = {.bytes = b->acked - a->acked};
    interval.cause_ns[cause] = elapsed_ns(a->time_ns, b->time_ns);
    add_interval(t, &e->sent, a, b, &interval);
    interval.bytes = b->received - a->received;
    add_interval(t, &e->received, a, b, &interval);
}

/*
 * Adds the record of a connection's end, which also shows when the connection began. If the connection ended before the
 * sensor measured it twice, only its handshake is known, and the causes of its other time are unknown.
 */
static void add_close(connection_table *t, connection_entry *e, const nl_record *record)
{
    connection_sample end = sample_read(record), begin = {0}, established = {0};
    double duration_ns = sample_number(record, "TCP.DURATION") * 1e3;
    e->closed = true;
    e->sent.handshake_ns = sample_number(record, "TCP.HANDSHAKE") * 1e3;
    end.acked = fmax(0, end.sent - end.resent);
    end.received = fmax(0, end.received - 1); /* the kernel counts the FIN */
    e->sent.total = end.acked;
    e->received.total = end.received;
    if (duration_ns <= 0 || __builtin_sub_overflow(end.time_ns, (int64_t)duration_ns, &begin.time_ns))
        return;
    established.time_ns = begin.time_ns + (int64_t)fmin(e->sent.handshake_ns, duration_ns);
    if (e->sent.intervals > 0) {
        if (e->sent.handshake_ns > 0)
            divide_beginning(t, e, established.time_ns);
        divide_end(t, e, established.time_ns, &end);
        limit_slices(t);
        return;
    }
    add_brief(t, e, &begin, &established, CAUSE_HANDSHAKE);
    add_brief(t, e, &established, &end, CAUSE_UNKNOWN);
    e->sent.brief = e->received.brief = true;
    e->sent.retransmitted = end.retransmitted;
    if (end.rtt_min_us > 0)
        e->sent.rtt_min_ns = fmin(e->sent.rtt_min_ns, end.rtt_min_us * 1e3);
    e->rtt_sum_us = end.rtt_us;
    e->rtt_samples = end.rtt_us > 0;
    e->first_ns = begin.time_ns;
    e->last = end;
    limit_slices(t);
}

/* ---- records ---- */

static bool is_event(const nl_record *record, const char *name)
{
    return record->event.size == strlen(name) && memcmp(record->event.data, name, record->event.size) == 0;
}

/* Adds the TLS handshake that a record of nlkernel trace contains. */
static void add_tls(connection_table *t, const nl_record *record)
{
    char scratch[2][NL_FIELD_TEXT_SIZE];
    double duration_ns = sample_number(record, "TLS.HANDSHAKE") * 1e3;
    nl_string local = sample_text(record, "LOCAL", scratch[0]), peer = sample_text(record, "PEER", scratch[1]);
    if (duration_ns <= 0 || local.size == 0 || peer.size == 0 || t->tls_count >= CONNECTIONS_MAX)
        return;
    connection_set_ends_key(t->key, keep_text(t, cut_text(record->host)), keep_text(t, local), keep_text(t, peer));
    GArray *list = g_hash_table_lookup(t->tls, t->key->str);
    if (list == NULL) {
        list = g_array_new(FALSE, FALSE, sizeof(connection_tls));
        g_hash_table_insert(t->tls, g_strdup(t->key->str), list);
    }
    g_array_append_val(list, ((connection_tls){record->time_ns, duration_ns}));
    t->tls_count++;
}

void connection_table_add(connection_table *t, const nl_record *record)
{
    bool closes = is_event(record, "TcpClose");
    if (!closes && !is_event(record, "TcpConnection")) {
        if (!connection_paths_add(t->paths, record))
            add_tls(t, record);
        return;
    }
    connection_entry *e = find_entry(t, record);
    if (e == NULL) {
        t->ignored += g_hash_table_size(t->entries) == CONNECTIONS_MAX;
        return;
    }
    if (closes || e->closed) { /* a closed socket may still wait for the end of the peer */
        if (!e->closed)
            add_close(t, e, record);
        return;
    }
    connection_sample now = sample_read(record);
    connection_result *r = &e->sent;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (r->program[0] == '\0')
        r->program = e->received.peer_program = keep_text(t, sample_text(record, "TCP.PROGRAM", scratch));
    connection_add_progress(t, e, &now);
    keep_sequence(t, e, &now);
    if (e->last.time_ns == 0) {
        e->first_ns = now.time_ns;
        e->cwnd_first = now.cwnd;
    }
    bool grown = follow_peer_window(e, &now);
    e->buffer_grows = e->buffer_grows || (r->send_buffer > 0 && now.buffer_out > r->send_buffer);
    r->send_buffer = fmax(r->send_buffer, now.buffer_out);
    r->mss = now.mss;
    if (now.rtt_min_us > 0)
        r->rtt_min_ns = fmin(r->rtt_min_ns, now.rtt_min_us * 1e3);
    if (now.rate_limited == 0)
        r->path_rate = fmax(r->path_rate, now.rate);
    if (e->last.time_ns != 0 && now.time_ns > e->last.time_ns) {
        add_delay(e, &e->last, &now);
        divide_sent(t, e, &e->last, &now);
        divide_received(t, e, &e->last, &now);
        if (grown) {
            e->start_ns = r->cause_ns[CAUSE_RECEIVE_BUFFER];
            e->limited_us[0] = e->limited_us[1] = 0;
        }
        limit_slices(t);
    }
    e->last = now;
    if (e->first.time_ns == 0 && !now.connects)
        e->first = now;
}
