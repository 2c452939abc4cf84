/*
 * Finds connections between different addresses that share a bottleneck. If data of two connections waits in the same
 * queue, their round-trip times rise and fall equally at the same moments. The module therefore correlates the
 * changes of the round-trip times from record to record (compare Rubenstein, Kurose, Towsley: "Detecting shared
 * congestion of flows via end-to-end measurement", SIGMETRICS 2000). The changes of independent queues do not
 * correlate, even if both grow at the start of the connections. If the clocks of two senders differ by more than an
 * interval, the changes do not correlate either, and the module finds nothing.
 */
#include "config.h"

#include "connections/connection_entry.h"

#include <math.h>
#include <string.h>

/*
 * Two connections share a queue under three conditions. The correlation of the changes is at least CORRELATION_MIN, and
 * cannot be due to chance (Student's t is at least T_MIN). The sizes of the changes differ by at most a factor of
 * SIZE_FACTOR. In 210 pairs of connections over independent paths of one busy host, the correlation was at most 0.39.
 */
#define CORRELATION_MIN 0.5
#define T_MIN 5
#define SIZE_FACTOR 2

/* The module uses larger changes as if they had this size, in units of the mean size. */
#define CHANGE_MAX 3

/* The path must limit a connection in at least this share of its time. */
#define PATH_SHARE_MIN 0.5

enum {
    CANDIDATES_MAX = 64, /* maximum number of connections to compare: the connections with the most bytes */
    CHANGES_MIN = 20     /* minimum number of changes to compare */
};

/* A connection that the path limits. */
typedef struct candidate {
    connection_result *result;
    const GArray *progress;
    char *pair; /* names of both hosts */
} candidate;

static void candidate_clear(gpointer data)
{
    g_free(((candidate *)data)->pair);
}

static bool is_limited_by_path(const connection_result *r)
{
    double path_ns =
        r->cause_ns[CAUSE_PATH] + r->cause_ns[CAUSE_PATH_QUEUE] + r->cause_ns[CAUSE_LOSS] + r->cause_ns[CAUSE_POLICED];
    return r->origin == ORIGIN_SOCKET && r->ends != ENDS_RECEIVER && path_ns >= PATH_SHARE_MIN * r->wall_ns;
}

static gint compare_bytes(gconstpointer a, gconstpointer b)
{
    double x = ((const candidate *)a)->result->bytes, y = ((const candidate *)b)->result->bytes;
    return (x < y) - (x > y);
}

/* Returns the connections to compare. The caller frees the array. */
static GArray *find_candidates(const GPtrArray *results)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(candidate));
    g_array_set_clear_func(list, candidate_clear);
    for (guint i = 0; i < results->len; i++) {
        connection_result *r = g_ptr_array_index(results, i);
        if (!is_limited_by_path(r))
            continue;
        candidate c = {.result = r, .progress = connection_entry_of(r)->progress};
        if (c.progress != NULL && c.progress->len > CHANGES_MIN)
            g_array_append_val(list, c);
    }
    g_array_sort(list, compare_bytes);
    if (list->len > CANDIDATES_MAX)
        g_array_set_size(list, CANDIDATES_MAX);
    for (guint i = 0; i < list->len; i++)
        g_array_index(list, candidate, i).pair = connection_pair_name(g_array_index(list, candidate, i).result);
    return list;
}

static const connection_progress *progress_at(const GArray *progress, guint index)
{
    return &g_array_index(progress, connection_progress, index);
}

/* Returns b - a. Requires b >= a. */
static double elapsed(int64_t a_ns, int64_t b_ns)
{
    return (double)((uint64_t)b_ns - (uint64_t)a_ns);
}

/*
 * Returns the round-trip time at a time between the first and the last record. Begins the search at the index *next,
 * and sets *next to the first record at or after this time.
 */
static double rtt_at(const GArray *progress, int64_t time_ns, guint *next)
{
    while (progress_at(progress, *next)->time_ns < time_ns)
        ++*next;
    const connection_progress *b = progress_at(progress, *next), *a = *next > 0 ? b - 1 : b;
    double part = b->time_ns > a->time_ns ? elapsed(a->time_ns, time_ns) / elapsed(a->time_ns, b->time_ns) : 1;
    return a->rtt_us + (b->rtt_us - a->rtt_us) * part;
}

/* Limits the changes to CHANGE_MAX, and subtracts their mean. Returns their standard deviation. */
static double standardize(double *changes, guint count)
{
    double size = 0, mean = 0, squares = 0;
    for (guint i = 0; i < count; i++)
        size += fabs(changes[i]) / count;
    for (guint i = 0; i < count; i++) {
        changes[i] = CLAMP(changes[i], -CHANGE_MAX * size, CHANGE_MAX * size);
        mean += changes[i] / count;
    }
    for (guint i = 0; i < count; i++) {
        changes[i] -= mean;
        squares += changes[i] * changes[i] / count;
    }
    return sqrt(squares);
}

static bool are_correlated(double *x, double *y, guint count)
{
    double size_x = standardize(x, count), size_y = standardize(y, count), sum = 0;
    if (count < CHANGES_MIN || size_x <= 0 || size_y <= 0 || size_x > SIZE_FACTOR * size_y ||
        size_y > SIZE_FACTOR * size_x)
        return false;
    for (guint i = 0; i < count; i++)
        sum += x[i] * y[i] / count;
    double r = fmin(1, sum / (size_x * size_y));
    return r >= CORRELATION_MIN && r * r * (count - 2) >= T_MIN * T_MIN * (1 - r * r);
}

static bool share_queue(const candidate *a, const candidate *b)
{
    const GArray *p = a->progress, *q = b->progress;
    int64_t begin_ns = progress_at(q, 0)->time_ns, end_ns = progress_at(q, q->len - 1)->time_ns;
    double *x = g_new(double, p->len), *y = g_new(double, p->len), last = 0;
    guint count = 0, next = 0;
    bool follows = false;
    for (guint i = 0; i < p->len; i++) {
        const connection_progress *now = progress_at(p, i);
        if (now->time_ns < begin_ns || now->time_ns > end_ns)
            continue;
        double other = rtt_at(q, now->time_ns, &next);
        if (follows) {
            x[count] = now->rtt_us - progress_at(p, i - 1)->rtt_us;
            y[count++] = other - last;
        }
        last = other;
        follows = true;
    }
    bool share = are_correlated(x, y, count);
    g_free(x);
    g_free(y);
    return share;
}

void connection_find_bottlenecks(const GPtrArray *results)
{
    GArray *list = find_candidates(results);
    for (guint i = 0; i < list->len; i++)
        for (guint j = 0; j < i; j++) {
            const candidate *a = &g_array_index(list, candidate, i), *b = &g_array_index(list, candidate, j);
            if (strcmp(a->pair, b->pair) == 0 || !share_queue(a, b))
                continue;
            a->result->elsewhere++;
            b->result->elsewhere++;
            a->result->elsewhere_rate += b->result->rate;
            b->result->elsewhere_rate += a->result->rate;
        }
    g_array_unref(list);
}
