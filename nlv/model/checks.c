#include "config.h"

#include "model/checks.h"

#include <string.h>

enum { HOSTS_NAMED = 5 };

#define UNKEPT_NS 1e9 /* what a clock may be off that something keeps right is less by far */

static const int64_t year_ns = INT64_C(31556952) * NL_NS_PER_SECOND;

static void check_times(const store *s, GPtrArray *notices)
{
    int64_t first_ns = store_time(s, s->first), last_ns = store_time(s, s->count - 1);
    char time[NL_TIME_TEXT_SIZE];
    if (first_ns < 20 * year_ns) {
        nl_time_format_iso(first_ns, time);
        g_ptr_array_add(notices, g_strdup_printf("The first record is of %.10s: a clock that was not set?", time));
    }
    if (last_ns > nl_time_now_ns() + year_ns) {
        nl_time_format_iso(last_ns, time);
        g_ptr_array_add(notices,
                        g_strdup_printf("The last record is of %.10s, which is yet to come: a wrong clock?", time));
    }
}

static int64_t end_of_chunk(const store *s, uint32_t number)
{
    uint32_t next = (number + 1) * (uint32_t)STORE_CHUNK;
    return next < s->count ? s->marks[next / STORE_MARK] : store_time(s, s->count - 1);
}

/*
 * A stretch of nothing that is more than half of all: then it is within the longest chunk, and the only one. In it two
 * clusters of records are far apart, and each is a pixel wide.
 */
static void check_gap(const store *s, GPtrArray *notices)
{
    int64_t whole_ns = store_time(s, s->count - 1) - store_time(s, s->first), widest_ns = 0;
    uint32_t widest = s->first / STORE_CHUNK, before = s->first;
    for (uint32_t chunk = widest; chunk <= (s->count - 1) / STORE_CHUNK; chunk++) {
        int64_t own_ns = end_of_chunk(s, chunk) - s->marks[chunk * (STORE_CHUNK / STORE_MARK)];
        if (own_ns > widest_ns) {
            widest_ns = own_ns;
            widest = chunk;
        }
    }
    int64_t gap_ns = 0;
    uint32_t from = MAX(widest * (uint32_t)STORE_CHUNK, s->first) + 1;
    for (uint32_t i = from; i < s->count && i <= from + STORE_CHUNK; i++)
        if (store_time(s, i) - store_time(s, i - 1) > gap_ns) {
            gap_ns = store_time(s, i) - store_time(s, i - 1);
            before = i - 1;
        }
    if (gap_ns < whole_ns / 10 * 9 || s->count - s->first < 10)
        return;
    char time[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(store_time(s, before), time);
    g_ptr_array_add(notices,
                    g_strdup_printf("Nine tenths of the log's time there is nothing: %.1f days from %s on. Zoom "
                                    "into either end, or search (Ctrl+F).",
                                    (double)gap_ns / 86400e9, time));
}

/* Hosts that say themselves that nothing keeps their clocks right: the kernel then says 16 s of their error. */
static void check_clocks(const store *s, GPtrArray *notices)
{
    GString *hosts = g_string_new(NULL);
    unsigned count = 0;
    for (size_t host = 0; host < names_count(s->names.hosts); host++) {
        if (store_clock_error_ns(s, (uint16_t)host, s->count - 1) < UNKEPT_NS || ++count > HOSTS_NAMED)
            continue;
        g_string_append_printf(hosts, "%s%s", count > 1 ? ", " : "", names_text(s->names.hosts, (uint16_t)host));
    }
    if (count > HOSTS_NAMED)
        g_string_append_printf(hosts, " and %u more", count - HOSTS_NAMED);
    if (count > 0)
        g_ptr_array_add(notices, g_strdup_printf("Clocks are not synchronized: %s. Times of different hosts may be "
                                                 "seconds apart; nlsort --fix-clocks compares them.",
                                                 hosts->str));
    g_string_free(hosts, TRUE);
}

void checks_add(const store *s, bool in_order, GPtrArray *notices)
{
    if (s->count <= s->first)
        return;
    if (s->count - s->first == 1)
        g_ptr_array_add(notices, g_strdup("There is one record only."));
    check_times(s, notices);
    check_gap(s, notices);
    check_clocks(s, notices);
    if (in_order && s->unordered > 0)
        g_ptr_array_add(notices,
                        g_strdup_printf("%" G_GUINT64_FORMAT " of %u records were not in order; they are shown "
                                        "where they belong.",
                                        s->unordered, s->count - s->first));
}
