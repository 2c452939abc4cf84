#include "config.h"

#include "datagrams.h"

#include "clocks.h"
#include "program/program.h"
#include "subscription.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    AT_ONCE = 64,          /* datagrams read in a turn, so that connections get theirs */
    LEFT_BEHIND = 1 << 16, /* datagrams read at the end at most */
    REPORTED = 10,         /* malformed pieces that are reported one by one */
    KERNEL_BUFFER = 4 << 20,
    FLUSHES_MOST = 16, /* for one datagram: in few bytes may be gigabytes of records */
};

struct datagrams {
    datagrams *next;
    server *server;
    const listener *from;
    struct event *readable;
    uint64_t malformed;
    int flushes;   /* for the datagram that is read */
    char peer[80]; /* of the latest */
};

static void on_malformed(void *user, const nl_malformed *what)
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
        d->flushes++;
    }
    return d->flushes < FLUSHES_MOST && !outputs_are_blocked(d->server->outputs);
}

static void take_records(datagrams *d, size_t size)
{
    server *srv = d->server;
    const nl_record *record;
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.source = d->peer,
                                                               .fraction = srv->settings->fraction,
                                                               .max_record_size = srv->settings->max_record_size,
                                                               .on_malformed = on_malformed,
                                                               .user = d});
    d->flushes = 0;
    nl_decoder_ask(decoder, may_take_block, d);
    nl_decoder_feed(decoder, srv->read_buffer, size);
    nl_decoder_finish(decoder);
    while (nl_decoder_next(decoder, &record) == NL_OK) {
        outputs_put(srv->outputs, record, NULL);
        subscriptions_put(srv->subscriptions, record);
        clocks_put(srv->clocks, record);
        srv->counts.records++;
    }
    if (nl_decoder_is_paused(decoder))
        on_malformed(d, &(nl_malformed){.reason = "there are more records in its blocks than can be taken",
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
    if (!server_is_allowed(d->server, (struct sockaddr *)&from, false)) {
        d->server->counts.refused++;
        return true;
    }
    listener_address_text((struct sockaddr *)&from, d->peer, sizeof d->peer);
    d->server->counts.bytes += (uint64_t)got;
    take_records(d, (size_t)got);
    return true;
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    datagrams *d = user;
    for (int i = 0; i < AT_ONCE && !d->server->paused; i++)
        if (!read_one(d))
            return;
}

datagrams *datagrams_new(server *srv, const listener *from)
{
    datagrams *d = calloc(1, sizeof *d);
    if (d == NULL || (d->readable = event_new(srv->base, from->fd, EV_READ | EV_PERSIST, on_readable, d)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
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
    free(d);
}

datagrams *datagrams_next(const datagrams *d)
{
    return d->next;
}
