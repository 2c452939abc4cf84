#include "config.h"

#include "clocks.h"

#include "base/monotonic.h"
#include "peer_address.h"
#include "program/program.h"
#include "base/clock_quality.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOSTS_MAX = 1024,
    NAME_SIZE = 256,
    SOURCE_SIZE = 64,
};

/* Microseconds beyond its error bound by which a clock is off that is worth a warning. */
#define OFF_US 10e3

/* What a client says at will makes one record of each host in so long, and there are HOSTS_MAX of them. */
#define TELL_NS (60 * NL_NS_PER_SECOND)

/* A host that was silent for so long may be forgotten for any other: sensors look at clocks every minute or so. */
#define EXPIRES_NS (15 * 60 * NL_NS_PER_SECOND)

/* An address from which hosts' first records came. */
typedef struct clock_owner {
    char name[PEER_ADDRESS_SIZE];
    size_t count; /* of its hosts; 0: the entry is unused */
} clock_owner;

typedef struct host_clock {
    char host[NAME_SIZE];
    clock_owner *owner;
    int64_t heard_ns; /* when the latest record came, by the monotonic clock */
    char source[SOURCE_SIZE];
    int64_t time_ns; /* of the latest record */
    bool has_state, synchronized;
    bool has_kernel; /* it says how synchronized the clock is; chronyd says how it finds it */
    bool has_error, has_stratum, has_offset;
    double error_us, offset_us, offset_error_us, delay_us;
    int64_t stratum;
    bool warned;     /* as it was said last */
    int64_t told_ns; /* when that was, by the monotonic clock; 0: never */
} host_clock;

struct clocks {
    nl_log *log;
    size_t count;
    host_clock hosts[HOSTS_MAX];
    clock_owner owners[HOSTS_MAX];
    uint64_t told; /* since then: */
    int64_t told_since_ns;
};

clocks *clocks_new(nl_log *log)
{
    clocks *c = calloc(1, sizeof *c);
    if (c == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    c->log = log;
    return c;
}

void clocks_free(clocks *c)
{
    free(c);
}

static bool is(nl_string text, const char *name)
{
    return text.size == strlen(name) && memcmp(text.data, name, text.size) == 0;
}

static void copy(char *to, size_t room, nl_string from)
{
    snprintf(to, room, "%.*s", from.size < room ? (int)from.size : (int)room, from.data != NULL ? from.data : "");
}

/* The owner of that name, which may be a new one; NULL when there are too many. */
static clock_owner *find_owner(clocks *c, const char *name)
{
    clock_owner *unused = NULL;
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        clock_owner *o = &c->owners[i];
        if (o->count > 0 && strcmp(o->name, name) == 0)
            return o;
        unused = unused == NULL && o->count == 0 ? o : unused;
    }
    if (unused != NULL)
        snprintf(unused->name, sizeof unused->name, "%s", name);
    return unused;
}

/* The host that was silent for longest, of an owner or (NULL) of all. */
static host_clock *oldest_host(clocks *c, const clock_owner *owner)
{
    host_clock *oldest = NULL;
    for (size_t i = 0; i < c->count; i++) {
        host_clock *h = &c->hosts[i];
        if ((owner == NULL || h->owner == owner) && (oldest == NULL || h->heard_ns < oldest->heard_ns))
            oldest = h;
    }
    return oldest;
}

/*
 * The entry that a new host of owner takes over in a full table; NULL when there is none. One that has expired goes
 * first, then the oldest of the owner that has most: hosts that one address invents never displace those of an address
 * with fewer.
 */
static host_clock *find_replaceable(clocks *c, const clock_owner *owner)
{
    host_clock *oldest = oldest_host(c, NULL);
    if (nl_monotonic_ns() - oldest->heard_ns >= EXPIRES_NS)
        return oldest;
    const clock_owner *largest = owner;
    for (size_t i = 0; i < HOSTS_MAX; i++)
        if (largest == NULL || c->owners[i].count > largest->count + (largest == owner))
            largest = &c->owners[i];
    return oldest_host(c, largest);
}

/* The entry for a new host, whose owner is set; NULL when there is no place. */
static host_clock *add_host(clocks *c, const char *peer)
{
    char name[PEER_ADDRESS_SIZE];
    peer_address(peer, name);
    host_clock *h = NULL;
    if (c->count >= HOSTS_MAX) {
        h = find_replaceable(c, find_owner(c, name));
        if (h == NULL)
            return NULL;
        h->owner->count--;
    }
    clock_owner *owner = find_owner(c, name); /* there is one: each has a host, and a place was made */
    h = h != NULL ? h : &c->hosts[c->count++];
    *h = (host_clock){.owner = owner};
    owner->count++;
    return h;
}

