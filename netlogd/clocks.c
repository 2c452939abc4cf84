#include "config.h"

#include "clocks.h"

#include "base/hash_bytes.h"
#include "base/monotonic.h"
#include "peer_address.h"
#include "program/program.h"
#include "base/clock_quality.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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

typedef struct host_clock {
    char host[NAME_SIZE];
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

/* A host's neighbours in a list of hosts by the time of their latest records. */
typedef struct neighbours {
    uint16_t previous, next; /* HOSTS_MAX: none */
} neighbours;

typedef struct host_list {
    uint16_t oldest, newest;
} host_list;

/*
 * A client that invents hosts causes several searches for each of its records, so each search is short: hosts and
 * owners are found by hashes in arrays of their own, the oldest host by lists.
 */
struct clocks {
    nl_log *log;
    uint64_t seed; /* of the hashes, unknown to clients */
    size_t count;
    uint64_t host_hashes[HOSTS_MAX]; /* of hosts[].host */
    int64_t heard_ns[HOSTS_MAX];     /* when the latest record of the host came, by the monotonic clock */
    uint16_t owner_of[HOSTS_MAX];    /* index of the host's owner: the address from which its first record came */
    host_list all;
    neighbours in_all[HOSTS_MAX], in_own[HOSTS_MAX]; /* own: the list of the host's owner */
    host_clock hosts[HOSTS_MAX];
    uint64_t owner_hashes[HOSTS_MAX];
    uint16_t owner_counts[HOSTS_MAX]; /* of the owner's hosts; 0: the entry is unused */
    host_list owned[HOSTS_MAX];
    char owners[HOSTS_MAX][PEER_ADDRESS_SIZE];
    size_t largest; /* an owner with the most hosts */
    uint64_t told;  /* since then: */
    int64_t told_since_ns;
};

clocks *clocks_new(nl_log *log)
{
    clocks *c = calloc(1, sizeof *c);
    if (c == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    c->log = log;
    c->all = (host_list){HOSTS_MAX, HOSTS_MAX};
    if (getrandom(&c->seed, sizeof c->seed, 0) != sizeof c->seed)
        c->seed = (uint64_t)nl_monotonic_ns();
    return c;
}

void clocks_free(clocks *c)
{
    free(c);
}

static bool clocks_is(nl_string text, const char *name)
{
    return text.size == strlen(name) && memcmp(text.data, name, text.size) == 0;
}

static void clocks_copy(char *to, size_t capacity, nl_string from)
{
    snprintf(to, capacity, "%.*s", from.size < capacity ? (int)from.size : (int)capacity,
             from.data != NULL ? from.data : "");
}

/* Returns the index of the owner of that name, which may be a new one, or HOSTS_MAX if there are too many. */
static size_t find_owner(clocks *c, const char *name)
{
    uint64_t hash = hash_bytes(c->seed, name, strlen(name));
    size_t unused = HOSTS_MAX;
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        if (c->owner_counts[i] > 0 && c->owner_hashes[i] == hash && strcmp(c->owners[i], name) == 0)
            return i;
        unused = unused == HOSTS_MAX && c->owner_counts[i] == 0 ? i : unused;
    }
    if (unused < HOSTS_MAX) {
        c->owner_hashes[unused] = hash;
        snprintf(c->owners[unused], sizeof c->owners[unused], "%s", name);
    }
    return unused;
}

static void list_append(host_list *list, neighbours *links, size_t host)
{
    links[host] = (neighbours){list->newest, HOSTS_MAX};
    *(list->newest < HOSTS_MAX ? &links[list->newest].next : &list->oldest) = (uint16_t)host;
    list->newest = (uint16_t)host;
}

static void list_remove(host_list *list, neighbours *links, size_t host)
{
    neighbours n = links[host];
    *(n.previous < HOSTS_MAX ? &links[n.previous].next : &list->oldest) = n.next;
    *(n.next < HOSTS_MAX ? &links[n.next].previous : &list->newest) = n.previous;
}

static void count_host(clocks *c, size_t owner, int change)
{
    c->owner_counts[owner] = (uint16_t)(c->owner_counts[owner] + change);
    if (c->owner_counts[owner] > c->owner_counts[c->largest])
        c->largest = owner;
}

/*
 * Returns the index of the host that a new host of owner replaces in a full table. A host that has expired is first,
 * then the oldest host of the owner with the most hosts: hosts that one address invents never displace those of an
 * address with fewer.
 */
static size_t find_replaceable(clocks *c, size_t owner)
{
    if (nl_monotonic_ns() - c->heard_ns[c->all.oldest] >= EXPIRES_NS)
        return c->all.oldest;
    if (owner == HOSTS_MAX || c->owner_counts[owner] != c->owner_counts[c->largest])
        for (size_t i = 0; i < HOSTS_MAX; i++)
            if (c->owner_counts[i] > c->owner_counts[c->largest])
                c->largest = i;
    return c->owned[owner < HOSTS_MAX && c->owner_counts[owner] == c->owner_counts[c->largest] ? owner : c->largest]
        .oldest;
}

/* Returns the index for a new host. */
static size_t add_host(clocks *c, const char *peer)
{
    char name[PEER_ADDRESS_SIZE];
    peer_address(peer, name);
    size_t h = c->count;
    if (h < HOSTS_MAX) {
        c->count++;
    } else {
        h = find_replaceable(c, find_owner(c, name));
        list_remove(&c->all, c->in_all, h);
        list_remove(&c->owned[c->owner_of[h]], c->in_own, h);
        count_host(c, c->owner_of[h], -1);
    }
    size_t owner = find_owner(c, name); /* found: each owner has a host, and the table has a place */
    if (c->owner_counts[owner] == 0)
        c->owned[owner] = (host_list){HOSTS_MAX, HOSTS_MAX};
    count_host(c, owner, 1);
    c->owner_of[h] = (uint16_t)owner;
    list_append(&c->all, c->in_all, h);
    list_append(&c->owned[owner], c->in_own, h);
    c->hosts[h] = (host_clock){0};
    return h;
}

/* Returns the entry of the host, which may be a new one, and notes that it is heard. */
static host_clock *clocks_find(clocks *c, nl_string name, const char *peer)
{
    char host[NAME_SIZE];
    clocks_copy(host, sizeof host, name);
    uint64_t hash = hash_bytes(c->seed, host, strlen(host));
    size_t h = 0;
    while (h < c->count && (c->host_hashes[h] != hash || strcmp(c->hosts[h].host, host) != 0))
        h++;
    if (h == c->count) {
        h = add_host(c, peer);
        memcpy(c->hosts[h].host, host, sizeof host);
        c->host_hashes[h] = hash;
    } else {
        list_remove(&c->all, c->in_all, h);
        list_remove(&c->owned[c->owner_of[h]], c->in_own, h);
        list_append(&c->all, c->in_all, h);
        list_append(&c->owned[c->owner_of[h]], c->in_own, h);
    }
    c->heard_ns[h] = nl_monotonic_ns();
    return &c->hosts[h];
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
    h->synchronized = clocks_is(nl_field_text(&field, scratch), "true");
}

static void take_tracking(host_clock *h, const nl_record *record)
{
    nl_field source, stratum;
    if (nl_record_find(record, "CLOCK.SOURCE", &source) && source.type == NL_TYPE_STRING)
        clocks_copy(h->source, sizeof h->source, source.string);
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

/* A record that is perhaps one of clocks. Returns whether it is. */
static __attribute__((noinline)) bool put_clock(clocks *c, const nl_record *record, const char *peer)
{
    bool kernel = clocks_is(record->event, NL_CLOCK_KERNEL), tracking = clocks_is(record->event, NL_CLOCK_TRACKING);
    bool offset = clocks_is(record->event, NL_CLOCK_OFFSET);
    host_clock *h = kernel || tracking || offset ? clocks_find(c, record->host, peer) : NULL;
    if (h == NULL)
        return false;
    h->time_ns = record->time_ns;
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
    return true;
}

bool clocks_put(clocks *c, const nl_record *record, const char *peer)
{
    return record->event.size >= strlen(NL_CLOCK_KERNEL) && memcmp(record->event.data, "Clock", 5) == 0 &&
           put_clock(c, record, peer);
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
