#include "config.h"

#include "connections/connection_paths.h"

#include <glib.h>
#include <math.h>
#include <string.h>

enum { PATHS_MAX = 1 << 12, DELAYS_MAX = 1 << 17, NAME_MAX_SIZE = 256 /* bytes; the module truncates longer names */ };

/* The module replaces larger values of fields with this value, so that no sum overflows. */
#define VALUE_MAX 1e15

/*
 * The sensor counts a probe as lost when this time, in nanoseconds, has passed since it sent the probe (PATH_LATE_NS).
 */
#define LATE_NS 2e9

/* The quantile of the normal distribution for bounds with a confidence of 95 %. */
#define NORMAL_95 1.96

/* The probes from begin_ns to end_ns. Each delay is the sum of the delays of all replies, in nanoseconds. */
typedef struct path_delay {
    int64_t begin_ns, end_ns;
    double replies, out_ns, back_ns;
    double error_ns;                            /* maximum error of the delays; INFINITY if unknown; 0 without delays */
    double answered, lost, lost_out, lost_back; /* only from records that state the direction of losses */
} path_delay;

/* The measurements of one host to one address. */
typedef struct path_entry {
    GArray *delays; /* path_delay, in the order of the records */
    double rtt_min_ns, out_min_ns, back_min_ns;
    double routers_out, routers_back, rate, mtu;
    bool mtu_reported;
} path_entry;

struct connection_paths {
    GHashTable *entries; /* "HOST ADDRESS" -> path_entry */
    size_t delay_count;  /* number of delays in all entries */
};

static void path_entry_free(gpointer data)
{
    path_entry *e = data;
    g_array_unref(e->delays);
    g_free(e);
}

connection_paths *connection_paths_new(void)
{
    connection_paths *p = g_new0(connection_paths, 1);
    p->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, path_entry_free);
    return p;
}

void connection_paths_free(connection_paths *p)
{
    g_hash_table_destroy(p->entries);
    g_free(p);
}

/* ---- records ---- */

/* Returns whether the record has this numeric field. Sets *value to its value multiplied by `unit`. */
static bool path_number(const nl_record *record, const char *name, double unit, double *value)
{
    nl_field field;
    if (!nl_record_find(record, name, &field) || !nl_field_double(&field, value) || !isfinite(*value))
        return false;
    *value = CLAMP(*value, -VALUE_MAX, VALUE_MAX) * unit;
    return true;
}

/* Returns the value of a field that contains a count. Returns 0 if the field is missing, invalid or negative. */
static double path_count(const nl_record *record, const char *name)
{
    double value;
    return path_number(record, name, 1, &value) ? fmax(value, 0) : 0;
}

/* Returns the entry of the record's host and PATH.ADDRESS, or NULL if the record has no address, or if there are too
 * many entries. */
static path_entry *find_measured(connection_paths *p, const nl_record *record)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_field field;
    if (!nl_record_find(record, "PATH.ADDRESS", &field))
        return NULL;
    nl_string address = nl_field_text(&field, scratch);
    char *key = g_strdup_printf("%.*s %.*s", (int)MIN(record->host.size, NAME_MAX_SIZE), record->host.data,
                                (int)MIN(address.size, NAME_MAX_SIZE), address.data);
    path_entry *e = g_hash_table_lookup(p->entries, key);
    if (e == NULL && g_hash_table_size(p->entries) < PATHS_MAX) {
        e = g_new(path_entry, 1);
        *e = (path_entry){.delays = g_array_new(FALSE, FALSE, sizeof(path_delay)),
                          .routers_out = -1,
                          .routers_back = -1,
                          .rtt_min_ns = INFINITY,
                          .out_min_ns = INFINITY,
                          .back_min_ns = INFINITY};
        g_hash_table_insert(p->entries, g_strdup(key), e);
    }
    g_free(key);
    return e;
}

/* To save memory, replaces each pair of consecutive measurements of an entry with its sum. */
static void join_delays(connection_paths *p)
{
    GHashTableIter all;
    gpointer entry;
    p->delay_count = 0;
    g_hash_table_iter_init(&all, p->entries);
    while (g_hash_table_iter_next(&all, NULL, &entry)) {
        GArray *delays = ((path_entry *)entry)->delays;
        guint count = delays->len / 2;
        for (guint i = 0; i < count; i++) {
            path_delay a = g_array_index(delays, path_delay, 2 * i);
            const path_delay *b = &g_array_index(delays, path_delay, 2 * i + 1);
            a.end_ns = b->end_ns;
            a.replies += b->replies;
            a.answered += b->answered;
            a.lost += b->lost;
            a.lost_out += b->lost_out;
            a.lost_back += b->lost_back;
            a.out_ns += b->out_ns;
            a.back_ns += b->back_ns;
            a.error_ns = fmax(a.error_ns, b->error_ns);
            g_array_index(delays, path_delay, i) = a;
        }
        if (delays->len % 2 > 0)
            g_array_index(delays, path_delay, count++) = g_array_index(delays, path_delay, delays->len - 1);
        g_array_set_size(delays, count);
        p->delay_count += count;
    }
}

