#include "config.h"

#include "datagrams.h"

#include "accepting.h"
#include "base/hash_bytes.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "counts.h"
#include "flush.h"
#include "output/outputs.h"
#include "reader/decoder_work.h"
#include "records.h"
#include "server.h"
#include "service/allowance.h"
#include "syslog_input.h"
#include "turns.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
    READ_SIZE = 64 << 10,
    AT_ONCE = 64,          /* maximum number of datagrams read in a turn, so that connections get their turns */
    WAITING_MAX = 1 << 16, /* maximum number of datagrams read when netlogd ends */
    KERNEL_BUFFER = 4 << 20,
    SENDERS = 1 << 12,      /* number of senders whose allowances are stored; a power of two */
    WORK_FREE = 1000000,    /* units of work that every datagram may cause */
    WORK_PER_BYTE = 100,    /* additional units of work that a datagram may cause for each of its bytes */
    FAIR_PER_BYTE = 30,     /* units of work per byte; further work is subtracted from the sender's allowance */
    EXCESS_RATE = 50000000, /* units per second by which the allowance for further work grows; also its maximum */
};

/* A sender of datagrams, identified by its address. */
typedef struct sender {
    struct in6_addr address;
    allowance records; /* allowance for max-rate */
    allowance excess;  /* allowance for work beyond FAIR_PER_BYTE units per byte */
} sender;

typedef struct datagrams {
    struct datagrams *next;
    const listener *from;
    struct event *readable;
    syslog_input *syslog; /* NULL: the datagrams contain NetLogger records */
    uint64_t malformed;
    uint64_t turn_work;  /* units of work in this turn */
    nl_decoder *decoder; /* decoder of the current datagram */
    uint64_t work_max;   /* maximum units of work for the current datagram */
    char peer[80];       /* sender of the latest datagram */
    sender *senders;     /* indexed by a hash of the address; NULL until the first datagram arrives */
    uint64_t seed;
    uint32_t dropped; /* number of datagrams that the kernel has dropped, modulo 2^32 */
} datagrams;

static datagrams *all;
static char read_buffer[READ_SIZE];

static void on_malformed(void *user, const nl_malformed *what)
{
    datagrams *d = user;
    records_reject(what, d->peer, "", ++d->malformed);
}

static bool may_take_block(void *user)
{
    const datagrams *d = user;
    if (outputs_are_due())
        flush_now();
    return nl_decoder_work(d->decoder) + nl_decoder_next_work(d->decoder) <= d->work_max && !outputs_are_blocked();
}

/* ---- limits for senders ---- */

/*
 * Returns the entry of an address, which a secret hash selects. An entry may belong to another address. If that address
 * has used none of its allowances recently, the new address replaces it. Otherwise, both addresses share the entry.
 * Therefore, the memory does not depend on the number of addresses.
 */
static sender *find_sender(const datagrams *d, const struct in6_addr *address)
{
    int64_t now_ns = nl_monotonic_ns();
    double rate = (double)server_settings()->max_rate;
    sender *s = &d->senders[hash_bytes(d->seed, (const char *)address, sizeof *address) & (SENDERS - 1)];
    allowance_spend(&s->records, rate, now_ns, 0);
    allowance_spend(&s->excess, EXCESS_RATE, now_ns, 0);
    if (memcmp(&s->address, address, sizeof *address) != 0 && s->records.left >= rate && s->excess.left >= EXCESS_RATE)
        s->address = *address;
    return s;
}

/* Returns the sender of a datagram, or NULL for a local socket, which has no address. */
static sender *limited_sender(datagrams *d, const struct sockaddr_storage *from)
{
    struct in6_addr address = {0};
    if (from->ss_family == AF_INET6)
        address = ((const struct sockaddr_in6 *)from)->sin6_addr;
    else if (from->ss_family == AF_INET)
        memcpy(&address, &((const struct sockaddr_in *)from)->sin_addr, sizeof(struct in_addr));
    else
        return NULL;
    if (d->senders == NULL) {
        d->senders = nl_memory_check(calloc(SENDERS, sizeof *d->senders));
        if (getrandom(&d->seed, sizeof d->seed, 0) != sizeof d->seed)
            d->seed = (uint64_t)nl_monotonic_ns();
    }
    return find_sender(d, &address);
}

/*
 * Returns whether to drop a datagram because its sender has exceeded its allowance, and reports the drop. netlogd
 * cannot make a sender of datagrams wait.
 */
static bool drop_excess(const datagrams *d, const sender *from)
{
    const char *reason = NULL;
    if (from != NULL && server_settings()->max_rate > 0 && from->records.left < 0)
        reason = "datagrams dropped: more records than max-rate allows";
    else if (from != NULL && from->excess.left < 0)
        reason = "datagrams dropped: their blocks cause too much work";
    if (reason != NULL)
        counts_report(COUNT_OVER_RATE, d->peer, reason);
    return reason != NULL;
}

/* Computes the work of a datagram beyond FAIR_PER_BYTE units per byte, and subtracts it from the sender's allowance. */
static void charge_sender(datagrams *d, size_t size, sender *from)
{
    uint64_t work = nl_decoder_work(d->decoder), fair = FAIR_PER_BYTE * (uint64_t)size;
    counts_add(COUNT_WORK, work);
    d->turn_work += work;
    if (from != NULL && work > fair)
        from->excess.left -= (double)(work - fair);
}

/* ---- records ---- */

