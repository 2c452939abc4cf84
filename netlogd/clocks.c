#include "config.h"

#include "clocks.h"

#include "base/hash_bytes.h"
#include "base/monotonic.h"
#include "peer_address.h"
#include "base/clock_quality.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
    HOSTS_MAX = 1024,
    NAME_SIZE = 256,
    SOURCE_SIZE = 64,
};

/* A clock is wrong if its offset exceeds the error bound by more than this number of microseconds. */
#define OFF_US 10e3

/* Minimum time between two warnings about a host. */
#define REPORT_NS (60 * NL_NS_PER_SECOND)

/* The table may replace a host that was silent for this time. Sensors read clocks about once a minute. */
#define EXPIRES_NS (15 * 60 * NL_NS_PER_SECOND)

typedef struct host_clock {
    char host[NAME_SIZE];
    char source[SOURCE_SIZE];
    int64_t time_ns; /* time of the latest record */
    bool has_state, synchronized;
    bool has_kernel; /* the host has reported the kernel's own state, which takes precedence over chronyd's state */
    bool has_error, has_stratum, has_offset;
    double error_us, offset_us, offset_error_us, delay_us;
    int64_t stratum;
    bool warned;         /* the latest report was a warning */
    int64_t reported_ns; /* time of the latest report, on the monotonic clock; 0: no report */
} host_clock;

/*
 * The table of hosts. A client that invents host names causes several searches for each of its records. Searches read
 * only the arrays of hashes, owners and times, so they are fast.
 */
static struct {
    nl_log *log;
    uint64_t seed; /* seed of the hashes, which clients do not know */
    size_t count;
    uint64_t hashes[HOSTS_MAX];   /* hash of the host's name */
    uint64_t owners[HOSTS_MAX];   /* hash of the host's owner, which is the address that sent its first record */
    unsigned shares[HOSTS_MAX];   /* number of hosts of that owner */
    uint64_t machines[HOSTS_MAX]; /* hash of the host's CLOCK.MACHINE; 0: unknown */
    int64_t heard_ns[HOSTS_MAX]; /* time at which the latest clock record of the host arrived, on the monotonic clock */
    host_clock hosts[HOSTS_MAX];
    uint64_t reported; /* number of messages since reported_since_ns */
    int64_t reported_since_ns;
} table;

void clocks_start(nl_log *log)
{
    table.log = log;
    table.count = 0; /* the other members stay untouched, and so do their pages */
    if (getrandom(&table.seed, sizeof table.seed, 0) != sizeof table.seed)
        table.seed = (uint64_t)nl_monotonic_ns();
}

static void clocks_copy(char *to, size_t capacity, nl_string from)
{
    snprintf(to, capacity, "%.*s", from.size < capacity ? (int)from.size : (int)capacity,
             from.data != NULL ? from.data : "");
}

/* Adds `change` to the number of hosts in each entry of an owner. Returns the new number. */
static unsigned change_share(uint64_t owner, int change)
{
    unsigned share = 0;
    for (size_t i = 0; i < table.count; i++)
        if (table.owners[i] == owner)
            share = table.shares[i] += (unsigned)change;
    return share;
}

/*
 * Returns the index of the host that a new host of `owner` replaces in a full table. This is the host that has been
 * silent longest, if it has expired. Otherwise, the function chooses the owner with the most hosts, preferably `owner`
 * itself, and returns the host of this owner that has been silent longest. Therefore, a client that sends many invented
 * host names cannot displace the hosts of an address with fewer hosts.
 */
static size_t find_replaceable(uint64_t owner)
{
    size_t oldest = 0, found = 0;
    for (size_t i = 1; i < HOSTS_MAX; i++) {
        oldest = table.heard_ns[i] < table.heard_ns[oldest] ? i : oldest;
        unsigned maximum = table.shares[found];
        bool own = table.owners[i] == owner, own_found = table.owners[found] == owner;
        if (table.shares[i] > maximum || (table.shares[i] == maximum && own && !own_found) ||
            (table.owners[i] == table.owners[found] && table.heard_ns[i] < table.heard_ns[found]))
            found = i;
    }
    return nl_monotonic_ns() - table.heard_ns[oldest] >= EXPIRES_NS ? oldest : found;
}

