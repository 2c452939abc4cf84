#include "config.h"

#include "connections/connection_causes.h"

#include <math.h>
#include <string.h>

/* The value of TCP.SSTHRESH before the first loss. */
#define SSTHRESH_INFINITE 0x7fffffff

/* Data counts as queued on the path if the round-trip time exceeds its minimum by this factor and by this time. */
#define QUEUE_FACTOR 1.5
#define QUEUE_US 2000.0

/* A loss counts as caused by a full queue on the path if the round-trip time has exceeded these bounds before. */
#define FILLED_FACTOR 1.2
#define FILLED_US 500.0

/* In slow start, the congestion window grows by this factor within two round trips. */
#define START_GROWTH 1.1

/* After a loss, congestion control counts as limited by loss below this share of the highest rate. */
#define LOSS_RATE 0.9

/* A receive buffer counts as full if unread data occupies this share of it (half of the buffer is overhead). */
#define UNREAD 0.25

/* A send buffer counts as full if data occupies this share of it (the rest is overhead). */
#define FILLED 0.4

/* A window below this share of the largest window has been closed by unread data. */
#define WINDOW_CLOSED 0.5

#define LAN_RTT_US 5000.0

/* A share of a cause counts as measured if at most this part of it was estimated. */
#define ESTIMATED_MAX 0.1

/* Larger values of fields are cut, so that no sum overflows. 1e15 bytes are 1 PB, and 1e15 us are 31 years. */
#define NUMBER_MAX 1e15

/* The kernel's value of an unknown minimum round-trip time, in older logs. */
#define RTT_MIN_UNKNOWN_US 4294967295.0

enum { TEXT_MAX = 256 /* bytes; longer texts of fields are cut */ };

/* The values of one record. */
typedef struct connection_sample {
    int64_t time_ns;
    double busy_us, receiver_us, buffer_us; /* counters */
    double acked, sent, received, retransmitted;
    double rtt_us, rtt_min_us, cwnd, ssthresh, unacked, unsent, mss, window, rate, rate_limited, queue_in;
    double buffer_in, buffer_out, queue_out;
    bool recovers, connects;
} connection_sample;

typedef struct connection_entry {
    connection_result result; /* first, so that results are entries */
    char *key;
    connection_sample last;
    double cwnd_max;
    int64_t grown_ns;   /* time when the congestion window last grew much */
    double rtt_high_us; /* highest round-trip time since the last loss */
    bool queue_lost;    /* the last loss was caused by a full queue */
    double rtt_sum_us, rtt_samples;
    double limited_us[2];      /* receiver-limited time with an open and with a closed window */
    double receptions, unread; /* numbers of intervals: with received or unread data; with a full receive buffer */
    double path_rate;          /* highest rate of an interval, bytes/s */
} connection_entry;

struct connection_table {
    GHashTable *entries; /* key -> connection_entry */
    GHashTable *by_ends; /* "local peer" -> the last entry with these addresses */
    GStringChunk *names;
    GString *key;
    uint64_t ignored;
};

static void connection_entry_free(gpointer data)
{
    connection_entry *e = data;
    g_free(e->key);
    g_free(e);
}

connection_table *connection_table_new(void)
{
    connection_table *t = g_new0(connection_table, 1);
    t->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, connection_entry_free);
    t->by_ends = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    t->names = g_string_chunk_new(4096);
    t->key = g_string_new("");
    return t;
}

void connection_table_free(connection_table *t)
{
    if (t == NULL)
        return;
    g_hash_table_destroy(t->by_ends);
    g_hash_table_destroy(t->entries);
    g_string_chunk_free(t->names);
    g_string_free(t->key, TRUE);
    g_free(t);
}

size_t connection_table_count(const connection_table *t)
{
    return g_hash_table_size(t->entries);
}

uint64_t connection_table_ignored(const connection_table *t)
{
    return t->ignored;
}

/* ---- records ---- */

