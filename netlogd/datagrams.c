#include "config.h"

#include "datagrams.h"

#include "accepting.h"
#include "base/hash_bytes.h"
#include "base/monotonic.h"
#include "clocks.h"
#include "program/program.h"
#include "reader/decoder_work.h"
#include "service/allowance.h"
#include "subscription.h"
#include "turns.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
    AT_ONCE = 64,          /* datagrams read in a turn, so that connections get theirs */
    LEFT_BEHIND = 1 << 16, /* datagrams read at the end at most */
    REPORTED = 10,         /* malformed pieces that are reported one by one */
    KERNEL_BUFFER = 4 << 20,
    SENDERS = 1 << 12,   /* whose allowances are known; a power of two */
    WORK_FREE = 1000000, /* units of work that a datagram may cause, besides so many for each byte: */
    WORK_PER_BYTE = 100,
    FAIR_PER_BYTE = 30, /* units for each byte beyond which a datagram's work is taken off its sender's allowance, */
    EXCESS_RATE = 50000000, /* which grows by so many in a second, to so many at most */
};

/* Who sends from one address. */
typedef struct sender {
    struct in6_addr address;
    allowance allowance; /* of records: max-rate */
    allowance excess;    /* of units of work out of proportion to bytes */
} sender;

struct datagrams {
    datagrams *next;
    server *server;
    const listener *from;
    struct event *readable;
    uint64_t malformed;
    uint64_t turn_work;  /* units in this turn */
    nl_decoder *decoder; /* of the datagram that is read */
    uint64_t work_max;   /* units that it may cause */
    char peer[80];       /* of the latest */
    sender *senders;     /* by their addresses; NULL: there was none yet */
    uint64_t seed;
};

static void datagrams_on_malformed(void *user, const nl_malformed *what)
{
    datagrams *d = user;
    d->server->counts.malformed++;
    server_reject(d->server, what->text);
    if (++d->malformed <= REPORTED)
        nl_write(d->server->log, NL_WARNING, "Netlogd.Malformed", "PEER=%s REASON=%s TEXT=%.*s%s", d->peer,
                 what->reason, what->text.size < 80 ? (int)what->text.size : 80, what->text.data,
                 d->malformed == REPORTED ? " NOTE=\"further ones in datagrams are only counted\"" : "");
}

/* Whether another block of the datagram may be taken. */
static bool may_take_block(void *user)
{
    datagrams *d = user;
    if (outputs_are_due(d->server->outputs)) {
        server_flush(d->server);
    }
    return nl_decoder_work(d->decoder) + nl_decoder_next_work(d->decoder) <= d->work_max &&
           !outputs_are_blocked(d->server->outputs);
}

/* ---- who sends too much ---- */

/*
 * Which place an address has, others cannot know beforehand. Another's place is taken when that owes nothing; while
 * it does, both share it, so that many addresses take no memory.
 */
static sender *find_sender(datagrams *d, const struct in6_addr *address, double rate, int64_t now_ns)
{
    sender *s = &d->senders[hash_bytes(d->seed, (const char *)address, sizeof *address) & (SENDERS - 1)];
    allowance_spend(&s->allowance, rate, now_ns, 0);
    allowance_spend(&s->excess, EXCESS_RATE, now_ns, 0);
    if (memcmp(&s->address, address, sizeof *address) != 0 && s->allowance.left >= rate &&
        s->excess.left >= EXCESS_RATE)
        s->address = *address;
    return s;
}

static bool read_address(const struct sockaddr_storage *from, struct in6_addr *address)
{
    *address = (struct in6_addr){0};
    if (from->ss_family == AF_INET6)
        memcpy(address, &((const struct sockaddr_in6 *)from)->sin6_addr, sizeof *address);
    else if (from->ss_family == AF_INET)
        memcpy(address, &((const struct sockaddr_in *)from)->sin_addr, sizeof(struct in_addr));
    return from->ss_family == AF_INET6 || from->ss_family == AF_INET;
}

/* The sender of a datagram; NULL for local sockets, which have no addresses. */
static sender *limited_sender(datagrams *d, const struct sockaddr_storage *from)
{
    double rate = (double)d->server->settings->max_rate;
    struct in6_addr address;
    if (!read_address(from, &address))
        return NULL;
    if (d->senders == NULL) {
        d->senders = calloc(SENDERS, sizeof *d->senders);
        if (d->senders == NULL || getrandom(&d->seed, sizeof d->seed, 0) != sizeof d->seed)
            program_fail(PROGRAM_PROBLEM, "out of memory");
    }
    return find_sender(d, &address, rate, nl_monotonic_ns());
}