static size_t add_host(const char *peer)
{
    char name[PEER_ADDRESS_SIZE];
    peer_address(peer, name);
    uint64_t owner = hash_bytes(table.seed, name, strlen(name));
    size_t h = table.count < HOSTS_MAX ? table.count++ : HOSTS_MAX;
    if (h == HOSTS_MAX) {
        h = find_replaceable(owner);
        change_share(table.owners[h], -1);
        table.owners[h] = 0;
    }
    unsigned share = change_share(owner, 1);
    table.owners[h] = owner;
    table.shares[h] = share > 0 ? share : 1;
    table.machines[h] = 0;
    table.hosts[h] = (host_clock){0};
    return h;
}

/* Returns the entry of the host. Adds the host if it is new. Updates the time at which the host was last heard. */
static host_clock *clocks_find(nl_string name, const char *peer)
{
    char host[NAME_SIZE];
    clocks_copy(host, sizeof host, name);
    uint64_t hash = hash_bytes(table.seed, host, strlen(host));
    size_t h = 0;
    while (h < table.count && (table.hashes[h] != hash || strcmp(table.hosts[h].host, host) != 0))
        h++;
    if (h == table.count) {
        h = add_host(peer);
        memcpy(table.hosts[h].host, host, sizeof host);
        table.hashes[h] = hash;
    }
    table.heard_ns[h] = nl_monotonic_ns();
    return &table.hosts[h];
}

static bool get_double(const nl_record *record, const char *name, double *value)
{
    nl_field field;
    return nl_record_find(record, name, &field) && nl_field_double(&field, value) && isfinite(*value);
}

static void take_state(host_clock *h, const nl_record *record, bool of_kernel)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_field field;
    if ((h->has_kernel && !of_kernel) || !nl_record_find(record, "CLOCK.SYNCHRONIZED", &field))
        return;
    h->has_kernel |= of_kernel;
    h->has_state = true;
    h->synchronized = nl_string_is(nl_field_text(&field, scratch), "true");
}

static void take_machine(const host_clock *h, const nl_record *record)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_field field;
    if (!nl_record_find(record, NL_CLOCK_MACHINE, &field))
        return;
    const nl_string text = nl_field_text(&field, scratch);
    table.machines[h - table.hosts] = hash_bytes(table.seed, text.data, text.size) | 1;
}

/*
 * Reads the error of a clock. The error is unknown while the clock is not synchronized, because the kernel then reports
 * its default of 16 s.
 */
static void take_error(host_clock *h, const nl_record *record)
{
    h->has_error = h->synchronized && get_double(record, "CLOCK.ERROR", &h->error_us);
}

static void take_tracking(host_clock *h, const nl_record *record)
{
    nl_field source, stratum;
    if (nl_record_find(record, "CLOCK.SOURCE", &source) && source.type == NL_TYPE_STRING)
        clocks_copy(h->source, sizeof h->source, source.string);
    h->has_stratum = nl_record_find(record, "CLOCK.STRATUM", &stratum) && nl_field_int(&stratum, &h->stratum);
    take_error(h, record);
}

static bool is_off(const host_clock *h)
{
    return h->has_offset && fabs(h->offset_us) - h->offset_error_us > OFF_US;
}

/* Returns whether all hosts in the table are names of one machine. Then all their times come from one clock. */
static bool has_one_machine(void)
{
    size_t i = 0;
    while (i < table.count && table.machines[i] != 0 && table.machines[i] == table.machines[0])
        i++;
    return i == table.count;
}

static bool is_wrong(const host_clock *h)
{
    return is_off(h) || (h->has_state && !h->synchronized && !has_one_machine());
}

/*
 * Reports a change of the state. Does not report it if the latest report about this host is recent, or if there were
 * too many reports recently.
 */