static double sample_number(const nl_record *record, const char *name)
{
    nl_field field;
    double value;
    return nl_record_find(record, name, &field) && nl_field_double(&field, &value) && isfinite(value)
               ? CLAMP(value, 0, NUMBER_MAX)
               : 0;
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

/* Returns a copy of the text that lives as long as the table. Equal texts share a copy. */
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
    static const char *const recovering[] = {"recovery", "loss", NULL}, *const connecting[] = {"syn-sent", NULL};
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
        .rtt_us = sample_number(record, "TCP.RTT"),
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
        .recovers = is_text(record, "TCP.RECOVERY", recovering),
        .connects = is_text(record, "TCP.STATE", connecting),
    };
}

static bool is_loopback(const char *peer)
{
    return g_str_has_prefix(peer, "127.") || g_str_has_prefix(peer, "[::1]");
}

/* Sets the table's key to the addresses of a socket. Each host has its own loopback addresses. */
static void set_ends_key(connection_table *t, const char *host, const char *local, const char *peer)
{
    g_string_printf(t->key, "%s %s %s", local, peer, is_loopback(peer) ? host : "");
}

/* Returns the entry of a record's socket, or NULL if the table is full or an address is missing. The cookie
 * distinguishes sockets that have the same addresses one after the other. */
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
        e->result = (connection_result){.host = keep_text(t, host),
                                        .local = keep_text(t, local),
                                        .peer = keep_text(t, peer),
                                        .program = "",
                                        .rtt_min_ns = INFINITY};
        g_hash_table_insert(t->entries, e->key, e);
        set_ends_key(t, e->result.host, e->result.local, e->result.peer);
        g_hash_table_replace(t->by_ends, g_strdup(t->key->str), e);
    }
    return e;
}

/* ---- intervals ---- */

/* Returns b - a. Requires b >= a. */
static double elapsed_ns(int64_t a_ns, int64_t b_ns)
{
    return (double)((uint64_t)b_ns - (uint64_t)a_ns);
}

/* Returns whether data waits in a queue on the path. */
static bool is_queued(const connection_sample *s)
{
    return s->rtt_min_us > 0 && s->rtt_us > QUEUE_FACTOR * s->rtt_min_us && s->rtt_us > s->rtt_min_us + QUEUE_US;
}

/* Updates the entry's state: the growth of its window, and its losses. */
static void follow_window(connection_entry *e, const connection_sample *a, const connection_sample *b)
{
    if (b->cwnd > START_GROWTH * e->cwnd_max) {
        e->cwnd_max = b->cwnd;
        e->grown_ns = b->time_ns;
    }
    e->rtt_high_us = fmax(e->rtt_high_us, b->rtt_us);
    if (b->retransmitted > a->retransmitted) {
        e->queue_lost = e->rtt_high_us > FILLED_FACTOR * b->rtt_min_us && e->rtt_high_us > b->rtt_min_us + FILLED_US;
        e->rtt_high_us = b->rtt_us;
    }
}

/* Returns the cause of the time in which congestion control was the limit. */
static connection_cause congestion_cause(const connection_entry *e, const connection_sample *a,
                                         const connection_sample *b, double rate)
{
    bool lost = b->retransmitted > a->retransmitted || b->recovers || a->recovers;
    /* All data was sent at once. If data in flight fills the send buffer, the buffer was the limit, otherwise the
     * program. The kernel's own clock misses the buffer's limit if the program fills the buffer with a single write. */
    if (!lost && b->unsent == 0 && a->unsent == 0 && b->unacked < b->cwnd)
        return b->buffer_out > 0 && b->queue_out > FILLED * b->buffer_out ? CAUSE_SEND_BUFFER : CAUSE_SENDER_IDLE;
    if (is_queued(b))
        return CAUSE_PATH_QUEUE;
    if (b->retransmitted > 0 && e->queue_lost)
        return CAUSE_PATH;
    if (lost || (b->retransmitted > 0 && b->ssthresh < SSTHRESH_INFINITE && rate < LOSS_RATE * e->path_rate))
        return CAUSE_LOSS;
    if (b->retransmitted == 0 && b->cwnd < b->ssthresh &&
        (b->time_ns <= e->grown_ns || elapsed_ns(e->grown_ns, b->time_ns) < 2e3 * b->rtt_us))
        return CAUSE_SLOW_START;
    return CAUSE_PATH;
}

