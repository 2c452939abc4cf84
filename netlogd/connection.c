#include "config.h"

#include "connection.h"

#include "request.h"
#include "subscription.h"

#include "program/program.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    REPORTED = 10,            /* malformed pieces that are reported one by one, per connection */
    GARBAGE_LIMIT = 20 << 20, /* bytes without a single record after which a client is cut off: more than a block */
};

struct connection {
    connection *next, **link; /* in the server's list */
    server *server;
    evutil_socket_t fd;
    struct event *readable;
    nl_decoder *decoder;
    uint64_t good_at;      /* bytes that had come when the latest record was complete */
    uint64_t acknowledged; /* blocks */
    bool told;             /* what the collector asks */
    bool to_acknowledge;   /* in the server's list of those */
    connection *next_to_acknowledge;
    char mark[REQUEST_MARK_SIZE]; /* its first bytes, until they tell whether it asks instead of logging */
    unsigned char mark_size;
    bool logs; /* they have told that */
    int64_t connected_ns;
    int64_t rate_since_ns; /* records are counted since then, a second or more, for the rate */
    uint64_t rate_records;
    double rate;   /* a second, over the second or more before */
    char prog[64]; /* of its first record */
    char peer[80];
};

static void on_malformed(void *user, const nl_malformed *what)
{
    connection *c = user;
    c->server->counts.malformed++;
    server_reject(c->server, what->text);
    uint64_t count = nl_decoder_get_stats(c->decoder)->malformed;
    if (count <= REPORTED)
        nl_write(c->server->log, NL_WARNING, "Netlogd.Malformed", "PEER=%s LINE=%llu REASON=%s TEXT=%.*s%s", c->peer,
                 (unsigned long long)what->line, what->reason, what->text.size < 80 ? (int)what->text.size : 80,
                 what->text.data, count == REPORTED ? " NOTE=\"further ones of this client are only counted\"" : "");
}

static void on_lost(void *user, const nl_lost *what)
{
    connection *c = user;
    c->server->counts.lost += what->count;
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    nl_time_format_ulm(what->from_ns, from);
    nl_time_format_ulm(what->to_ns, to);
    nl_write(c->server->log, NL_WARNING, "Netlogd.Lost", "PEER=%s COUNT=%llu DROPPED=%llu FROM=%s TO=%s", c->peer,
             (unsigned long long)what->count, (unsigned long long)what->dropped, from, to);
}

/* Puts it on the list when blocks have come that are not acknowledged. */
static bool want_acknowledgement(connection *c)
{
    if (nl_decoder_get_stats(c->decoder)->blocks == c->acknowledged)
        return false;
    if (!c->to_acknowledge) {
        c->to_acknowledge = true;
        c->next_to_acknowledge = c->server->to_acknowledge;
        c->server->to_acknowledge = c;
    }
    return true;
}

static void leave_list(connection *c)
{
    if (!c->to_acknowledge)
        return;
    connection **at = &c->server->to_acknowledge;
    while (*at != c)
        at = &(*at)->next_to_acknowledge;
    *at = c->next_to_acknowledge;
    c->to_acknowledge = false;
}

