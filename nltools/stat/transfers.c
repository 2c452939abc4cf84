#include "config.h"

#include "stat/transfers.h"

#include "stat/series.h"

#include "program/json_document.h"
#include "program/units.h"
#include "requests/printable.h"
#include "base/text.h"
#include "base/time_internal.h"

#include <inttypes.h>
#include <stdio.h>

enum { LISTED_MAX = 20, INTERVALS_MAX = 10000, BAR = 30, NAME_WIDTH = 40 };

typedef struct transfer {
    int64_t begin_ns, end_ns;
    double bytes;
    char *host, *what; /* NULL: there were already TRANSFER_NAMES_MAX names */
} transfer;

struct transfers {
    GArray *all; /* transfer */
    double bytes;
    uint64_t left_out;
};

static void transfer_clear(gpointer user)
{
    transfer *x = user;
    g_free(x->host);
    g_free(x->what);
}

transfers *transfers_new(void)
{
    transfers *t = g_new0(transfers, 1);
    t->all = g_array_new(FALSE, FALSE, sizeof(transfer));
    g_array_set_clear_func(t->all, transfer_clear);
    return t;
}

void transfers_free(transfers *t)
{
    if (t == NULL)
        return;
    g_array_free(t->all, TRUE);
    g_free(t);
}

void transfers_add(transfers *t, int64_t begin_ns, int64_t end_ns, double bytes, const char *host, const char *what)
{
    if (t->all->len == TRANSFERS_MAX) {
        t->left_out++;
        return;
    }
    bool named = t->all->len < TRANSFER_NAMES_MAX;
    transfer x = {begin_ns, end_ns, bytes, named ? g_strdup(host) : NULL, named ? g_strdup(what) : NULL};
    g_array_append_val(t->all, x);
    t->bytes += bytes;
}

size_t transfers_count(const transfers *t)
{
    return t->bytes > (double)TRANSFER_PACKET * t->all->len ? t->all->len : 0;
}

/* ---- sums ---- */

static const transfer *transfer_at(const transfers *t, guint i)
{
    return &g_array_index(t->all, transfer, i);
}

static double rate_of(const transfer *x)
{
    return x->end_ns > x->begin_ns ? x->bytes / ((double)(x->end_ns - x->begin_ns) / 1e9) : 0;
}