/* The reason for which the sender's datagram is to be dropped, as a sender of datagrams cannot be held up; or NULL. */
static const char *reason_to_drop(const datagrams *d, const sender *from)
{
    if (from == NULL)
        return NULL;
    if (d->server->settings->max_rate > 0 && from->allowance.left < 0)
        return "datagrams dropped: more records than max-rate allows";
    return from->excess.left < 0 ? "datagrams dropped: their blocks cause too much work" : NULL;
}

static void drop(datagrams *d, const char *reason)
{
    d->server->counts.over_rate++;
    server_add(d->server, &d->server->over_rate, d->peer, reason);
}

/* Takes what the datagram cost off its sender's allowance, as far as it is out of proportion to the datagram's size. */
static void charge(datagrams *d, size_t size, sender *from)
{
    uint64_t work = nl_decoder_work(d->decoder), fair = FAIR_PER_BYTE * (uint64_t)size;
    d->server->counts.work += work;
    d->turn_work += work;
    if (from != NULL && work > fair)
        from->excess.left -= (double)(work - fair);
}

/* ---- records ---- */

static void datagrams_take_records(datagrams *d, size_t size, sender *from)
{
    server *srv = d->server;
    const nl_record *record;
    nl_decoder *decoder = d->decoder =
        nl_decoder_new(&(nl_decoder_options){.source = d->peer,
                                             .fraction = srv->settings->fraction,
                                             .max_record_size = srv->settings->max_record_size,
                                             .on_malformed = datagrams_on_malformed,
                                             .user = d});
    d->work_max = WORK_FREE + WORK_PER_BYTE * (uint64_t)size;
    nl_decoder_ask(decoder, may_take_block, d);
    nl_decoder_feed(decoder, srv->read_buffer, size);
    nl_decoder_finish(decoder);
    while (nl_decoder_next(decoder, &record) == NL_OK) {
        outputs_put(srv->outputs, record, NULL);
        subscriptions_put(srv->subscriptions, record);
        clocks_put(srv->clocks, record, d->peer);
        srv->counts.records++;
        if (from != NULL)
            from->allowance.left -= 1;
    }
    charge(d, size, from);
    if (nl_decoder_is_paused(decoder))
        datagrams_on_malformed(d, &(nl_malformed){.reason = "there are more records in its blocks than can be taken",
                                                  .text = {srv->read_buffer, size}});
    nl_decoder_free(decoder);
    server_wrote(srv);
}

/* False when there is none. */
static bool read_one(datagrams *d)
{
    struct sockaddr_storage from = {0};
    socklen_t from_size = sizeof from;
    ssize_t got = recvfrom(d->from->fd, d->server->read_buffer, SERVER_READ_SIZE, MSG_DONTWAIT,
                           (struct sockaddr *)&from, &from_size);
    if (got < 0)
        return errno != EAGAIN;
    if (from_size == 0)
        from.ss_family = AF_UNIX; /* a sender without a name */
    if (!accepting_allows(d->server, (struct sockaddr *)&from, false)) {
        d->server->counts.refused++;
        return true;
    }
    listener_address_text((struct sockaddr *)&from, d->peer, sizeof d->peer);
    d->server->counts.bytes += (uint64_t)got;
    sender *who = limited_sender(d, &from);
    const char *reason = reason_to_drop(d, who);
    if (reason != NULL)
        drop(d, reason);
    else
        datagrams_take_records(d, (size_t)got, who);
    return true;
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    datagrams *d = user;
    d->turn_work = 0;
    for (int i = 0; i < AT_ONCE && !d->server->paused && d->turn_work < TURNS_BUDGET; i++)
        if (!read_one(d))
            return;
}

datagrams *datagrams_new(server *srv, const listener *from)
{
    datagrams *d = calloc(1, sizeof *d);
    if (d == NULL || (d->readable = event_new(srv->base, from->fd, EV_READ | EV_PERSIST, on_readable, d)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    event_priority_set(d->readable, SERVER_TURN_PRIORITY);
    d->server = srv;
    d->from = from;
    setsockopt(from->fd, SOL_SOCKET, SO_RCVBUF, &(int){KERNEL_BUFFER}, sizeof(int));
    datagrams_pause(d, false);
    d->next = srv->datagrams;
    srv->datagrams = d;
    return d;
}

void datagrams_pause(datagrams *d, bool pause)
{
    if (pause)
        event_del(d->readable);
    else
        event_add(d->readable, NULL);
}

void datagrams_take_what_came(datagrams *d)
{
    for (int i = 0; i < LEFT_BEHIND && !outputs_are_blocked(d->server->outputs); i++)
        if (!read_one(d))
            return;
}

void datagrams_free(datagrams *d)
{
    event_free(d->readable);
    free(d->senders);
    free(d);
}

datagrams *datagrams_next(const datagrams *d)
{
    return d->next;
}