static void warn(host_clock *h)
{
    bool wrong = is_wrong(h);
    if (wrong == h->warned)
        return;
    int64_t now_ns = nl_monotonic_ns();
    if (h->reported_ns != 0 && now_ns - h->reported_ns < REPORT_NS)
        return;
    if (now_ns - table.reported_since_ns >= REPORT_NS) {
        table.reported_since_ns = now_ns;
        table.reported = 0;
    }
    if (table.reported++ >= HOSTS_MAX) /* a client probably invents hosts; clocks_report tries again */
        return;
    h->warned = wrong;
    h->reported_ns = now_ns;
    const char *note = is_off(h) ? "the host's clock is wrong"
                       : wrong   ? "the host's clock is not synchronized"
                                 : "the host's clock is correct again";
    nl_level level = wrong ? NL_WARNING : NL_USAGE;
    if (h->has_offset)
        nl_write(table.log, level, "Netlogd.Clock", "CLOCK.HOST=%s CLOCK.OFFSET=%.3f CLOCK.ERROR=%.3f NOTE=%s", h->host,
                 h->offset_us, h->offset_error_us, note);
    else
        nl_write(table.log, level, "Netlogd.Clock", "CLOCK.HOST=%s NOTE=%s", h->host, note);
}

/* Updates the state from a record whose event begins with Clock. Returns whether the record describes a clock. */
static __attribute__((noinline)) bool put_clock(const nl_record *record, const char *peer)
{
    bool kernel = nl_string_is(record->event, NL_CLOCK_KERNEL),
         tracking = nl_string_is(record->event, NL_CLOCK_TRACKING);
    bool offset = nl_string_is(record->event, NL_CLOCK_OFFSET);
    host_clock *h = kernel || tracking || offset ? clocks_find(record->host, peer) : NULL;
    if (h == NULL)
        return false;
    h->time_ns = record->time_ns;
    take_machine(h, record);
    if (kernel || tracking)
        take_state(h, record, kernel);
    if (kernel && h->source[0] == '\0')
        take_error(h, record);
    if (tracking)
        take_tracking(h, record);
    if (offset)
        h->has_offset = get_double(record, "CLOCK.OFFSET", &h->offset_us) &&
                        get_double(record, "CLOCK.ERROR", &h->offset_error_us) &&
                        get_double(record, "CLOCK.DELAY", &h->delay_us);
    warn(h);
    return true;
}

bool clocks_put(const nl_record *record, const char *peer)
{
    return record->event.size >= strlen(NL_CLOCK_KERNEL) && memcmp(record->event.data, "Clock", 5) == 0 &&
           put_clock(record, peer);
}

void clocks_report(void)
{
    for (size_t i = 0; i < table.count; i++)
        warn(&table.hosts[i]);
}

void clocks_count(size_t *hosts, size_t *wrong)
{
    *hosts = table.count;
    *wrong = 0;
    for (size_t i = 0; i < table.count; i++)
        *wrong += is_wrong(&table.hosts[i]);
}

void clocks_describe(request *r)
{
    for (size_t i = 0; i < table.count; i++) {
        const host_clock *h = &table.hosts[i];
        nl_record *record = request_record(r, is_wrong(h) ? NL_WARNING : NL_USAGE, "Netlogd.Clock");
        request_add_text(record, "CLOCK.HOST", h->host);
        if (h->has_state)
            nl_record_add_bool(record, "CLOCK.SYNCHRONIZED", h->synchronized);
        if (h->source[0] != '\0')
            request_add_text(record, "CLOCK.SOURCE", h->source);
        if (h->has_stratum)
            nl_record_add_int(record, "CLOCK.STRATUM", h->stratum);
        if (h->has_error)
            nl_record_add_double(record, "CLOCK.ERROR", h->error_us);
        if (h->has_offset) {
            nl_record_add_double(record, "CLOCK.OFFSET", h->offset_us);
            nl_record_add_double(record, "CLOCK.OFFSET.ERROR", h->offset_error_us);
        }
        request_add_time(record, "LATEST", h->time_ns);
        request_put(r, record);
    }
}