/* Divides the time between two records among the causes. */
static void divide_interval(connection_entry *e, const connection_sample *a, const connection_sample *b)
{
    connection_result *r = &e->result;
    double wall_us = elapsed_ns(a->time_ns, b->time_ns) / 1e3;
    double busy = b->busy_us - a->busy_us, receiver = b->receiver_us - a->receiver_us;
    double buffer = b->buffer_us - a->buffer_us, acked = b->acked - a->acked;
    r->wall_ns += wall_us * 1e3;
    r->intervals++;
    if (a->connects) {
        r->cause_ns[CAUSE_HANDSHAKE] += wall_us * 1e3;
        return;
    }
    if (busy < 0 || receiver < 0 || buffer < 0 || acked < 0) {
        r->cause_ns[CAUSE_UNKNOWN] += wall_us * 1e3;
        return;
    }
    /* The kernel counts in ticks, and it reads the counters slightly after the time of the record. */
    busy = fmax(busy, receiver + buffer);
    double scale = busy > wall_us ? wall_us / busy : 1;
    busy *= scale, receiver *= scale, buffer *= scale;
    double congestion = fmax(0, busy - receiver - buffer), rate = acked / wall_us * 1e6;
    r->cause_ns[CAUSE_SENDER_IDLE] += fmax(0, wall_us - receiver - buffer - congestion) * 1e3;
    r->cause_ns[CAUSE_SEND_BUFFER] += buffer * 1e3;
    r->cause_ns[CAUSE_RECEIVE_BUFFER] += receiver * 1e3; /* divide_window divides this time */
    e->limited_us[b->window < WINDOW_CLOSED * r->window] += receiver;
    follow_window(e, a, b);
    if (congestion > 0) {
        connection_cause cause = congestion_cause(e, a, b, rate);
        r->cause_ns[cause] += congestion * 1e3;
        r->estimated_ns[cause] += congestion * 1e3;
    }
    r->bytes += acked;
    r->retransmitted += fmax(0, b->retransmitted - a->retransmitted);
    if (b->mss > 0)
        r->segments += fmax(0, b->sent - a->sent) / b->mss;
    if (acked > 0) {
        e->rtt_sum_us += b->rtt_us;
        e->rtt_samples++;
    }
    e->path_rate = fmax(e->path_rate, rate);
}

void connection_table_add(connection_table *t, const nl_record *record)
{
    if (record->event.size != strlen("TcpConnection") ||
        memcmp(record->event.data, "TcpConnection", record->event.size))
        return;
    connection_entry *e = find_entry(t, record);
    if (e == NULL) {
        t->ignored += g_hash_table_size(t->entries) == CONNECTIONS_MAX;
        return;
    }
    connection_sample now = sample_read(record);
    connection_result *r = &e->result;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (r->program[0] == '\0')
        r->program = keep_text(t, sample_text(record, "TCP.PROGRAM", scratch));
    r->window = fmax(r->window, now.window);
    r->send_buffer = fmax(r->send_buffer, now.buffer_out);
    r->mss = now.mss;
    if (now.rtt_min_us > 0)
        r->rtt_min_ns = fmin(r->rtt_min_ns, now.rtt_min_us * 1e3);
    if (now.rate_limited == 0)
        r->path_rate = fmax(r->path_rate, now.rate);
    if (e->last.time_ns != 0 && now.time_ns > e->last.time_ns) {
        divide_interval(e, &e->last, &now);
        if (now.received > e->last.received || now.queue_in > 0) {
            e->receptions++;
            e->unread += now.queue_in > UNREAD * now.buffer_in;
        }
    }
    e->last = now;
}

/* ---- results ---- */

