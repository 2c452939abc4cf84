#include "config.h"

#include "model/checks.h"
#include "requests/request_graph.h"

#include "base/text.h"
#include "base/time_internal.h"
#include "base/compare.h"

#include <math.h>
#include <string.h>

enum { HOSTS_NAMED = 5, STEPS_MIN = 10 };

static const int64_t year_ns = INT64_C(31556952) * NL_NS_PER_SECOND;

static void check_times(const store *s, GPtrArray *notices)
{
    int64_t first_ns = store_time(s, s->first), last_ns = store_time(s, s->count - 1);
    char time[NL_TIME_TEXT_SIZE];
    if (first_ns < 20 * year_ns) {
        nl_time_format_iso(first_ns, time);
        g_ptr_array_add(
            notices, g_strdup_printf("The first record is from %.10s; the host's clock may not have been set", time));
    }
    if (last_ns > nl_time_now_ns() + year_ns) {
        nl_time_format_iso(last_ns, time);
        g_ptr_array_add(
            notices, g_strdup_printf(
                         "The last record is from %.10s, which is in the future; the host's clock may be wrong", time));
    }
}

static int64_t end_of_chunk(const store *s, uint32_t number)
{
    uint32_t next = (number + 1) * (uint32_t)STORE_CHUNK;
    return next < s->count ? s->marks[next / STORE_MARK] : store_time(s, s->count - 1);
}

/* Returns how many of 1,000 equal parts of the time from the record `first` to the record `last` contain records. To
 * save time, looks at no more than about 10,000 records. */
static unsigned occupied_parts(const store *s, uint32_t first, uint32_t last)
{
    enum { PARTS = 1000, RECORDS_READ = 10000 };
    const int64_t from_ns = store_time(s, first), part_ns = (store_time(s, last) - from_ns) / PARTS + 1;
    const uint32_t step = (last - first) / RECORDS_READ + 1;
    int64_t part = -1;
    unsigned occupied = 0;
    for (uint32_t i = first; i <= last && i >= first; i += step) {
        const int64_t own = (store_time(s, i) - from_ns) / part_ns;
        occupied += own > part;
        part = MAX(part, own);
    }
    return occupied;
}

/* Searches only the chunk that covers the longest time. */
bool checks_find_gap(const store *s, checks_gap *gap)
{
    enum { RECORDS_MIN = 10, GAP_MIN_S = 60 };
    if (s->count < s->first + RECORDS_MIN)
        return false;
    int64_t whole_ns = store_time(s, s->count - 1) - store_time(s, s->first), widest_ns = 0;
    uint32_t widest = s->first / STORE_CHUNK;
    for (uint32_t chunk = widest; chunk <= (s->count - 1) / STORE_CHUNK; chunk++) {
        int64_t own_ns = end_of_chunk(s, chunk) - s->marks[chunk * (STORE_CHUNK / STORE_MARK)];
        if (own_ns > widest_ns) {
            widest_ns = own_ns;
            widest = chunk;
        }
    }
    *gap = (checks_gap){.from_ns = 0};
    uint32_t from = MAX(widest * (uint32_t)STORE_CHUNK, s->first) + 1, after = from;
    for (uint32_t i = from; i < s->count && i <= from + STORE_CHUNK; i++)
        if (store_time(s, i) - store_time(s, i - 1) > gap->to_ns - gap->from_ns) {
            gap->from_ns = store_time(s, i - 1);
            gap->to_ns = store_time(s, i);
            after = i;
        }
    const int64_t gap_ns = gap->to_ns - gap->from_ns;
    if (gap_ns < whole_ns / 10 * 9 || gap_ns < GAP_MIN_S * NL_NS_PER_SECOND)
        return false;
    gap->is_end_busier = occupied_parts(s, after, s->count - 1) >= occupied_parts(s, s->first, after - 1);
    return true;
}

/* Reports a gap that checks_find_gap finds, because a picture of the whole log shows the records before and after the
 * gap very close together. */
static void check_gap(const store *s, GPtrArray *notices)
{
    checks_gap gap;
    if (!checks_find_gap(s, &gap))
        return;
    char time[NL_TIME_TEXT_SIZE], *length = checks_time_text((double)(gap.to_ns - gap.from_ns));
    nl_time_format_iso(gap.from_ns, time);
    g_ptr_array_add(notices,
                    g_strdup_printf("The log has no records for %s from %s, which is at least nine tenths of its "
                                    "time range. The first view shows only one side of this gap.",
                                    length, time));
    g_free(length);
}

char *checks_time_text(double ns)
{
    static const struct {
        double from_ns, ns;
        const char *unit;
    } units[] = {{172800e9, 86400e9, "days"}, {7200e9, 3600e9, "h"}, {120e9, 60e9, "min"}, {999.5e6, 1e9, "s"},
                 {999.5e3, 1e6, "ms"},        {999.5, 1e3, "µs"},    {0, 1, "ns"}};
    size_t i = 0;
    while (fabs(ns) < units[i].from_ns)
        i++;
    const double value = ns / units[i].ns;
    return g_strdup_printf(fabs(value) < 999.5 ? "%.3g %s" : "%.0f %s", value, units[i].unit);
}

