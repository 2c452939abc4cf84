#include "config.h"

#include "diag/retransmissions.h"

#include <string.h>

/* Minimum length of a retransmission time-out in nanoseconds: TCP_RTO_MIN of Linux, minus the error of the estimate. */
#define TIMEOUT_MIN_NS 190e6

/*
 * Minimum ratio of the retransmissions to the visits that timed out. It is below 1, because records of the first and
 * the last retransmissions of a connection may be missing.
 */
#define COVERED_MIN 0.5

/* The late visits between two hosts. */
typedef struct host_pair {
    const char *from, *to;
    uint32_t late;
} host_pair;

static host_pair *pair_at(const GArray *pairs, guint i)
{
    return &g_array_index(pairs, host_pair, i);
}

/* Returns the pairs of hosts between which the visits of a finding timed out (elements are host_pair). Sets *mean_ns to
 * the mean time-out. */
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

/* Returns the set of connections between two hosts, as "LOCAL PEER" with the address of host `from` first. The caller
 * destroys the set. */
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
