/*
 * Compares the disk of a slow host with the disks of its peers. The disk is the cause if it does about as much work as
 * the other disks, but its reads or writes take longer. Their additional time must be at least half of the additional
 * time of the host's visits. A disk that does more work than the others is busy for another reason.
 */
#include "config.h"

#include "diag/slow_disks.h"

#include <math.h>
#include <string.h>

#include "diag/limit.h"
#include "diag/search.h"

/* Minimum ratio of the additional time of the disk to the additional time of the visits. */
#define ACCOUNTED_MIN 0.5

/* The operations of a disk: reads and writes. */
enum { OPERATIONS = 2 };
static const char *const rates[OPERATIONS] = {"DISK.READS", "DISK.WRITES"}, *const times[OPERATIONS] = {
                                                                                "DISK.READ.MS", "DISK.WRITE.MS"};

/* Operations per second, and the mean time of an operation in milliseconds. */
typedef struct disk_work {
    double rate[OPERATIONS], ms[OPERATIONS];
} disk_work;

static const sensor_series *disk_series(const visits *v, const char *host, const char *field, const char *disk)
{
    const GPtrArray *all = series_of_host(v->series, host);
    for (guint i = 0; all != NULL && i < all->len; i++) {
        const sensor_series *s = g_ptr_array_index(all, i);
        if (strcmp(s->event, "DiskDevice") == 0 && strcmp(s->field, field) == 0 && strcmp(s->instance, disk) == 0)
            return s;
    }
    return NULL;
}

/* Measures the work of a disk. Returns false if the disk is unknown. Weights the mean time of each sample with its
 * number of operations, because the mean time is 0 in samples without operations. */
static bool measure_disk(const visits *v, const char *host, const char *disk, disk_work *w)
{
    for (int k = 0; k < OPERATIONS; k++) {
        const sensor_series *rate = disk_series(v, host, rates[k], disk), *ms = disk_series(v, host, times[k], disk);
        double sum = 0, time = 0;
        if (rate == NULL || ms == NULL || rate->samples->len == 0 || rate->samples->len != ms->samples->len)
            return false;
        for (guint i = 0; i < rate->samples->len; i++) {
            double count = g_array_index(rate->samples, series_sample, i).value;
            sum += count;
            time += count * g_array_index(ms->samples, series_sample, i).value;
        }
        w->rate[k] = sum / rate->samples->len;
        w->ms[k] = sum > 0 ? time / sum : 0;
    }
    return true;
}

/* Returns the time of all operations per second, in milliseconds. */
static double busy_ms(const disk_work *w)
{
    return w->rate[0] * w->ms[0] + w->rate[1] * w->ms[1];
}

/* Finds the largest rates and times of the peers' disks with the same name. Returns false if no peer has this disk. */
static bool measure_peers(const visits *v, const finding *x, const char *disk, disk_work *largest)
{
    const place *p = place_at(v, x->place);
    bool found = false;
    *largest = (disk_work){0};
    for (guint n = 0; n < p->sites->len; n++) {
        const char *host = site_at(v, g_array_index(p->sites, uint32_t, n))->host;
        disk_work w;
        if (host == x->host || !measure_disk(v, host, disk, &w))
            continue;
        for (int k = 0; k < OPERATIONS; k++) {
            largest->rate[k] = fmax(largest->rate[k], w.rate[k]);
            largest->ms[k] = fmax(largest->ms[k], w.ms[k]);
        }
        found = true;
    }
    return found;
}

/* Returns the additional time of the host's visits per second, in milliseconds. */
static double additional_ms(const visits *v, const finding *x)
{
    double sum = 0;
    for (guint i = 0; i < v->all->len; i++)
        if (site_at(v, visit_at(v, i)->site)->host == x->host)
            sum += (double)x->cut[i] / 1e6;
    return sum / ((double)MAX(v->to_ns - v->from_ns, 1) / 1e9);
}

/* Makes a disk the cause of a finding, and returns true, if the disk explains why the finding's host is slow. */
static bool name_slow_disk(const findings *f, finding *x, const char *disk)
{
    const visits *v = f->visits;
    disk_work own, other;
    if (!measure_disk(v, x->host, disk, &own) || !measure_peers(v, x, disk, &other))
        return false;
    int k = own.rate[0] * own.ms[0] >= own.rate[1] * own.ms[1] ? 0 : 1; /* the operation with most of the time */
    const disk_work usual = {{own.rate[0], own.rate[1]}, {other.ms[0], other.ms[1]}};
    double disk_ms = busy_ms(&own) - busy_ms(&usual), visits_ms = additional_ms(v, x);
    if (own.rate[k] > EFFECT_MIN * other.rate[k] || own.ms[k] < EFFECT_MIN * other.ms[k] ||
        disk_ms < ACCOUNTED_MIN * visits_ms)
        return false;
    limit l = {.cause = "disk",
               .what = "a slow disk on",
               .advice = "compare the disk with those of the other hosts: its errors (smartctl), its cache, its "
                         "scheduler, and other users of the disk",
               .hosts = g_hash_table_new(NULL, NULL),
               .evidence = g_ptr_array_new_with_free_func(g_free)};
    g_hash_table_add(l.hosts, (gpointer)x->host);
    g_ptr_array_add(l.evidence,
                    g_strdup_printf("a %s takes %.3g ms on the disk %s, and at most %.3g ms on the other hosts",
                                    k == 0 ? "read" : "write", own.ms[k], disk, other.ms[k]));
    g_ptr_array_add(l.evidence,
                    g_strdup_printf("in each second, reads and writes take %.3g ms longer in total, and the visits "
                                    "on this host take %.3g ms longer",
                                    disk_ms, visits_ms));
    limit_name_finding(f, x, &l);
    g_hash_table_destroy(l.hosts);
    g_ptr_array_free(l.evidence, TRUE);
    return true;
}

void name_slow_disks(const findings *f)
{
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        const GPtrArray *all =
            x->host != NULL && strcmp(x->cause, "peer") == 0 && x->cut != NULL && x->place != VISIT_NONE
                ? series_of_host(f->visits->series, x->host)
                : NULL;
        for (guint n = 0; all != NULL && n < all->len; n++) {
            const sensor_series *s = g_ptr_array_index(all, n);
            if (strcmp(s->event, "DiskDevice") == 0 && strcmp(s->field, rates[0]) == 0 &&
                name_slow_disk(f, x, s->instance))
                break;
        }
    }
}