/* Returns the median duration of a sample of lifeline segments, in nanoseconds, or 0 if there are no segments. */
static double usual_segment_ns(const store *s)
{
    enum { LOOKED_AT = 20000 };
    GArray *took = g_array_new(FALSE, FALSE, sizeof(int64_t));
    uint32_t each = MAX((s->count - s->first) / LOOKED_AT, 1);
    for (uint64_t record = s->first; record < s->count; record += each)
        for (unsigned layer = 0; layer < s->spec->layers; layer++) {
            uint32_t before = store_previous(s, (uint32_t)record, layer);
            if (before == STORE_NONE || before < s->first)
                continue;
            int64_t ns = store_time(s, (uint32_t)record) - store_time(s, before);
            g_array_append_val(took, ns);
        }
    g_array_sort(took, nl_compare_int64);
    double median = took->len > 0 ? (double)g_array_index(took, int64_t, took->len / 2) : 0;
    g_array_free(took, TRUE);
    return median;
}

/* Returns the error of a host's clock as text, or NULL if the error is unknown or below matters_ns nanoseconds. The
 * caller frees the text with g_free. */
static char *clock_fault(const store *s, uint16_t host, double matters_ns)
{
    store_clock off = store_clock_furthest(s, host);
    double off_ns = (off.low_ns + off.high_ns) / 2;
    if (!off.is_known || fabs(off_ns) < matters_ns)
        return NULL;
    char *text = checks_time_text(fabs(off_ns));
    char *description = g_strdup_printf("%s %s", text, off_ns > 0 ? "slow" : "fast");
    g_free(text);
    return description;
}

/* Reports hosts whose clock error is larger than the median duration of a segment. */
static void check_clocks(const store *s, GPtrArray *notices)
{
    GString *hosts = g_string_new(NULL);
    unsigned count = 0;
    double segment_ns = usual_segment_ns(s);
    for (size_t host = 0; host < names_count(s->names.hosts); host++) {
        char *fault = clock_fault(s, (uint16_t)host, fabs(segment_ns));
        if (fault != NULL && ++count <= HOSTS_NAMED)
            g_string_append_printf(hosts, "%s%s (%s)", count > 1 ? ", " : "",
                                   names_text(s->names.hosts, (uint16_t)host), fault);
        g_free(fault);
    }
    if (count > HOSTS_NAMED)
        g_string_append_printf(hosts, " and %u more", count - HOSTS_NAMED);
    char *segment = checks_time_text(segment_ns);
    GString *lasts = g_string_new(NULL);
    if (segment_ns > 0)
        g_string_append_printf(lasts, " The median duration of a lifeline's steps is %s.", segment);
    if (count > 0)
        g_ptr_array_add(
            notices,
            g_strdup_printf("Clocks: %s.%s To correct the measured clocks, use F7 in the window or --fix-clocks.",
                            hosts->str, lasts->str));
    g_string_free(lasts, TRUE);
    g_free(segment);
    g_string_free(hosts, TRUE);
}

/* Finds the pairs of rows between which every step takes slightly more than a multiple of half an hour, which suggests
 * two time zones. Reports the first pair, and the number of the other pairs. */
static void check_zone_of_steps(const store *s, size_t lifeline, const drawing_lifeline *definition, GPtrArray *notices)
{
    const lifeline_lists *l = &s->lifelines[lifeline];
    unsigned pairs = 0, first = 0;
    double first_h = 0;
    for (unsigned i = 0; i < l->rows * l->rows; i++) {
        const list *steps = l->segments[i];
        if (steps == NULL || steps->count - steps->start < STEPS_MIN)
            continue;
        int64_t zone_ns =
            request_find_zone((int64_t)list_find_extremes(steps, steps->start, steps->count, NULL, NULL).min);
        if (zone_ns <= 0 || pairs++ > 0)
            continue;
        first = i;
        first_h = (double)zone_ns / 3600e9;
    }
    if (pairs == 0)
        return;
    char *more =
        pairs > 1 ? g_strdup_printf(" (and %u other pair%s of events)", pairs - 1, nl_plural(pairs - 1)) : g_strdup("");
    g_ptr_array_add(notices, g_strdup_printf("Each step from %s to %s%s takes at least %.4g h: these events are in "
                                             "different time zones, or the clock of a host is wrong.",
                                             definition->events[first / l->rows], definition->events[first % l->rows],
                                             more, first_h));
    g_free(more);
}

static void check_zones(const store *s, const drawing *d, GPtrArray *notices)
{
    for (size_t i = 0; i < s->spec->lifeline_count; i++)
        check_zone_of_steps(s, i, g_ptr_array_index(d->lifelines, i), notices);
}