bool connection_send_activation(connection *c)
{
    nl_string frame = activation_frame(c->server->activation, c->prog);
    if (frame.size == 0 || nl_decoder_get_stats(c->decoder)->blocks == 0)
        return false;
    ssize_t sent = send(c->fd, frame.data, frame.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    c->told = true;
    if (sent != (ssize_t)frame.size)
        shutdown(c->fd, SHUT_RDWR); /* it reads nothing: when it is back it is told anew */
    return true;
}

/* Records a second, over what has passed of this second and, once there is one, the whole one before. */
static void count_rate(connection *c, uint64_t records)
{
    int64_t now_ns = server_now_ns(), passed_ns = now_ns - c->rate_since_ns;
    c->rate_records += records;
    if (passed_ns < NL_NS_PER_SECOND)
        return;
    c->rate = (double)c->rate_records * 1e9 / (double)passed_ns;
    c->rate_since_ns = now_ns;
    c->rate_records = 0;
}

void connection_describe(const connection *c, nl_record *record)
{
    const nl_decoder_stats *stats = nl_decoder_get_stats(c->decoder);
    int64_t now_ns = server_now_ns(), passed_ns = now_ns - c->rate_since_ns;
    /* The second before says little of one that has been silent since. */
    double rate = passed_ns < 2 * NL_NS_PER_SECOND ? c->rate : (double)c->rate_records * 1e9 / (double)passed_ns;
    request_add_text(record, "PEER", c->peer);
    request_add_text(record, "CLIENT", c->prog);
    request_add_text(record, "FORMAT", nl_format_name(nl_decoder_format(c->decoder)));
    nl_record_add_double(record, "SECONDS", (double)((now_ns - c->connected_ns) / 1000000) / 1e3);
    nl_record_add_uint(record, "RECORDS", stats->records);
    nl_record_add_uint(record, "BYTES", stats->bytes);
    nl_record_add_uint(record, "RATE", (uint64_t)rate);
    nl_record_add_uint(record, "MALFORMED", stats->malformed);
    nl_record_add_uint(record, "LOST", stats->lost);
    nl_record_add_uint(record, "REPEATED", stats->repeated);
    nl_record_add_uint(record, "BLOCKS", stats->blocks);
    nl_record_add_uint(record, "ACKNOWLEDGED", c->acknowledged);
}

void connection_acknowledge(connection *c)
{
    leave_list(c);
    if (!c->told)
        connection_send_activation(c);
    uint64_t blocks = htole64(nl_decoder_get_stats(c->decoder)->blocks);
    char frame[16] = "NLA1\x08";
    memcpy(frame + 8, &blocks, sizeof blocks);
    /* A client that does not read what it is told is told again with the next block; the counts add up. */
    ssize_t sent = send(c->fd, frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == (ssize_t)sizeof frame)
        c->acknowledged = nl_decoder_get_stats(c->decoder)->blocks;
    else if (sent > 0)
        shutdown(c->fd, SHUT_RDWR); /* what follows would not be understood */
}

/* Hands every complete record to the output. */
static void take_records(connection *c)
{
    const nl_record *record;
    uint64_t any = 0;
    while (nl_decoder_next(c->decoder, &record) == NL_OK) {
        if (c->prog[0] == '\0')
            snprintf(c->prog, sizeof c->prog, "%.*s", (int)record->prog.size, record->prog.data);
        output_put(c->server->output, record);
        subscriptions_put(c->server->subscriptions, record);
        any++;
    }
    c->server->counts.records += any;
    count_rate(c, any);
    bool blocks = want_acknowledgement(c);
    if (any > 0 || blocks)
        c->good_at = nl_decoder_get_stats(c->decoder)->bytes;
    if (any > 0 || blocks)
        server_wrote(c->server);
}

static void feed(connection *c, const char *data, size_t size)
{
    nl_decoder_feed(c->decoder, data, size);
    take_records(c);
}

/* Looks at the first bytes. Whether the client logs, and what was read is to be fed; if it asks, it is handed over. */
static bool look_at_mark(connection *c, size_t got)
{
    char *came = c->server->read_buffer;
    size_t room = sizeof c->mark - c->mark_size, more = got < room ? got : room;
    memcpy(c->mark + c->mark_size, came, more);
    request_guess guess = request_recognise(c->mark, c->mark_size + more);
    if (guess == REQUEST_PERHAPS) {
        c->mark_size += (unsigned char)more;
    } else if (guess == REQUEST_YES) {
        event_del(c->readable);
        request_new(c->server, c->fd, c->peer, false, came + more, got - more);
        c->fd = -1;
    } else {
        c->logs = true;
        if (c->mark_size > 0)
            feed(c, c->mark, c->mark_size);
    }
    return c->logs;
}

/* The client has said all that it has to say: a last line without a newline is complete. */
static void finish_last_record(connection *c)
{
    if (!c->logs && c->mark_size > 0)
        feed(c, c->mark, c->mark_size);
    nl_decoder_finish(c->decoder);
    take_records(c);
}

typedef enum outcome { MORE, NOTHING_NOW, ENDED, BROKEN } outcome;

static outcome read_once(connection *c)
{
    ssize_t got = read(c->fd, c->server->read_buffer, SERVER_READ_SIZE);
    if (got < 0)
        return errno == EINTR ? MORE : errno == EAGAIN ? NOTHING_NOW : BROKEN;
    if (got == 0)
        return ENDED;
    c->server->counts.bytes += (uint64_t)got;
    if (!c->logs && !look_at_mark(c, (size_t)got))
        return c->fd >= 0 ? MORE : BROKEN;
    feed(c, c->server->read_buffer, (size_t)got);
    if (nl_decoder_get_stats(c->decoder)->bytes - c->good_at > GARBAGE_LIMIT) {
        nl_write(c->server->log, NL_WARNING, "Netlogd.Garbage", "PEER=%s NOTE=\"cut off: it sends no records\"",
                 c->peer);
        return BROKEN;
    }
    return MORE;
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    connection *c = user;
    if (what & EV_TIMEOUT) {
        nl_write(c->server->log, NL_USAGE, "Netlogd.Idle", "PEER=%s NOTE=\"closed: silent for too long\"", c->peer);
        connection_close(c);
        return;
    }
    /* One read a turn, so that no client keeps the others waiting. */
    outcome result = read_once(c);
    if (result == ENDED)
        finish_last_record(c);
    if (result == ENDED || result == BROKEN)
        connection_close(c);
}

static void listen_for_data(connection *c)
{
    unsigned seconds = c->server->settings->idle_timeout_s;
    struct timeval timeout = {.tv_sec = seconds};
    event_add(c->readable, seconds > 0 ? &timeout : NULL);
}

connection *connection_new(server *srv, evutil_socket_t fd, const struct sockaddr *peer)
{
    connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    c->server = srv;
    c->fd = fd;
    listener_address_text(peer, c->peer, sizeof c->peer);
    c->connected_ns = c->rate_since_ns = server_now_ns();
    c->decoder = nl_decoder_new(&(nl_decoder_options){
        .source = c->peer,
        .fraction = srv->settings->fraction,
        .max_record_size = srv->settings->max_record_size,
        .on_malformed = on_malformed,
        .on_lost = on_lost,
        .streams = srv->streams,
        .user = c,
    });
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    c->readable = event_new(srv->base, fd, EV_READ | EV_PERSIST, on_readable, c);
    if (c->readable == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    c->next = srv->connections;
    c->link = &srv->connections;
    if (c->next != NULL)
        c->next->link = &c->next;
    srv->connections = c;
    srv->connection_count++;
    if (!srv->paused)
        listen_for_data(c);
    nl_write(srv->log, NL_DEBUG, "Netlogd.Open", "PEER=%s", c->peer);
    return c;
}

void connection_pause(connection *c, bool pause)
{
    if (pause)
        event_del(c->readable);
    else
        listen_for_data(c);
}

void connection_take_what_came(connection *c)
{
    int left = 0;
    if (ioctl(c->fd, FIONREAD, &left) != 0)
        return;
    /* A read takes SERVER_READ_SIZE bytes at most, and that many when there are so many. */
    for (; left > 0 && !output_is_blocked(c->server->output); left -= SERVER_READ_SIZE)
        if (read_once(c) != MORE)
            return;
}

void connection_drain(connection *c, int64_t deadline_ns)
{
    while (!output_is_blocked(c->server->output) && server_now_ns() < deadline_ns) {
        outcome result = read_once(c);
        if (result == ENDED)
            finish_last_record(c);
        if (result != MORE)
            return;
    }
}

void connection_close(connection *c)
{
    const nl_decoder_stats *stats = nl_decoder_get_stats(c->decoder);
    nl_write(c->server->log, NL_DEBUG, "Netlogd.Close", "PEER=%s RECORDS=%llu MALFORMED=%llu REPEATED=%llu BYTES=%llu",
             c->peer, (unsigned long long)stats->records, (unsigned long long)stats->malformed,
             (unsigned long long)stats->repeated, (unsigned long long)stats->bytes);
    leave_list(c);
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    c->server->connection_count--;
    event_free(c->readable);
    if (c->fd >= 0)
        close(c->fd);
    nl_decoder_free(c->decoder);
    free(c);
}

connection *connection_next(const connection *c)
{
    return c->next;
}