static void take_records(datagrams *d, size_t size, sender *from)
{
    const nl_record *record;
    uint64_t put = 0;
    nl_decoder *decoder = d->decoder =
        nl_decoder_new(&(nl_decoder_options){.source = d->peer,
                                             .fraction = server_settings()->fraction,
                                             .max_record_size = server_settings()->max_record_size,
                                             .on_malformed = on_malformed,
                                             .user = d});
    d->work_max = WORK_FREE + WORK_PER_BYTE * (uint64_t)size;
    nl_decoder_ask(decoder, may_take_block, d);
    nl_decoder_feed(decoder, read_buffer, size);
    nl_decoder_finish(decoder);
    for (; nl_decoder_next(decoder, &record) == NL_OK; put++)
        records_put(record, NULL, d->peer);
    counts_add(COUNT_RECORDS, put);
    if (from != NULL)
        from->records.left -= (double)put;
    charge_sender(d, size, from);
    if (nl_decoder_is_paused(decoder))
        on_malformed(d, &(nl_malformed){.reason = "its blocks cause too much work", .text = {read_buffer, size}});
    nl_decoder_free(decoder);
    flush_request(false);
}

static void put_message(void *user, const nl_record *record)
{
    const datagrams *d = user;
    records_put(record, NULL, d->peer);
}

/* Reads a datagram that is a syslog message. */
static void take_message(datagrams *d, size_t size, const struct sockaddr *peer, sender *from)
{
    uint64_t before = syslog_input_get_stats(d->syslog)->records;
    syslog_input_set_sender(d->syslog, peer);
    syslog_input_read_datagram(d->syslog, read_buffer, size);
    uint64_t put = syslog_input_get_stats(d->syslog)->records - before, work = SYSLOG_WORK_PER_BYTE * (uint64_t)size;
    counts_add(COUNT_RECORDS, put);
    counts_add(COUNT_WORK, work);
    d->turn_work += work;
    if (from != NULL)
        from->records.left -= (double)put;
    flush_request(false);
}

/* Reads a datagram. Returns false if no datagram was waiting. */
static bool read_one(datagrams *d)
{
    struct sockaddr_storage from = {0};
    socklen_t from_size = sizeof from;
    ssize_t got = recvfrom(d->from->fd, read_buffer, READ_SIZE, MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);
    if (got < 0)
        return errno != EAGAIN;
    if (from_size == 0)
        from.ss_family = AF_UNIX; /* a sender without a name */
    if (!accepting_allows((struct sockaddr *)&from, false)) {
        counts_add(COUNT_REFUSED, 1);
        return true;
    }
    listener_address_text((struct sockaddr *)&from, d->peer, sizeof d->peer);
    counts_add(COUNT_BYTES, (uint64_t)got);
    sender *who = limited_sender(d, &from);
    if (drop_excess(d, who))
        return true;
    if (d->syslog != NULL)
        take_message(d, (size_t)got, (struct sockaddr *)&from, who);
    else
        take_records(d, (size_t)got, who);
    return true;
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    datagrams *d = user;
    d->turn_work = 0;
    for (int i = 0; i < AT_ONCE && !flush_is_paused() && d->turn_work < TURNS_BUDGET; i++)
        if (!read_one(d))
            return;
}

void datagrams_new(const listener *from)
{
    datagrams *d = nl_memory_check(calloc(1, sizeof *d));
    d->readable = server_new_event(from->fd, EV_READ | EV_PERSIST, on_readable, d);
    event_priority_set(d->readable, SERVER_PRIORITY_TURN);
    d->from = from;
    if (from->asked->syslog)
        d->syslog = syslog_input_new(&(syslog_input_options){.put = put_message, .reject = on_malformed, .user = d});
    setsockopt(from->fd, SOL_SOCKET, SO_RCVBUF, &(int){KERNEL_BUFFER}, sizeof(int));
    event_add(d->readable, NULL);
    d->next = all;
    all = d;
}

void datagrams_pause(bool pause)
{
    for (datagrams *d = all; d != NULL; d = d->next)
        if (pause)
            event_del(d->readable);
        else
            event_add(d->readable, NULL);
}

void datagrams_take_arrived(void)
{
    for (datagrams *d = all; d != NULL; d = d->next)
        for (int i = 0; i < WAITING_MAX && !outputs_are_blocked() && read_one(d); i++)
            ;
}

void datagrams_check_drops(void)
{
    for (datagrams *d = all; d != NULL; d = d->next) {
        uint32_t memory[SK_MEMINFO_VARS] = {0}; /* the kernel also counts the drops before netlogd was started */
        socklen_t size = sizeof memory;
        if (getsockopt(d->from->fd, SOL_SOCKET, SO_MEMINFO, memory, &size) != 0 ||
            size < (SK_MEMINFO_DROPS + 1) * sizeof *memory)
            continue;
        uint32_t more = memory[SK_MEMINFO_DROPS] - d->dropped;
        d->dropped = memory[SK_MEMINFO_DROPS];
        counts_add(COUNT_UNREAD, more);
        if (more > 0)
            nl_write(server_log(), NL_WARNING, "Netlogd.Unread", "LISTENER=%s COUNT=%u", d->from->name, more);
    }
}

void datagrams_free(void)
{
    for (datagrams *d = all, *next; d != NULL; d = next) {
        next = d->next;
        event_free(d->readable);
        free(d->senders);
        syslog_input_free(d->syslog);
        free(d);
    }
}