static void add_delays(connection_paths *p, path_entry *e, const nl_record *record)
{
    double rtt_ns, out_ns, back_ns, error_ns, lost_out, lost_back;
    path_delay d = {.begin_ns = e->delays->len > 0 ? g_array_index(e->delays, path_delay, e->delays->len - 1).end_ns
                                                   : record->time_ns,
                    .end_ns = record->time_ns,
                    .replies = path_count(record, "PATH.REPLIES")};
    if (path_number(record, "PATH.LOST.OUT", 1, &lost_out) && path_number(record, "PATH.LOST.BACK", 1, &lost_back)) {
        d.answered = d.replies;
        d.lost = path_count(record, "PATH.LOST");
        d.lost_out = fmax(lost_out, 0); /* may include probes that the previous record counted in PATH.LOST */
        d.lost_back = fmax(lost_back, 0);
    }
    if (d.replies > 0 && path_number(record, "PATH.DELAY.OUT", 1e3, &out_ns) &&
        path_number(record, "PATH.DELAY.BACK", 1e3, &back_ns)) {
        d.out_ns = out_ns * d.replies;
        d.back_ns = back_ns * d.replies;
        d.error_ns = path_number(record, "PATH.DELAY.ERROR", 1e3, &error_ns) ? fabs(error_ns) : INFINITY;
    }
    if (path_number(record, "PATH.RTT.MIN", 1e3, &rtt_ns) && rtt_ns > 0)
        e->rtt_min_ns = fmin(e->rtt_min_ns, rtt_ns);
    if (path_number(record, "PATH.DELAY.OUT.MIN", 1e3, &out_ns))
        e->out_min_ns = fmin(e->out_min_ns, out_ns);
    if (path_number(record, "PATH.DELAY.BACK.MIN", 1e3, &back_ns))
        e->back_min_ns = fmin(e->back_min_ns, back_ns);
    path_number(record, "PATH.ROUTERS.OUT", 1, &e->routers_out);
    path_number(record, "PATH.ROUTERS.BACK", 1, &e->routers_back);
    g_array_append_val(e->delays, d);
    if (++p->delay_count > DELAYS_MAX)
        join_delays(p);
}

static bool path_is_event(const nl_record *record, const char *name)
{
    return record->event.size == strlen(name) && memcmp(record->event.data, name, record->event.size) == 0;
}

bool connection_paths_add(connection_paths *p, const nl_record *record)
{
    bool delay = path_is_event(record, "PathDelay"), mtu = path_is_event(record, "PathMtu");
    if (!delay && !mtu && !path_is_event(record, "PathTransfer"))
        return false;
    path_entry *e = find_measured(p, record);
    if (e == NULL)
        return true;
    nl_field field;
    if (delay) {
        add_delays(p, e, record);
    } else if (mtu) {
        e->mtu = path_count(record, "PATH.MTU");
        e->mtu_reported = nl_record_find(record, "PATH.MTU.REPORTED", &field);
    } else {
        e->rate = fmax(e->rate, path_count(record, "PATH.RATE"));
    }
    return true;
}

/* ---- results ---- */

/* Returns the measurements of a host to the address in ADDRESS:PORT or [ADDRESS]:PORT, or NULL. */
static const path_entry *find_from(const connection_paths *p, const char *host, const char *end)
{
    const char *from = end, *colon = strrchr(end, ':');
    size_t size = colon != NULL ? (size_t)(colon - end) : strlen(end);
    if (host[0] == '\0')
        return NULL;
    if (size >= 2 && from[0] == '[' && from[size - 1] == ']')
        from++, size -= 2;
    char *key = g_strdup_printf("%s %.*s", host, (int)size, from);
    const path_entry *e = g_hash_table_lookup(p->entries, key);
    g_free(key);
    return e;
}

/* Returns whether a measurement and the time from begin_ns to end_ns have a common part. */
static bool overlaps(const path_delay *d, double begin_ns, double end_ns)
{
    return (double)d->end_ns >= begin_ns && (double)d->begin_ns <= end_ns;
}

