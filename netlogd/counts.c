#include "config.h"

#include "counts.h"

#include "base/monotonic.h"
#include "server.h"

#include <inttypes.h>
#include <stdio.h>

/* An event that is written at most once per second, and its occurrences since it was last written. */
typedef struct report {
    uint64_t count; /* number of occurrences since the last event */
    char peer[160], reason[160];
    int64_t reported_ns; /* time of the last event; 0: no event */
} report;

static const struct {
    const char *event;
} rows[COUNT_COUNT] = {
    [COUNT_REFUSED] = {.event = "Netlogd.Refused"},      [COUNT_STREAMS_REFUSED] = {.event = "Netlogd.Refused"},
    [COUNT_GAPS_REFUSED] = {.event = "Netlogd.Refused"}, [COUNT_EXPANDING] = {.event = "Netlogd.Expanding"},
    [COUNT_DISPLACED] = {.event = "Netlogd.Displaced"},  [COUNT_OVER_RATE] = {.event = "Netlogd.OverRate"},
    [COUNT_FOREIGN] = {.event = "Netlogd.Foreign"},
};

static uint64_t counts[COUNT_COUNT];
static report reports[COUNT_COUNT];
static uint64_t rate_records; /* number of records when the rate was last computed */
static int64_t rate_ns;       /* time at which the rate was last computed */
static double rate;

void counts_start(void)
{
    rate_ns = nl_monotonic_ns();
}

void counts_add(count which, uint64_t number)
{
    counts[which] += number;
}

uint64_t counts_get(count which)
{
    return counts[which];
}

static void write_report(count which)
{
    report *r = &reports[which];
    if (r->count > 0)
        nl_write(server_log(), NL_WARNING, rows[which].event, "PEER=%s REASON=%s COUNT=%" PRIu64, r->peer, r->reason,
                 r->count);
    if (r->count > 0)
        r->reported_ns = nl_monotonic_ns();
    r->count = 0;
}

void counts_report(count which, const char *peer, const char *reason)
{
    report *r = &reports[which];
    counts[which]++;
    r->count++;
    snprintf(r->peer, sizeof r->peer, "%s", peer);
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    if (r->reported_ns == 0 || nl_monotonic_ns() - r->reported_ns >= NL_NS_PER_SECOND)
        write_report(which);
}

void counts_tick(int64_t now_ns)
{
    rate = (double)(counts[COUNT_RECORDS] - rate_records) * 1e9 / (double)(now_ns - rate_ns);
    rate_records = counts[COUNT_RECORDS];
    rate_ns = now_ns;
    for (count which = COUNT_REFUSED; which < COUNT_COUNT; which++)
        write_report(which);
}

double counts_get_rate(void)
{
    return rate;
}