/* Divides the time in which the peer's window was the limit between the receiving program and its buffer. */
static void divide_window(connection_table *t, connection_entry *e)
{
    connection_result *r = &e->result;
    set_ends_key(t, r->host, r->peer, r->local);
    const connection_entry *peer = g_hash_table_lookup(t->by_ends, t->key->str);
    r->peer_buffer = peer != NULL ? peer->last.buffer_in : 0;
    double limited_ns = r->cause_ns[CAUSE_RECEIVE_BUFFER], sum = e->limited_us[0] + e->limited_us[1], unread = 0;
    if (peer != NULL && peer->receptions > 0)
        unread = peer->unread / peer->receptions;
    else if (sum > 0)
        unread = e->limited_us[1] / sum;
    r->cause_ns[CAUSE_RECEIVER_PROGRAM] = limited_ns * unread;
    r->cause_ns[CAUSE_RECEIVE_BUFFER] = limited_ns * (1 - unread);
    if (peer != NULL && peer->receptions > 0)
        return;
    r->estimated_ns[CAUSE_RECEIVER_PROGRAM] = r->cause_ns[CAUSE_RECEIVER_PROGRAM];
    r->estimated_ns[CAUSE_RECEIVE_BUFFER] = r->cause_ns[CAUSE_RECEIVE_BUFFER];
}

static connection_distance find_distance(const connection_result *r)
{
    if (is_loopback(r->peer) ||
        strncmp(r->local, r->peer, strcspn(r->peer, g_str_has_prefix(r->peer, "[") ? "]" : ":") + 1) == 0)
        return DISTANCE_LOCAL;
    if (r->rtt_min_ns <= 0)
        return DISTANCE_UNKNOWN;
    return r->rtt_min_ns < LAN_RTT_US * 1e3 ? DISTANCE_LAN : DISTANCE_WAN;
}

static int compare_bytes(gconstpointer a, gconstpointer b)
{
    const connection_result *x = *(connection_result *const *)a, *y = *(connection_result *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(((const connection_entry *)x)->key, ((const connection_entry *)y)->key);
}

/* Returns the length of the address in ADDRESS:PORT. */
static size_t address_size(const char *end)
{
    const char *colon = strrchr(end, ':');
    return colon != NULL ? (size_t)(colon - end) : strlen(end);
}

/* Sets the rate that the path from host to host has carried for any connection. */
static void find_carried(const GPtrArray *results)
{
    GHashTable *rates = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (int pass = 0; pass < 2; pass++)
        for (guint i = 0; i < results->len; i++) {
            connection_result *r = g_ptr_array_index(results, i);
            char *pair = g_strdup_printf("%.*s %.*s", (int)address_size(r->local), r->local, (int)address_size(r->peer),
                                         r->peer);
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

GPtrArray *connection_table_finish(connection_table *t)
{
    GPtrArray *results = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, t->entries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        connection_entry *e = value;
        connection_result *r = &e->result;
        if (r->bytes <= 0 && r->segments <= 0)
            continue;
        divide_window(t, e);
        r->rtt_min_ns = isfinite(r->rtt_min_ns) ? r->rtt_min_ns : 0;
        r->rate = r->wall_ns > 0 ? r->bytes / r->wall_ns * 1e9 : 0;
        r->rtt_ns = e->rtt_samples > 0 ? e->rtt_sum_us / e->rtt_samples * 1e3 : 0;
        r->distance = find_distance(r);
        for (int c = 0; c < CAUSE_COUNT; c++)
            r->first = r->cause_ns[c] > r->cause_ns[r->first] ? (connection_cause)c : r->first;
        g_ptr_array_add(results, r);
    }
    find_carried(results);
    g_ptr_array_sort(results, compare_bytes);
    return results;
}

const char *connection_cause_name(connection_cause cause)
{
    static const char *const names[CAUSE_COUNT] = {
        "handshake",  "sender idle", "send buffer", "receiving program",       "receive buffer",
        "slow start", "loss",        "path rate",   "path rate, with a queue", "unknown"};
    return names[cause];
}

const char *connection_distance_name(connection_distance distance)
{
    static const char *const names[] = {"local", "LAN", "WAN", "unknown"};
    return names[distance];
}

const char *connection_confidence(const connection_result *r, connection_cause cause)
{
    bool estimated = cause >= CAUSE_SLOW_START || r->estimated_ns[cause] > ESTIMATED_MAX * r->cause_ns[cause];
    if (r->intervals < 10 || cause == CAUSE_UNKNOWN)
        return "low";
    return estimated ? "medium" : "high";
}