/* Returns whether the drawing shows an event, or intentionally omits it. */
static bool is_drawn(const store *s, const drawing *d, uint16_t event)
{
    bool is_quiet = false, is_found = false;
    for (guint i = 0; i < d->quiet->len && !is_quiet; i++)
        is_quiet = strcmp(g_ptr_array_index(d->quiet, i), names_text(s->names.events, event)) == 0;
    for (size_t i = s->spec->point_count; i < s->point_count && !is_found; i++)
        is_found = s->found[i - s->spec->point_count] == event;
    return is_quiet || is_found || event < s->spec->event_count;
}

/* Reports events that an inferred drawing does not show. A user's drawing may omit any event. */
static void check_drawn(const store *s, const drawing *d, GPtrArray *notices)
{
    const char *example = NULL;
    size_t count = names_count(s->names.events), missing = 0;
    for (size_t event = 0; s->looks_out && event < count; event++)
        if (!is_drawn(s, d, (uint16_t)event) && missing++ == 0)
            example = names_text(s->names.events, (uint16_t)event);
    if (missing == 1)
        g_ptr_array_add(notices,
                        g_strdup_printf("The drawing does not show the event %s. To draw it, use F4 in the window "
                                        "or --config.",
                                        example));
    if (missing > 1)
        g_ptr_array_add(
            notices,
            g_strdup_printf("The drawing does not show %zu of %zu kinds of events, such as %s. To draw them, use F4 "
                            "in the window or --config.",
                            missing, count, example));
}

/* Reports measurements that an inferred drawing does not show. */
static void check_measurements(const drawing *d, GPtrArray *notices)
{
    const guint count = d->omitted->len;
    const char *first = count > 0 ? g_ptr_array_index(d->omitted, 0) : NULL;
    if (count == 1)
        g_ptr_array_add(
            notices,
            g_strdup_printf("1 measurement is not drawn: %s. To draw it, use F4 in the window or --config.", first));
    if (count > 1)
        g_ptr_array_add(notices,
                        g_strdup_printf("%u measurements are not drawn, such as %s. To draw them, use F4 in the "
                                        "window or --config.",
                                        count, first));
}

/* Returns whether one lifeline of a drawing contains all events of a lifeline. */
static bool contains_lifeline(const drawing *d, const drawing_lifeline *l)
{
    for (guint i = 0; i < d->lifelines->len; i++) {
        const drawing_lifeline *own = g_ptr_array_index(d->lifelines, i);
        bool is_contained = true;
        for (char **event = l->events; *event != NULL; event++)
            is_contained = is_contained && g_strv_contains((const char *const *)own->events, *event);
        if (is_contained)
            return true;
    }
    return false;
}

/* Returns the number of lifelines that the ready-made drawing has and `d` lacks, and whose events are in the log. */
static unsigned count_fitting(const store *s, const drawing *d, const drawing *ready)
{
    unsigned fitting = 0;
    for (guint i = 0; i < ready->lifelines->len; i++) {
        const drawing_lifeline *l = g_ptr_array_index(ready->lifelines, i);
        bool is_complete = true;
        for (char **event = l->events; *event != NULL && is_complete; event++)
            is_complete = names_find(s->names.events, *event) != NAMES_NONE;
        fitting += is_complete && !contains_lifeline(d, l);
    }
    return fitting;
}

/* Reports ready-made drawings that show requests of the log which an inferred drawing omits. */
static void check_ready_made(const store *s, const drawing *d, GPtrArray *notices)
{
    char **names = s->looks_out ? drawing_names() : NULL;
    GString *fitting = g_string_new("");
    unsigned count = 0;
    for (char **name = names; name != NULL && *name != NULL; name++) {
        drawing *ready = drawing_read(*name);
        if (ready != NULL && count_fitting(s, d, ready) > 0)
            g_string_append_printf(fitting, "%s%s", count++ > 0 ? ", " : "", *name);
        drawing_free(ready);
    }
    if (count > 0)
        g_ptr_array_add(notices, g_strdup_printf("The log fits the ready-made drawing%s %s. To show %s, use F4 in the "
                                                 "window or --config.",
                                                 nl_plural(count), fitting->str, count == 1 ? "it" : "one"));
    g_string_free(fitting, TRUE);
    g_strfreev(names);
}

void checks_add(const store *s, const drawing *d, bool in_order, GPtrArray *notices)
{
    if (s->count <= s->first)
        return;
    if (s->count - s->first == 1)
        g_ptr_array_add(notices, g_strdup("The log has only one record"));
    check_times(s, notices);
    check_gap(s, notices);
    check_clocks(s, notices);
    check_zones(s, d, notices);
    check_drawn(s, d, notices);
    check_measurements(d, notices);
    check_ready_made(s, d, notices);
    if (in_order && s->unordered > 0)
        g_ptr_array_add(notices,
                        g_strdup_printf("%" G_GUINT64_FORMAT
                                        " of %u records %s out of order; nlv shows all records in time order",
                                        s->unordered, s->count - s->first, s->unordered == 1 ? "was" : "were"));
}