/* Adds up the measurements of the probes that were sent from begin_ns to end_ns. */
static path_delay sum_delays(const path_entry *e, int64_t begin_ns, int64_t end_ns)
{
    path_delay sum = {0};
    double timed = 0; /* replies with delays */
    for (guint i = 0; i < e->delays->len; i++) {
        const path_delay *d = &g_array_index(e->delays, path_delay, i);
        if (overlaps(d, (double)begin_ns + LATE_NS, (double)end_ns + LATE_NS)) {
            sum.lost += d->lost;
            sum.lost_out += d->lost_out;
            sum.lost_back += d->lost_back;
        }
        if (!overlaps(d, (double)begin_ns, (double)end_ns))
            continue;
        sum.replies += d->replies;
        sum.answered += d->answered;
        if (d->error_ns > 0) {
            timed += d->replies;
            sum.out_ns += d->out_ns;
            sum.back_ns += d->back_ns;
            sum.error_ns = fmax(sum.error_ns, d->error_ns);
        }
    }
    if (timed > 0) {
        sum.out_ns /= timed;
        sum.back_ns /= timed;
    }
    return sum;
}

/* Returns the path that an entry's measurements show. "Out" is the direction of the probes. */
static connection_path path_of(const path_entry *e, int64_t begin_ns, int64_t end_ns)
{
    path_delay sum = sum_delays(e, begin_ns, end_ns);
    bool during = sum.replies + sum.lost > 0;
    if (!during)
        sum = sum_delays(e, INT64_MIN, INT64_MAX);
    bool timed = sum.error_ns > 0 && isfinite(e->out_min_ns) && isfinite(e->back_min_ns);
    return (connection_path){
        .measured = true,
        .probes_out = sum.answered + sum.lost,
        .probes_back = sum.answered + sum.lost - sum.lost_out,
        .lost_out = sum.lost_out,
        .lost_back = sum.lost_back,
        .during = during,
        .rtt_min_ns = isfinite(e->rtt_min_ns) ? e->rtt_min_ns : 0,
        .delay_out_ns = sum.out_ns,
        .delay_back_ns = sum.back_ns,
        .delay_error_ns = timed ? sum.error_ns : INFINITY,
        .queue_out_ns = timed ? fmax(0, sum.out_ns - e->out_min_ns) : 0,
        .queue_back_ns = timed ? fmax(0, sum.back_ns - e->back_min_ns) : 0,
        .routers_out = e->routers_out,
        .routers_back = e->routers_back,
        .rate = e->rate,
        .mtu = e->mtu,
        .mtu_reported = e->mtu_reported,
    };
}

connection_path connection_paths_find(const connection_paths *p, const char *host, const char *local,
                                      const char *peer_host, const char *peer, int64_t begin_ns, int64_t end_ns)
{
    const path_entry *forward = find_from(p, host, peer), *back = find_from(p, peer_host, local);
    if (forward != NULL)
        return path_of(forward, begin_ns, end_ns);
    if (back == NULL)
        return (connection_path){0};
    connection_path b = path_of(back, begin_ns, end_ns), path = b;
    path.probes_out = b.probes_back;
    path.probes_back = b.probes_out;
    path.lost_out = b.lost_back;
    path.lost_back = b.lost_out;
    path.delay_out_ns = b.delay_back_ns;
    path.delay_back_ns = b.delay_out_ns;
    path.queue_out_ns = b.queue_back_ns;
    path.queue_back_ns = b.queue_out_ns;
    path.routers_out = b.routers_back;
    path.routers_back = b.routers_out;
    path.rate = path.mtu = 0;
    return path;
}

double connection_path_reverse_part(const connection_path *path, double increase_min_ns)
{
    double increase_ns = path->queue_out_ns + path->queue_back_ns;
    return path->during && increase_ns > 0 && increase_ns >= increase_min_ns ? path->queue_back_ns / increase_ns : -1;
}

/* Computes the bounds (E. B. Wilson: "Probable inference, the law of succession, and statistical inference", 1927). */
static connection_loss find_loss(double lost, double of)
{
    double z = NORMAL_95 * NORMAL_95;
    lost = fmin(lost, of);
    if (of <= 0)
        return (connection_loss){0, 0, 1};
    double middle = (lost + z / 2) / (of + z);
    double half = NORMAL_95 / (of + z) * sqrt(lost * (of - lost) / of + z / 4);
    return (connection_loss){lost / of, fmax(0, middle - half), fmin(1, middle + half)};
}

connection_loss connection_path_loss_out(const connection_path *path)
{
    return find_loss(path->lost_out, path->probes_out);
}

connection_loss connection_path_loss_back(const connection_path *path)
{
    return find_loss(path->lost_back, path->probes_back);
}