static gint by_time(gconstpointer a, gconstpointer b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static gint by_begin(gconstpointer a, gconstpointer b)
{
    const transfer *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Sums over all transfers. */
typedef struct summary {
    int64_t from_ns, to_ns;
    double bytes, busy_ns;
    unsigned concurrent_max;
    nl_distribution rates; /* rates in bytes per second, without transfers whose duration is 0 */
} summary;

static summary sum_up(const transfers *t)
{
    summary s = {.from_ns = INT64_MAX, .to_ns = INT64_MIN};
    guint count = t->all->len;
    int64_t *begins = g_new(int64_t, count), *ends = g_new(int64_t, count);
    for (guint i = 0; i < count; i++) {
        const transfer *x = transfer_at(t, i);
        begins[i] = x->begin_ns;
        ends[i] = x->end_ns;
        s.from_ns = MIN(s.from_ns, x->begin_ns);
        s.to_ns = MAX(s.to_ns, x->end_ns);
        s.bytes += x->bytes;
        s.busy_ns += (double)(x->end_ns - x->begin_ns);
        if (x->end_ns > x->begin_ns)
            nl_distribution_add(&s.rates, (int64_t)MIN(rate_of(x), 9e18));
    }
    qsort(begins, count, sizeof *begins, by_time);
    qsort(ends, count, sizeof *ends, by_time);
    for (guint i = 0, ended = 0; i < count; i++) {
        while (ended < count && ends[ended] <= begins[i] && ended < i)
            ended++;
        s.concurrent_max = MAX(s.concurrent_max, i + 1 - ended);
    }
    g_free(begins);
    g_free(ends);
    return s;
}

transfers_interval *transfers_over_time(transfers *t, int64_t *interval_ns, size_t *count)
{
    summary s = sum_up(t);
    nl_distribution_clear(&s.rates);
    double span_ns = (double)s.to_ns - (double)s.from_ns;
    if (*interval_ns == 0 || span_ns / (double)*interval_ns > INTERVALS_MAX)
        *interval_ns = series_nice_width_ns(span_ns);
    int64_t width_ns = *interval_ns, first_ns = s.from_ns - ((s.from_ns % width_ns) + width_ns) % width_ns;
    *count = (size_t)(((double)s.to_ns - (double)first_ns) / (double)width_ns) + 1;
    transfers_interval *intervals = g_new0(transfers_interval, *count);
    for (size_t k = 0; k < *count; k++)
        intervals[k].from_ns = first_ns + (int64_t)k * width_ns;
    for (guint i = 0; i < t->all->len; i++) {
        const transfer *x = transfer_at(t, i);
        double lasts_ns = (double)(x->end_ns - x->begin_ns);
        for (size_t k = (size_t)((x->begin_ns - first_ns) / width_ns); k < *count; k++) {
            int64_t from_ns = MAX(x->begin_ns, intervals[k].from_ns),
                    to_ns = MIN(x->end_ns, intervals[k].from_ns + width_ns);
            intervals[k].bytes += lasts_ns > 0 ? x->bytes * (double)MAX(to_ns - from_ns, 0) / lasts_ns : x->bytes;
            intervals[k].concurrency += (double)MAX(to_ns - from_ns, 0) / (double)width_ns;
            if (x->end_ns <= intervals[k].from_ns + width_ns)
                break;
        }
    }
    return intervals;
}

/* ---- reports ---- */

static void print_list(transfers *t)
{
    char text[UNITS_SIZE], time[NL_TIME_TEXT_SIZE];
    g_array_sort(t->all, by_begin);
    printf("\n  %-28s %11s %10s %10s  %-16s %s\n", "transfer from", "takes", "bytes", "per second", "host", "name");
    for (guint i = 0; i < MIN(t->all->len, LISTED_MAX); i++) {
        const transfer *x = transfer_at(t, i);
        char *host = printable(x->host != NULL ? x->host : ""), *what = printable(x->what != NULL ? x->what : "");
        nl_time_format_iso(x->begin_ns, time);
        printf("  %-28s %11s", time, units_time((double)(x->end_ns - x->begin_ns), text));
        printf(" %10s", units_quantity(x->bytes, text));
        printf(" %10s  %-16s %s\n", units_quantity(rate_of(x), text), host, what);
        g_free(host);
        g_free(what);
    }
    if (t->all->len > LISTED_MAX)
        printf("  ... and %u more; see --json\n", t->all->len - LISTED_MAX);
}

void transfers_print(transfers *t, int64_t interval_ns)
{
    char text[UNITS_SIZE], time[NL_TIME_TEXT_SIZE];
    summary s = sum_up(t);
    double span_ns = (double)s.to_ns - (double)s.from_ns, maximum = 0;
    printf("Transfers: %u, %s bytes", t->all->len, units_quantity(s.bytes, text));
    printf(" in %s", units_time(span_ns, text));
    printf(", %s per second", units_quantity(span_ns > 0 ? s.bytes / (span_ns / 1e9) : 0, text));
    printf("; %.1f at a time, at most %u\n", span_ns > 0 ? s.busy_ns / span_ns : 0, s.concurrent_max);
    if (s.rates.count > 0) {
        printf("  bytes per second of a transfer: minimum %s", units_quantity((double)s.rates.minimum, text));
        printf(", p50 %s", units_quantity((double)nl_distribution_quantile(&s.rates, 0.5), text));
        printf(", maximum %s\n", units_quantity((double)s.rates.maximum, text));
    }
    if (t->left_out > 0)
        printf("  %" PRIu64 " further transfer%s left out; the maximum is %d\n", t->left_out,
               t->left_out == 1 ? " was" : "s were", (int)TRANSFERS_MAX);
    nl_distribution_clear(&s.rates);
    print_list(t);
    size_t count;
    transfers_interval *intervals = transfers_over_time(t, &interval_ns, &count);
    for (size_t k = 0; k < count; k++)
        maximum = MAX(maximum, intervals[k].bytes);
    printf("\n  %-28s %11s %10s %10s\n", "from", "at a time", "bytes", "per second");
    for (size_t k = 0; k < count; k++) {
        nl_time_format_iso(intervals[k].from_ns, time);
        printf("  %-28s %11.1f %10s", time, intervals[k].concurrency, units_quantity(intervals[k].bytes, text));
        printf(" %10s ", units_quantity(intervals[k].bytes / ((double)interval_ns / 1e9), text));
        for (int bar = 0; maximum > 0 && bar < (int)(BAR * intervals[k].bytes / maximum + 0.5); bar++)
            printf("#");
        printf("\n");
    }
    printf("\n");
    g_free(intervals);
}

json_object *transfers_json(transfers *t, int64_t interval_ns)
{
    json_object *object = json_object_new_object(), *list = json_object_new_array(),
                *over_time = json_object_new_array();
    summary s = sum_up(t);
    json_add_int(object, "transfers", t->all->len);
    json_add_int(object, "left_out", (int64_t)t->left_out);
    json_add_double(object, "bytes", s.bytes);
    json_add_int(object, "from_ns", s.from_ns);
    json_add_int(object, "to_ns", s.to_ns);
    json_add_int(object, "concurrent_max", s.concurrent_max);
    json_add_int(object, "rate_min", s.rates.minimum);
    json_add_int(object, "rate_p50", nl_distribution_quantile(&s.rates, 0.5));
    json_add_int(object, "rate_max", s.rates.maximum);
    nl_distribution_clear(&s.rates);
    g_array_sort(t->all, by_begin);
    for (guint i = 0; i < MIN(t->all->len, TRANSFER_NAMES_MAX); i++) {
        const transfer *x = transfer_at(t, i);
        json_object *each = json_object_new_object();
        json_add_int(each, "begin_ns", x->begin_ns);
        json_add_int(each, "end_ns", x->end_ns);
        json_add_double(each, "bytes", x->bytes);
        json_add_double(each, "rate", rate_of(x));
        json_add_text(each, "host", x->host);
        json_add_text(each, "name", x->what);
        json_object_array_add(list, each);
    }
    size_t count;
    transfers_interval *intervals = transfers_over_time(t, &interval_ns, &count);
    json_add_int(object, "interval_ns", interval_ns);
    for (size_t k = 0; k < count; k++) {
        json_object *interval = json_object_new_object();
        json_add_int(interval, "from_ns", intervals[k].from_ns);
        json_add_double(interval, "bytes", intervals[k].bytes);
        json_add_double(interval, "concurrency", intervals[k].concurrency);
        json_object_array_add(over_time, interval);
    }
    g_free(intervals);
    json_object_object_add(object, "list", list);
    json_object_object_add(object, "intervals", over_time);
    return object;
}
