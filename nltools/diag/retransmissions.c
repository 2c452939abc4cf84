#include "config.h"

#include "diag/retransmissions.h"

#include <math.h>
#include <string.h>

/* Minimum length of a retransmission timeout in nanoseconds: TCP_RTO_MIN of Linux, minus the error of the estimate. */
#define TIMEOUT_MIN_NS 190e6

/* Minimum ratio of the retransmissions to the visits that timed out. The ratio is below 1, because records of the first
 * and the last retransmissions of a connection may be missing. */
#define COVERED_MIN 0.5

/*
 * retransmissions_go_with sums the time of the visits during retransmissions. Then it moves the retransmissions in
 * time, SHIFTS_MIN to SHIFTS_MAX times, and sums again. At most the part CHANCE_MAX of these sums may be as large as
 * the first. DURING_MIN: minimum part of the time in the first sum.
 */
enum { SHIFTS_MIN = 19, SHIFTS_MAX = 199 };
#define CHANCE_MAX 0.01
#define DURING_MIN 0.5

/* The visits between two hosts that a finding's timeout delays. */
typedef struct host_pair {
    const char *from, *to;
    uint32_t late;
} host_pair;

static host_pair *pair_at(const GArray *pairs, guint i)
{
    return &g_array_index(pairs, host_pair, i);
}

/* Returns the pairs of hosts between which the visits of a finding timed out (elements are host_pair). Sets *mean_ns to
 * the mean timeout. */
static GArray *find_late_pairs(const visits *v, const finding *x, double *mean_ns)
{
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(host_pair));
    double sum = 0, count = 0;
    for (guint i = 0; i < v->all->len; i++) {
        const site *at = site_at(v, visit_at(v, i)->site);
        if (x->cut[i] <= 0 || at->from_host == at->host)
            continue;
        sum += (double)x->cut[i];
        count++;
        guint n = 0;
        while (n < pairs->len && (pair_at(pairs, n)->from != at->from_host || pair_at(pairs, n)->to != at->host))
            n++;
        if (n == pairs->len) {
            const host_pair new_pair = {at->from_host, at->host, 0};
            g_array_append_val(pairs, new_pair);
        }
        pair_at(pairs, n)->late++;
    }
    *mean_ns = count > 0 ? sum / count : 0;
    return pairs;
}

/* Returns the set of connections between two hosts. An element is "LOCAL PEER", where LOCAL is the address of host
 * `from`. The caller destroys the set. */
static GHashTable *connections_between(const visits *v, const char *from, const char *to)
{
    GHashTable *connections = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < v->connection_results->len; i++) {
        const connection_result *r = g_ptr_array_index(v->connection_results, i);
        if (strcmp(r->host, from) == 0 && strcmp(r->peer_host, to) == 0)
            g_hash_table_add(connections, g_strdup_printf("%s %s", r->local, r->peer));
        if (strcmp(r->host, to) == 0 && strcmp(r->peer_host, from) == 0)
            g_hash_table_add(connections, g_strdup_printf("%s %s", r->peer, r->local));
    }
    return connections;
}

/* Returns the number of segments that host `from` sent again to host `to`. */
static double count_between(const visits *v, const char *from, const char *to)
{
    const GPtrArray *all = series_of_host(v->series, from);
    GHashTable *connections = connections_between(v, from, to);
    double count = 0;
    for (guint i = 0; all != NULL && i < all->len; i++) {
        const sensor_series *s = g_ptr_array_index(all, i);
        if (strcmp(s->event, "TcpConnection") == 0 && strcmp(s->field, "TCP.RETRANS") == 0 && s->samples->len > 0 &&
            g_hash_table_contains(connections, s->instance))
            count += g_array_index(s->samples, series_sample, s->samples->len - 1).value -
                     g_array_index(s->samples, series_sample, 0).value;
    }
    g_hash_table_destroy(connections);
    return count;
}

retransmissions retransmissions_count(const visits *v, const finding *x)
{
    retransmissions r = {.from = g_hash_table_new(NULL, NULL)};
    double mean_ns, covered = 0;
    GArray *pairs = find_late_pairs(v, x, &mean_ns);
    for (guint i = 0; mean_ns >= TIMEOUT_MIN_NS && i < pairs->len; i++) {
        const host_pair *p = pair_at(pairs, i);
        double count = count_between(v, p->from, p->to);
        r.late += p->late;
        r.count += count;
        covered += MIN(count, p->late);
        if (count > 0)
            g_hash_table_add(r.from, (gpointer)p->from);
    }
    r.are_cause = r.late > 0 && covered >= COVERED_MIN * r.late;
    g_array_free(pairs, TRUE);
    return r;
}

