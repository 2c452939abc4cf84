#include "config.h"

#include "connections/connection_entry.h"

/* The additional delays of both directions must agree with the additional round-trip time within this factor. */
#define AGREEMENT 2

enum {
    PROGRESS_MAX = 1024, /* maximum number of records of a socket; beyond it, the module drops every second record */
    PROGRESS_TOTAL_MAX = 1 << 20, /* maximum number of records of all sockets */
    POINTS_MIN = 20,              /* minimum number of points for a result */
    BASE_PART = 10, /* the points with the shortest delays, 1 of BASE_PART points, give the delays without queues */
};

/* The delays of a byte in each direction, each plus an unknown constant. */
typedef struct delays {
    double forth_ns, back_ns;
} delays;

void connection_add_progress(connection_table *t, connection_entry *e, const connection_sample *now)
{
    if (t->progress_count >= PROGRESS_TOTAL_MAX)
        return;
    if (e->progress == NULL)
        e->progress = g_array_new(FALSE, FALSE, sizeof(connection_progress));
    connection_progress p = {now->time_ns, now->sent - now->resent, now->acked, now->received, now->rtt_us};
    g_array_append_val(e->progress, p);
    t->progress_count++;
    if (e->progress->len < PROGRESS_MAX)
        return;
    for (guint i = 0; i < PROGRESS_MAX / 2; i++)
        g_array_index(e->progress, connection_progress, i) = g_array_index(e->progress, connection_progress, 2 * i);
    g_array_set_size(e->progress, PROGRESS_MAX / 2);
    t->progress_count -= PROGRESS_MAX / 2;
}

static double total_of(const GArray *progress, guint index, bool received)
{
    const connection_progress *p = &g_array_index(progress, connection_progress, index);
    return received ? p->received : p->sent;
}

/*
 * Returns the time in nanoseconds at which the total reached `bytes`, relative to the first record of the list. Begins
 * the search at *next. Returns -1 if the records do not show this time.
 */
static double time_of(const GArray *progress, bool received, double bytes, guint *next)
{
    while (*next < progress->len && total_of(progress, *next, received) < bytes)
        ++*next;
    if (*next == 0 || *next == progress->len)
        return -1;
    const connection_progress *a = &g_array_index(progress, connection_progress, *next - 1), *b = a + 1;
    double before = total_of(progress, *next - 1, received), after = total_of(progress, *next, received);
    double begin_ns = (double)(a->time_ns - g_array_index(progress, connection_progress, 0).time_ns);
    return begin_ns + (bytes - before) / (after - before) * (double)(b->time_ns - a->time_ns);
}

static int compare_delays(gconstpointer a, gconstpointer b)
{
    const delays *x = a, *y = b;
    double difference = x->forth_ns + x->back_ns - y->forth_ns - y->back_ns;
    return difference < 0 ? -1 : difference > 0 ? 1 : 0;
}

static delays mean_delays(const GArray *list, guint count)
{
    delays sum = {0, 0};
    for (guint i = 0; i < count; i++) {
        sum.forth_ns += g_array_index(list, delays, i).forth_ns / count;
        sum.back_ns += g_array_index(list, delays, i).back_ns / count;
    }
    return sum;
}

/* Returns the delays for each record of the sender that reports newly acknowledged data. The caller frees the list. */
static GArray *find_delays(const GArray *sender, const GArray *receiver)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(delays));
    guint sent = 0, received = 0;
    double last = 0;
    for (guint i = 0; i < sender->len; i++) {
        const connection_progress *p = &g_array_index(sender, connection_progress, i);
        if (p->acked <= last)
            continue;
        last = p->acked;
        double acked_ns = (double)(p->time_ns - g_array_index(sender, connection_progress, 0).time_ns);
        double sent_ns = time_of(sender, false, p->acked, &sent);
        double received_ns = time_of(receiver, true, p->acked, &received);
        delays d = {received_ns - sent_ns, acked_ns - received_ns};
        if (sent_ns >= 0 && received_ns >= 0)
            g_array_append_val(list, d);
    }
    return list;
}

/* Finds the mean additional delays by the counters of bytes. Returns false if there are too few records. */
static bool find_progress_delays(const connection_entry *sender, const connection_entry *receiver, delays *extra)
{
    if (sender->progress == NULL || receiver->progress == NULL)
        return false;
    GArray *list = find_delays(sender->progress, receiver->progress);
    bool found = list->len >= POINTS_MIN;
    if (found) {
        g_array_sort(list, compare_delays);
        delays base = mean_delays(list, MAX(list->len / BASE_PART, 1)), mean = mean_delays(list, list->len);
        *extra = (delays){MAX(mean.forth_ns - base.forth_ns, 0), MAX(mean.back_ns - base.back_ns, 0)};
    }
    g_array_unref(list);
    return found;
}

/* Finds the mean additional delays by the timestamps of segments. Returns false if there are too few timestamps. */
static bool find_stamped_delays(const connection_entry *sender, const connection_entry *receiver, delays *extra)
{
    if (sender->delays < POINTS_MIN || receiver->delays < POINTS_MIN)
        return false;
    *extra = (delays){(receiver->delay_sum_us / receiver->delays - receiver->delay_min_us) * 1e3,
                      (sender->delay_sum_us / sender->delays - sender->delay_min_us) * 1e3};
    return true;
}

double connection_reverse_part(const connection_entry *sender, const connection_entry *receiver, double rtt_extra_ns)
{
    delays extra;
    if (!find_stamped_delays(sender, receiver, &extra) && !find_progress_delays(sender, receiver, &extra))
        return -1;
    double sum_ns = extra.forth_ns + extra.back_ns;
    return sum_ns > rtt_extra_ns / AGREEMENT && sum_ns < rtt_extra_ns * AGREEMENT ? extra.back_ns / sum_ns : -1;
}

/* Returns the number of bytes in a record: 0: sent, 1: acknowledged, 2: received. */
static double bytes_of(const connection_progress *p, int kind)
{
    return kind == 0 ? p->sent : kind == 1 ? p->acked : p->received;
}

/* Finds the time at which a total reached `bytes`. If it exceeds them already in the first record, the time is unknown.
 */
static bool find_time(const GArray *progress, int kind, double bytes, int64_t *time_ns)
{
    guint from = 0, to = progress->len;
    while (from < to) { /* finds the first record with at least these bytes */
        guint middle = from + (to - from) / 2;
        if (bytes_of(&g_array_index(progress, connection_progress, middle), kind) < bytes)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == progress->len)
        return false;
    const connection_progress *b = &g_array_index(progress, connection_progress, from);
    double after = bytes_of(b, kind);
    if (from == 0) {
        *time_ns = b->time_ns;
        return after <= bytes;
    }
    double before = bytes_of(b - 1, kind);
    *time_ns = b[-1].time_ns + (int64_t)((bytes - before) / (after - before) * (double)(b->time_ns - b[-1].time_ns));
    return true;
}

bool connection_find_time(const connection_result *r, double offset, double size, int64_t *begin_ns, int64_t *end_ns)
{
    bool receiver = r->ends == ENDS_RECEIVER;
    if (r->origin != ORIGIN_SOCKET)
        return false;
    const connection_entry *e =
        receiver ? (const void *)((const char *)r - offsetof(connection_entry, received)) : connection_entry_of(r);
    return e->progress != NULL && find_time(e->progress, receiver ? 2 : 0, offset, begin_ns) &&
           find_time(e->progress, receiver ? 2 : 1, offset + size, end_ns) && *end_ns >= *begin_ns;
}
