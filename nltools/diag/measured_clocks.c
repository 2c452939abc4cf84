/*
 * Learns about the hosts' clocks from records: measurements against the collector's clock (ClockOffset), steps
 * (ClockStep), and reports of the hosts (ClockTracking, ClockKernel; doc/clocks.md). Corrects the times of steps by the
 * measurements, before clocks.c searches for errors in messages.
 */
#include "config.h"

#include "diag/observed_inside.h"

#include "clocks/correction.h"
#include "base/clock_quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS_MAX = 1 << 16, HOST_NAME_SIZE_MAX = 255 };

/* The latest report of a host about its clock. */
typedef struct clock_report {
    bool is_tracked; /* by chronyd, which knows more than the kernel */
    bool is_unkept;
    double error_ns;
} clock_report;

struct measured_clocks {
    correction *correction;
    GHashTable *reports; /* clock_report, by host */
};

measured_clocks *measured_clocks_new(void)
{
    measured_clocks *m = g_new0(measured_clocks, 1);
    m->correction = correction_new(&(correction_options){0});
    m->reports = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return m;
}

void measured_clocks_free(measured_clocks *m)
{
    correction_free(m->correction);
    g_hash_table_destroy(m->reports);
    g_free(m);
}

static bool is_event(const nl_record *record, const char *name)
{
    return record->event.size == strlen(name) && memcmp(record->event.data, name, record->event.size) == 0;
}

static clock_report *report_of(measured_clocks *m, nl_string host)
{
    char *name = g_strndup(host.data, MIN(host.size, HOST_NAME_SIZE_MAX));
    clock_report *found = g_hash_table_lookup(m->reports, name);
    if (found != NULL || g_hash_table_size(m->reports) >= REPORTS_MAX) {
        g_free(name);
        return found;
    }
    found = g_new0(clock_report, 1);
    g_hash_table_insert(m->reports, name, found);
    return found;
}

/* In text formats, a boolean value is a string. */
static bool is_false(const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    return (text.size == 5 && memcmp(text.data, "false", 5) == 0) || (text.size == 1 && *text.data == '0');
}

static void learn_report(measured_clocks *m, const nl_record *record, bool is_tracked)
{
    nl_field error, kept;
    double value = 0;
    clock_report *report = record->host.size > 0 ? report_of(m, record->host) : NULL;
    bool is_unkept = nl_record_find(record, "CLOCK.SYNCHRONIZED", &kept) && is_false(&kept);
    if (report == NULL || (report->is_tracked && !is_tracked) ||
        (!is_unkept &&
         (!nl_record_find(record, "CLOCK.ERROR", &error) || !nl_field_double(&error, &value) || !(value >= 0))))
        return;
    *report = (clock_report){is_tracked, is_unkept, is_unkept ? INFINITY : value * 1e3};
}

void measured_clocks_learn(measured_clocks *m, const nl_record *record)
{
    if (record->event.size < 5 || memcmp(record->event.data, "Clock", 5) != 0)
        return;
    if (is_event(record, NL_CLOCK_OFFSET) || is_event(record, NL_CLOCK_STEP))
        correction_learn(m->correction, record);
    nl_field machine;
    if (is_event(record, NL_CLOCK_KERNEL) && nl_record_find(record, NL_CLOCK_MACHINE, &machine))
        correction_learn(m->correction, record); /* which hosts share a clock */
    if (is_event(record, NL_CLOCK_TRACKING) || is_event(record, NL_CLOCK_KERNEL))
        learn_report(m, record, is_event(record, NL_CLOCK_TRACKING));
}

static void take_measured(host_clock *clock, const correction_host *found, const char *reference)
{
    clock->reference = reference;
    clock->ahead_ns = -found->offset_ns;
    clock->least_ns = -found->max_ns;
    clock->most_ns = -found->min_ns;
    clock->drift = found->drift;
    clock->error_ns = found->error_ns;
    clock->measurements = found->measurements;
    clock->is_off = fmax(fabs(clock->least_ns), fabs(clock->most_ns)) > clock->error_ns;
}

static void take_clocks(const measured_clocks *m, const GPtrArray *hosts, host_clock *clocks)
{
    const char *reference = correction_reference(m->correction);
    for (guint h = 0; h < hosts->len; h++) {
        const clock_report *report = g_hash_table_lookup(m->reports, g_ptr_array_index(hosts, h));
        clocks[h].is_unkept = report != NULL && report->is_unkept;
        clocks[h].error_ns = report != NULL ? report->error_ns : INFINITY;
    }
    for (size_t i = 0; i < correction_host_count(m->correction); i++) {
        correction_host found = correction_get_host(m->correction, i);
        for (guint h = 1; found.is_known && h < hosts->len; h++)
            if (strcmp(g_ptr_array_index(hosts, h), found.name) == 0)
                take_measured(&clocks[h], &found, reference);
    }
}

int64_t measured_clocks_time(const measured_clocks *m, const host_clock *clock, const char *host, int64_t time_ns)
{
    return clock->is_off ? correction_time(m->correction, (nl_string){host, strlen(host)}, time_ns, NULL) : time_ns;
}

static void correct_steps(const measured_clocks *m, const GPtrArray *hosts, const host_clock *clocks, step *steps,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        steps[i].time_ns =
            measured_clocks_time(m, &clocks[steps[i].host], g_ptr_array_index(hosts, steps[i].host), steps[i].time_ns);
    qsort(steps, count, sizeof *steps, step_compare);
}

host_clock *measured_clocks_correct(measured_clocks *m, const GPtrArray *hosts, walks *all)
{
    host_clock *clocks = g_new0(host_clock, hosts->len + 1);
    bool any = false;
    correction_solve(m->correction);
    take_clocks(m, hosts, clocks);
    for (guint h = 1; h < hosts->len; h++)
        any = any || clocks[h].is_off;
    for (guint i = 0; any && i < all->objects->len; i++) {
        const object *of = walks_object(all, i);
        correct_steps(m, hosts, clocks, walks_steps(all, of), of->step_count);
    }
    return clocks;
}