/* Returns the numbers of segments that a host sent again, or NULL if the host has no such record. */
static const sensor_series *resent_segments(const visits *v, const char *host)
{
    const GPtrArray *all = host != NULL ? series_of_host(v->series, host) : NULL;
    for (guint i = 0; all != NULL && i < all->len; i++) {
        const sensor_series *s = g_ptr_array_index(all, i);
        if (strcmp(s->event, "TcpSegments") == 0 && strcmp(s->field, "TCP.RETRANS") == 0 && s->samples->len > 1)
            return s;
    }
    return NULL;
}

static bool has_losses(const sensor_series *s, guint sample)
{
    return g_array_index(s->samples, series_sample, sample).value > 0;
}

/* The time that a finding claims from visits with the same sender, divided among the sender's samples in which the
 * visits end. */
typedef struct sender_time {
    const sensor_series *resent;
    double *claimed; /* by sample, in nanoseconds */
} sender_time;

static void sender_time_free(gpointer data)
{
    sender_time *t = data;
    g_free(t->claimed);
    g_free(t);
}

/* Returns the claimed times of all senders (elements are sender_time). Sets *all to their sum. */
static GPtrArray *find_sender_times(const visits *v, const sender *senders, const finding *x, double *all)
{
    GPtrArray *times = g_ptr_array_new_with_free_func(sender_time_free);
    GHashTable *known = g_hash_table_new(NULL, NULL); /* maps a host to its sender_time, or to NULL */
    *all = 0;
    for (guint i = 0; i < v->all->len; i++) {
        const visit *y = visit_at(v, i);
        const char *host = senders[i].host;
        if (!(x->cut[i] > 0) || host == NULL)
            continue;
        gpointer found = NULL;
        if (!g_hash_table_lookup_extended(known, host, NULL, &found)) {
            const sensor_series *resent = resent_segments(v, host);
            if (resent != NULL) {
                sender_time *t = g_new(sender_time, 1);
                *t = (sender_time){resent, g_new0(double, resent->samples->len)};
                g_ptr_array_add(times, t);
                found = t;
            }
            g_hash_table_insert(known, (gpointer)host, found);
        }
        if (found == NULL)
            continue;
        sender_time *t = found;
        guint sample = MIN(series_index(t->resent, y->to_ns), t->resent->samples->len - 1),
              first = MIN(series_index(t->resent, y->from_ns), sample);
        while (first < sample && !has_losses(t->resent, sample))
            sample--;
        double claim = (double)x->cut[i] * path_weight(y);
        t->claimed[sample] += claim;
        *all += claim;
    }
    g_hash_table_destroy(known);
    return times;
}

/* Returns the claimed time in samples with retransmissions, in nanoseconds, after moving each sender's retransmissions
 * by the part `part` (0 to 1) of its samples. */
static double sum_during_losses(const GPtrArray *times, double part)
{
    double sum = 0;
    for (guint i = 0; i < times->len; i++) {
        const sender_time *t = g_ptr_array_index(times, i);
        guint count = t->resent->samples->len, shift = (guint)(part * count);
        for (guint k = 0; k < count; k++)
            sum += has_losses(t->resent, (k + count - shift) % count) ? t->claimed[k] : 0;
    }
    return sum;
}

bool retransmissions_go_with(const visits *v, const sender *senders, const finding *x)
{
    double all, lossy = 0, samples = 0;
    GPtrArray *times = find_sender_times(v, senders, x, &all);
    for (guint i = 0; i < times->len; i++) {
        const sender_time *t = g_ptr_array_index(times, i);
        samples += t->resent->samples->len;
        for (guint k = 0; k < t->resent->samples->len; k++)
            lossy += has_losses(t->resent, k);
    }
    bool is_shown = samples > 0 && lossy < DURING_MIN * samples;
    double during = is_shown ? sum_during_losses(times, 0) : all;
    int shifts = (int)fmin(samples / MAX(times->len, 1) - 1, SHIFTS_MAX), as_large = 0;
    for (int i = 1; is_shown && i <= shifts; i++)
        as_large += sum_during_losses(times, (double)i / (shifts + 1)) >= during;
    g_ptr_array_free(times, TRUE);
    return during >= DURING_MIN * all && (!is_shown || (shifts >= SHIFTS_MIN && as_large <= CHANCE_MAX * shifts));
}