/* The host's entry, which may be a new one; NULL when there are too many. */
static host_clock *find(clocks *c, nl_string name, const char *peer)
{
    char host[NAME_SIZE];
    copy(host, sizeof host, name);
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->hosts[i].host, host) == 0)
            return &c->hosts[i];
    host_clock *h = add_host(c, peer);
    if (h != NULL)
        memcpy(h->host, host, sizeof host);
    return h;
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
    h->synchronized = is(nl_field_text(&field, scratch), "true");
}

static void take_tracking(host_clock *h, const nl_record *record)
{
    nl_field source, stratum;
    if (nl_record_find(record, "CLOCK.SOURCE", &source) && source.type == NL_TYPE_STRING)
        copy(h->source, sizeof h->source, source.string);
    h->has_stratum = nl_record_find(record, "CLOCK.STRATUM", &stratum) && nl_field_int(&stratum, &h->stratum);
    h->has_error = get_double(record, "CLOCK.ERROR", &h->error_us);
}

static bool is_off(const host_clock *h)
{
    return h->has_offset && fabs(h->offset_us) - h->offset_error_us > OFF_US;
}

static bool is_wrong(const host_clock *h)
{
    return (h->has_state && !h->synchronized) || is_off(h);
}

/* Says it when it has changed since it was said last, and that was not just now. */
static void warn(clocks *c, host_clock *h)
{
    bool wrong = is_wrong(h);
    if (wrong == h->warned)
        return;
    int64_t now_ns = nl_monotonic_ns();
    if (h->told_ns != 0 && now_ns - h->told_ns < TELL_NS)
        return;
    if (now_ns - c->told_since_ns >= TELL_NS) {
        c->told_since_ns = now_ns;
        c->told = 0;
    }
    if (c->told++ >= HOSTS_MAX) /* somebody invents hosts; what could not be said now is said later */
        return;
    h->warned = wrong;
    h->told_ns = now_ns;
    const char *note = is_off(h) ? "its clock is off"
                       : wrong   ? "its clock is not synchronized"
                                 : "its clock is right again";
    nl_level level = wrong ? NL_WARNING : NL_USAGE;
    if (h->has_offset)
        nl_write(c->log, level, "Netlogd.Clock", "CLOCK.HOST=%s CLOCK.OFFSET=%.3f CLOCK.ERROR=%.3f NOTE=%s", h->host,
                 h->offset_us, h->offset_error_us, note);
    else
        nl_write(c->log, level, "Netlogd.Clock", "CLOCK.HOST=%s NOTE=%s", h->host, note);
}

void clocks_put(clocks *c, const nl_record *record, const char *peer)
{
    if (record->event.size < strlen(NL_CLOCK_KERNEL) || memcmp(record->event.data, "Clock", 5) != 0)
        return;
    bool kernel = is(record->event, NL_CLOCK_KERNEL), tracking = is(record->event, NL_CLOCK_TRACKING);
    bool offset = is(record->event, NL_CLOCK_OFFSET);
    host_clock *h = kernel || tracking || offset ? find(c, record->host, peer) : NULL;
    if (h == NULL)
        return;
    h->time_ns = record->time_ns;
    h->heard_ns = nl_monotonic_ns();
    if (kernel || tracking)
        take_state(h, record, kernel);
    if (kernel && h->source[0] == '\0')
        h->has_error = get_double(record, "CLOCK.ERROR", &h->error_us);
    if (tracking)
        take_tracking(h, record);
    if (offset)
        h->has_offset = get_double(record, "CLOCK.OFFSET", &h->offset_us) &&
                        get_double(record, "CLOCK.ERROR", &h->offset_error_us) &&
                        get_double(record, "CLOCK.DELAY", &h->delay_us);
    warn(c, h);
}

void clocks_tell(clocks *c)
{
    for (size_t i = 0; i < c->count; i++)
        warn(c, &c->hosts[i]);
}

void clocks_count(const clocks *c, size_t *hosts, size_t *wrong)
{
    *hosts = c->count;
    *wrong = 0;
    for (size_t i = 0; i < c->count; i++)
        *wrong += is_wrong(&c->hosts[i]);
}

void clocks_describe(const clocks *c, request *r)
{
    for (size_t i = 0; i < c->count; i++) {
        const host_clock *h = &c->hosts[i];
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
