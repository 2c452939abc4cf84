#include "config.h"

#include "log/probe.h"

#include "base/monotonic.h"
#include "base/pages.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

/* The time at which a thread passed the first marker of a measurement. */
typedef struct start {
    nl_probe probe;
    int64_t time_ns;
} start;

/*
 * The times at which a thread passed first markers, indexed by slot. The array is not on the heap, because a marker may
 * be in a signal handler.
 */
static __thread start *starts;

static void on_thread_exit(void *memory)
{
    starts = NULL;
    nl_pages_free(memory, NL_TIME_PROBES_MAX * sizeof(start));
}

NL_THREAD_KEY(starts_key, on_thread_exit)

static start *own_start(unsigned slot)
{
    if (starts == NULL) {
        starts = nl_pages_new(NL_TIME_PROBES_MAX * sizeof(start));
        if (starts == NULL)
            return NULL;
        starts_key_set(starts);
    }
    return &starts[slot];
}

/*
 * Returns the class of a time in nanoseconds. A time below 8 ns is its own class. The class of another time consists of
 * the binary exponent and the three bits after the highest bit.
 */
static unsigned class_of(uint64_t time_ns)
{
    if (time_ns < 8)
        return (unsigned)time_ns;
    unsigned exponent = 63 - (unsigned)__builtin_clzll(time_ns);
    return (exponent - 2) * 8 + (unsigned)(time_ns >> (exponent - 3) & 7);
}

/* Returns the middle of a class, in nanoseconds. */
static int64_t time_of_class(unsigned class)
{
    if (class < 8)
        return class;
    unsigned shift = class / 8 - 1;
    uint64_t minimum = (uint64_t)(8 + class % 8) << shift;
    return (int64_t)(minimum + (((uint64_t)1 << shift) >> 1));
}

static void note_time(nl_probe_times *times, uint64_t time_ns)
{
    uint64_t min_ns = __atomic_load_n(&times->min_ns, __ATOMIC_RELAXED);
    while (time_ns < min_ns &&
           !__atomic_compare_exchange_n(&times->min_ns, &min_ns, time_ns, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    uint64_t max_ns = __atomic_load_n(&times->max_ns, __ATOMIC_RELAXED);
    while (time_ns > max_ns &&
           !__atomic_compare_exchange_n(&times->max_ns, &max_ns, time_ns, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    __atomic_fetch_add(&times->sum_ns, time_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&times->classes[class_of(time_ns)], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&times->count, 1, __ATOMIC_RELEASE);
}

static void pass_time(nl_probe_object *probe, bool ends)
{
    start *own = own_start(probe->slot);
    if (own == NULL)
        return;
    if (!ends) {
        *own = (start){probe->id, nl_monotonic_ns()};
    } else if (own->probe == probe->id) {
        int64_t time_ns = nl_monotonic_ns() - own->time_ns;
        own->probe = 0;
        note_time(probe->times, time_ns > 0 ? (uint64_t)time_ns : 0);
    }
}

static void log_pass(nl_probe_object *probe, const char *marker, const nl_field *fields, size_t count)
{
    nl_record record = {
        .level = probe->level, .event = {marker, strlen(marker)}, .fields = fields, .field_count = count};
    nl_write_record(probe->log, &record);
}

void nl_probe_pass(nl_probe_object *probe, bool ends, const char *marker, const nl_field *fields, size_t count)
{
    if (__atomic_load_n(&probe->detached, __ATOMIC_RELAXED))
        return;
    if (probe->kind == NL_PROBE_TIME) {
        pass_time(probe, ends);
        return;
    }
    __atomic_fetch_add(&probe->counters[nl_grace_stripe()].count, 1, __ATOMIC_RELAXED);
    if (probe->kind == NL_PROBE_LOG)
        log_pass(probe, marker, fields, count);
    else if (probe->kind == NL_PROBE_CALL)
        probe->function(probe->user, marker, fields, count);
}

/*
 * Returns the approximate quantile per_mille / 1000 of `count` measured times, in nanoseconds: the middle of the class
 * that contains it, but at most the measured maximum. `count` is greater than 0.
 */
static int64_t percentile(const nl_probe_times *times, uint64_t count, unsigned per_mille)
{
    uint64_t rank = (count * per_mille + 999) / 1000, seen = 0;
    int64_t time_ns = 0, max_ns = (int64_t)__atomic_load_n(&times->max_ns, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < NL_TIME_CLASSES && seen < rank; i++) {
        uint64_t here = __atomic_load_n(&times->classes[i], __ATOMIC_RELAXED);
        if (here > 0)
            time_ns = time_of_class(i);
        seen += here;
    }
    return time_ns < max_ns ? time_ns : max_ns;
}

static void sum_times(const nl_probe_times *times, nl_probe_info *info)
{
    uint64_t count = info->count = __atomic_load_n(&times->count, __ATOMIC_ACQUIRE);
    if (count == 0)
        return;
    info->min_ns = (int64_t)__atomic_load_n(&times->min_ns, __ATOMIC_RELAXED);
    info->mean_ns = (int64_t)(__atomic_load_n(&times->sum_ns, __ATOMIC_RELAXED) / count);
    info->max_ns = (int64_t)__atomic_load_n(&times->max_ns, __ATOMIC_RELAXED);
    info->p50_ns = percentile(times, count, 500);
    info->p90_ns = percentile(times, count, 900);
    info->p99_ns = percentile(times, count, 990);
    info->p99_9_ns = percentile(times, count, 999);
}

void nl_probe_sum(const nl_probe_object *probe, nl_probe_info *info)
{
    *info = (nl_probe_info){.probe = probe->id, .kind = probe->kind};
    if (probe->times != NULL)
        sum_times(probe->times, info);
    for (unsigned i = 0; i < NL_GRACE_STRIPES; i++)
        info->count += __atomic_load_n(&probe->counters[i].count, __ATOMIC_RELAXED);
}

void nl_probe_free(nl_probe_object *probe)
{
    free(probe->pattern);
    free(probe->to);
    free(probe->times);
    free(probe);
}
