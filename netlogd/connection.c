#include "config.h"

#include "connection.h"

#include "accepting.h"

#include "base/monotonic.h"
#include "clocks.h"
#include "foreign.h"
#include "gaps.h"
#include "request.h"
#include "stream_limit.h"
#include "subscription.h"
#include "text_limit.h"
#include "turns.h"
#include "used_streams.h"

#include "record/work.h"
#include "record/block.h"
#include "program/program.h"
#include "reader/admission.h"
#include "reader/decoder_work.h"
#include "record/format.h"
#include "service/allowance.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    WORK_PER_BYTE = 3,        /* units of work for a byte of ordinary lines */
    FOREIGN_READS = 4,        /* of what a client of another protocol has sent already */
    TOUCH_SECONDS = 60,       /* between times that a client's stream is said to be in use */
    REPORTED = 10,            /* malformed pieces that are reported one by one, per connection */
    GARBAGE_LIMIT = 20 << 20, /* bytes without a single record, beside one that is long, after which a client is cut
                                 off: more than a block */
    LOST_WORK = 4 * GAPS_MAX, /* units of a search among all gaps */
    CLOCK_WORK = 2000,        /* units of a record of a clock, whose host is searched for */
    TLS_WORK = 500000,        /* units of a handshake, charged with the first read */
    CLOCK_RECORDS_MAX = 16,   /* records of a block that is taken whole in which those of clocks are looked for */
};

struct connection {
    connections_entry listed;
    server *server;
    client_entry entry;
    const listener *at;         /* where it was accepted */
    struct nl_buffer certified; /* the HOST that was found in its certificate last */
    nl_channel channel;
    struct event *readable;
    nl_decoder *decoder;
    uint64_t good_at;      /* bytes that had come when the latest record was complete */
    uint64_t acknowledged; /* blocks */
    turn turn;
    uint64_t charged;  /* units of work that were charged */
    uint64_t work_max; /* units at which its turn ends */
    bool at_once;      /* its turn is one for which it did not wait */
    bool first;        /* nothing was taken in its turn */
    bool rest;         /* the decoder holds blocks that are for its next turn */
    uint64_t gaps;     /* in its streams, some of which may have been filled since */
    int64_t came_ns;   /* by the real-time clock: when the latest bytes were read */
    int64_t opened_ns;
    int64_t waits_ns;     /* when it began to wait for its turn */
    int64_t part_ns;      /* since when part of a record is there whose rest is not; 0: none is */
    allowance allowance;  /* what it owes it is not read for */
    struct event *resume; /* when it is read again */
    bool limited;         /* by max-rate: the allowance is in use */
    uint64_t text;        /* bytes that the outputs have of it, on average */
    uint64_t received;    /* bytes that the decoder had been fed when text was counted last */
    bool held_up;
    bool ready;                   /* for data: the TLS handshake is complete, or TLS is not used */
    bool told;                    /* what the collector asks */
    char mark[REQUEST_MARK_SIZE]; /* its first bytes, until they tell whether it asks instead of logging */
    unsigned char mark_size;
    bool logs;           /* they have told that */
    bool ended;          /* it has said all that it had to say */
    bool over;           /* nothing more is to be read of it: at the server's end it stays for a while all the same */
    unsigned owner;      /* of its streams; 0: not known yet */
    const char *refusal; /* why a block was refused; NULL: none was */
    bool numbered;       /* the latest block was of a stream, */
    unsigned char stream[16]; /* of that name, or of the block of a stream before it */
    used_streams used;        /* of all its blocks */
    int64_t touched_ns;       /* when its streams were said last to be in use */
    int64_t connected_ns;
    int64_t rate_since_ns; /* records are counted since then, a second or more, for the rate */
    uint64_t rate_records;
    double rate;   /* a second, over the second or more before */
    char prog[64]; /* of its first record, once it is named */
    bool named;
    char peer[80];
};

static void connection_on_malformed(void *user, const nl_malformed *what)
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

/* Adds work that the decoder does not count: the turn is charged with it (modulo 2^64), and ends earlier. */
static void add_work(connection *c, uint64_t work)
{
    c->charged -= work;
    c->work_max -= work < c->work_max ? work : c->work_max;
}

static void on_lost(void *user, const nl_lost *what)
{
    connection *c = user;
    gaps_note(c->server->gaps, what, c->peer, "", ++c->gaps);
    if (what->count == what->dropped && what->numbers.from < what->numbers.to)
        add_work(c, LOST_WORK);
}

/* Puts it on the list when blocks have come that are not acknowledged. */
static bool want_acknowledgement(connection *c)
{
    if (nl_decoder_get_stats(c->decoder)->blocks == c->acknowledged)
        return false;
    connections_await_acknowledgement(c->server->connections, &c->listed);
    return true;
}

/*
 * Sends a frame without waiting. False when the client, who reads nothing, did not take it; one that took a part is cut
 * off: what follows would not be understood.
 */
static bool connection_say(connection *c, nl_string frame)
{
    size_t done = 0;
    ssize_t sent = 1;
    while (done < frame.size && sent > 0) {
        sent = nl_channel_write(&c->channel, frame.data + done, frame.size - done);
        done += sent > 0 ? (size_t)sent : 0;
    }
    if (done < frame.size && (done > 0 || nl_channel_is_midway(&c->channel)))
        shutdown(c->channel.fd, SHUT_RDWR);
    return done == frame.size;
}

bool connection_send_activation(connection *c)
{
    nl_string frame = activation_frame(c->server->activation, c->prog);
    if (frame.size == 0 || nl_decoder_get_stats(c->decoder)->blocks == 0)
        return false;
    c->told = true;
    if (!connection_say(c, frame))
        shutdown(c->channel.fd, SHUT_RDWR); /* it reads nothing: when it is back it is told anew */
    return true;
}

/* Records a second, over what has passed of this second and, once there is one, the whole one before. */
static void count_rate(connection *c, uint64_t records)
{
    int64_t now_ns = nl_monotonic_ns(), passed_ns = now_ns - c->rate_since_ns;
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
    int64_t now_ns = nl_monotonic_ns(), passed_ns = now_ns - c->rate_since_ns;
    /* The second before says little of one that has been silent since. */
    double rate = passed_ns < 2 * NL_NS_PER_SECOND ? c->rate : (double)c->rate_records * 1e9 / (double)passed_ns;
    request_add_text(record, "PEER", c->peer);
    request_add_text(record, "CLIENT", c->prog);
    request_add_text(record, "FORMAT", nl_format_name(nl_decoder_format(c->decoder)));
    int64_t connected_ms = (now_ns - c->connected_ns) / 1000000;
    nl_record_add_double(record, "SECONDS", (double)connected_ms / 1e3);
    nl_record_add_uint(record, "RECORDS", stats->records);
    nl_record_add_uint(record, "BYTES", stats->bytes);
    nl_record_add_uint(record, "RATE", (uint64_t)rate);
    nl_record_add_uint(record, "MALFORMED", stats->malformed);
    nl_record_add_uint(record, "LOST", stats->lost);
    nl_record_add_uint(record, "REPEATED", stats->repeated);
    nl_record_add_uint(record, "HELD", c->listed.held);
    nl_record_add_uint(record, "WORK", c->turn.work);
    nl_record_add_uint(record, "BLOCKS", stats->blocks);
    nl_record_add_uint(record, "ACKNOWLEDGED", c->acknowledged);
}

void connection_acknowledge(connection *c)
{
    if (!c->told)
        connection_send_activation(c);
    uint64_t blocks = htole64(nl_decoder_get_stats(c->decoder)->blocks);
    char frame[16] = "NLA1\x08";
    memcpy(frame + 8, &blocks, sizeof blocks);
    /* A client that does not read what it is told is told again with the next block; the counts add up. */
    if (connection_say(c, (nl_string){frame, sizeof frame}))
        c->acknowledged = nl_decoder_get_stats(c->decoder)->blocks;
}

/* Tells a client what time it is here, at once: what it waits for is no time on the way. */
static void on_question(void *user, int64_t sent_ns)
{
    enum { HEAD = 8 };
    connection *c = user;
    const server *srv = c->server;
    char frame[HEAD + NL_TIME_ANSWER_MIN + sizeof srv->host] = NL_TIME_ANSWER_MAGIC;
    size_t name = strlen(srv->host);
    const uint64_t parts[] = {htole64((uint64_t)sent_ns), htole64((uint64_t)c->came_ns),
                              htole64((uint64_t)nl_time_now_ns())};
    uint32_t size = htole32((uint32_t)(NL_TIME_ANSWER_MIN + name));
    memcpy(frame + 4, &size, sizeof size);
    memcpy(frame + HEAD, parts, sizeof parts);
    memcpy(frame + HEAD + NL_TIME_ANSWER_MIN, srv->host, name);
    connection_say(c, (nl_string){frame, HEAD + NL_TIME_ANSWER_MIN + name});
}

static void limit_rate(connection *c);

static void spend(connection *c, uint64_t records)
{
    double rate = (double)c->server->settings->max_rate;
    if (rate > 0 && !c->limited) /* since a reload */
        limit_rate(c);
    if (c->limited)
        allowance_spend(&c->allowance, rate, nl_monotonic_ns(), records);
}

/* Counts text that the outputs have got of a client since they had so much. */
static void count_text(connection *c, uint64_t before)
{
    uint64_t text = outputs_encoded(c->server->outputs) - before;
    add_work(c, text * NL_WORK_EXPANDED);
    uint64_t received = nl_decoder_get_stats(c->decoder)->bytes;
    text_limit_add(c->server->text_limit, c->peer, text_limit_excess(text, received - c->received), nl_monotonic_ns());
    c->text += text;
    c->received = received;
}

/* How long a client whose records expand too much is to wait. */
static double wait_for_text_s(connection *c)
{
    server *srv = c->server;
    if (text_limit_excess(c->text, c->received) <= 0)
        return 0;
    double seconds = text_limit_wait_s(srv->text_limit, c->peer, nl_monotonic_ns());
    if (seconds > 0) {
        srv->counts.expanding++;
        server_add(srv, &srv->expanding, c->peer, "waits: its records expand too much (doc/wire-protocol.md, Limits)");
    }
    return seconds;
}

/* Stops reading a client that has sent too much, until its allowance is no debt any more. */
static void hold_up(connection *c)
{
    double rate = (double)c->server->settings->max_rate, seconds = wait_for_text_s(c);
    if (c->limited && c->allowance.left < 0 && rate > 0 && -c->allowance.left / rate > seconds)
        seconds = -c->allowance.left / rate;
    if (seconds <= 0 || c->server->stopping)
        return;
    struct timeval interval = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)((seconds - (time_t)seconds) * 1e6)};
    c->held_up = true;
    turns_leave(c->server->turns, &c->turn);
    event_del(c->readable);
    event_add(c->resume, &interval);
}

/* A client is called as the program of its first record is. */
static void name_by(connection *c, const nl_record *record)
{
    snprintf(c->prog, sizeof c->prog, "%.*s", (int)record->prog.size, record->prog.data);
    c->named = true;
}

/* Looks into a block that was taken whole: for the client's name, and for records of clocks, which a program's own are.
 */
static void look_into_block(connection *c, const nl_block_view *block)
{
    const nl_record *record;
    bool clocks = !c->numbered && block->record_count <= CLOCK_RECORDS_MAX;
    while ((clocks || !c->named) && nl_decoder_next_of_taken(c->decoder, &record) == NL_OK) {
        if (!c->named)
            name_by(c, record);
        if (clocks)
            clocks_put(c->server->clocks, record, c->peer);
    }
}

/* The holder of the client's certificate, or its address. */
static unsigned find_owner(const connection *c)
{
    char name[NL_CERTIFICATE_NAME_SIZE];
    return stream_limit_owner(nl_channel_name_certificate(&c->channel, name) ? name : c->peer);
}

/* Whether a block may be taken: its stream may begin, and the gap that it may open can be remembered. */
static bool admit_block(void *user, const nl_block_header *block)
{
    connection *c = user;
    server *srv = c->server;
    bool known = nl_streams_know(srv->streams, block->stream), admitted;
    if (c->owner == 0)
        c->owner = find_owner(c);
    admitted = outputs_admit_block(srv->outputs, block, c->owner);
    if (!known && !admitted) {
        srv->counts.streams_refused++;
        c->refusal = "closed: it begins a stream while too many are in use (doc/wire-protocol.md, Limits)";
    } else if (!known && !stream_limit_admit(srv->stream_limit, c->owner, nl_monotonic_ns())) {
        srv->counts.streams_refused++;
        c->refusal = "closed: its address or certificate begins too many streams (doc/wire-protocol.md, Limits)";
    } else if (!admitted) {
        srv->counts.gaps_refused++;
        c->refusal = "closed: its stream has too many gaps; deliver older records first (doc/wire-protocol.md, Limits)";
    }
    return c->refusal == NULL;
}

/* A client's block is there; its records follow, unless it is taken whole. */
static void connection_on_block(void *user, const nl_block_view *block)
{
    static const unsigned char none[sizeof block->stream];
    connection *c = user;
    bool whole = outputs_put_block(c->server->outputs, block);
    c->numbered = memcmp(block->stream, none, sizeof none) != 0;
    if (c->numbered && memcmp(c->stream, block->stream, sizeof c->stream) != 0) {
        used_streams_note(&c->used, block->stream);
        memcpy(c->stream, block->stream, sizeof c->stream);
    }
    if (whole) {
        c->server->counts.records += block->record_count;
        look_into_block(c, block);
    } else if (block->taken) {
        nl_decoder_decline_block(c->decoder);
    }
}

/*
 * Whether a last line without its newline is part of a record only, of a client that was killed, or cut off, while it
 * sent it: it can still look like a record, with a number in it that has lost its last digits. Who has ended his lines
 * so far means to end this one; a single line, as echo -n sends it, is complete.
 */
static bool was_cut(const connection *c, const nl_record *record)
{
    return c->ended && (record->flags & NL_RECORD_UNTERMINATED) != 0 && nl_decoder_get_stats(c->decoder)->records > 1;
}

/* Whether another piece of what was read may be taken in this turn. A turn for which the client waited takes one in any
 * case. */
static bool may_take_more(void *user)
{
    connection *c = user;
    const outputs *out = c->server->outputs;
    if (c->ended)
        return true;
    if (outputs_are_blocked(out) || outputs_are_due(out))
        return false;
    bool first = c->first && !c->at_once;
    c->first = false;
    return first || nl_decoder_work(c->decoder) + nl_decoder_next_work(c->decoder) <= c->work_max;
}

/* Whether the record's HOST is a name of its client's certificate, where that is demanded; otherwise it is malformed.
 */
static bool may_send_host(connection *c, const nl_record *record)
{
    nl_string host = record->host;
    if (!c->at->asked->hosts_certified)
        return true;
    if (host.size > 0 && host.size == c->certified.size && memcmp(host.data, c->certified.data, host.size) == 0)
        return true;
    add_work(c, NL_WORK_MALFORMED);
    if (!nl_channel_peer_is_named(&c->channel, host.data, host.size)) {
        connection_on_malformed(c, &(nl_malformed){.source = c->peer,
                                                   .line = nl_decoder_get_stats(c->decoder)->records,
                                                   .reason = "HOST is not a name of the client's certificate",
                                                   .text = record->raw.data != NULL ? record->raw : host});
        return false;
    }
    c->certified.size = 0;
    nl_buffer_append(&c->certified, host.data, host.size);
    return true;
}

/* Puts a record of netlogd's own in the place of a rejected record, whose number would otherwise look like loss. */
static void put_rejected(connection *c, int64_t time_ns, uint64_t sequence)
{
    const char *host = c->server->host;
    nl_record *record = nl_record_new();
    nl_record_set_time(record, time_ns);
    nl_record_set_level(record, NL_WARNING);
    nl_record_set_host(record, host, strlen(host));
    nl_record_set_prog(record, "netlogd", strlen("netlogd"));
    nl_record_set_event(record, "Netlogd.Rejected", strlen("Netlogd.Rejected"));
    request_add_text(record, "PEER", c->peer);
    request_add_text(record, "REASON", "HOST is not a name of the client's certificate");
    outputs_put(c->server->outputs, record, &sequence);
    subscriptions_put(c->server->subscriptions, record);
    nl_record_free(record);
}

/* Hands every complete record to the output, but those of blocks that are for the next turn. */
static void connection_take_records(connection *c)
{
    const nl_record *record;
    uint64_t before = c->server->counts.records, text_before = outputs_encoded(c->server->outputs);
    while (nl_decoder_next(c->decoder, &record) == NL_OK) {
        if (was_cut(c, record)) {
            connection_on_malformed(c, &(nl_malformed){.source = c->peer,
                                                       .line = nl_decoder_get_stats(c->decoder)->records,
                                                       .reason = "line is cut: the connection ended before its newline",
                                                       .text = record->raw});
            continue;
        }
        uint64_t sequence = nl_decoder_sequence(c->decoder);
        bool numbered = c->numbered && record->raw.data == NULL; /* of the latest block, not a line */
        if (!may_send_host(c, record)) {
            if (numbered)
                put_rejected(c, record->time_ns, sequence);
            continue;
        }
        if (!c->named)
            name_by(c, record);
        outputs_put(c->server->outputs, record, numbered ? &sequence : NULL);
        subscriptions_put(c->server->subscriptions, record);
        if (clocks_put(c->server->clocks, record, c->peer))
            add_work(c, CLOCK_WORK);
        c->server->counts.records++;
    }
    c->rest = nl_decoder_is_paused(c->decoder);
    uint64_t any = c->server->counts.records - before;
    count_rate(c, any);
    bool blocks = want_acknowledgement(c);
    if (any > 0 || blocks)
        c->good_at = nl_decoder_get_stats(c->decoder)->bytes;
    if (any > 0 || blocks) {
        client_table_heard(c->server->clients, &c->entry, nl_monotonic_ns());
        c->server->wrote_at_once |= c->at_once;
        server_wrote(c->server);
    }
    spend(c, any);
    count_text(c, text_before);
    if (!nl_decoder_is_midway(c->decoder))
        c->part_ns = 0;
    else if (c->part_ns == 0 || any > 0 || blocks)
        c->part_ns = nl_monotonic_ns();
}

/* Blocks are not taken whole while somebody is to get their records. */
static void begin_turn(connection *c)
{
    bool whole = !c->at->asked->hosts_certified && outputs_want_blocks(c->server->outputs) &&
                 !subscriptions_want_records(c->server->subscriptions);
    nl_decoder_on_block(c->decoder, whole, connection_on_block, c);
    c->first = true;
}

static uint64_t budget(const connection *c)
{
    return c->at_once ? turns_budget_at_once(c->server->turns) : TURNS_BUDGET;
}

/* Sets the end of the turn; the bytes that were read are charged, but do not count for that. */
static void set_budget(connection *c)
{
    c->work_max = nl_decoder_work(c->decoder) + budget(c);
}

/* Charges the client for what its turn cost: the work of the decoder, and of reading. */
static void charge(connection *c, bool read)
{
    uint64_t decoded = nl_decoder_work(c->decoder), work = decoded - c->charged + (read ? TURNS_READ_WORK : 0);
    c->server->counts.work += work;
    turns_charge(c->server->turns, &c->turn, work);
    c->charged = decoded;
}

static void feed(connection *c, const char *data, size_t size)
{
    begin_turn(c);
    nl_decoder_feed(c->decoder, data, size);
    set_budget(c);
    connection_take_records(c);
}

/* Answers a client of another protocol. What it has sent is read and dropped, lest the kernel drop the answer instead.
 */
static void turn_away(connection *c, foreign_kind kind)
{
    server *srv = c->server;
    size_t size;
    const char *answer = foreign_answer(kind, &size);
    connection_say(c, (nl_string){answer, size});
    nl_channel_end(&c->channel);
    for (int reads = 0; reads < FOREIGN_READS; reads++)
        if (nl_channel_read(&c->channel, srv->read_buffer, SERVER_READ_SIZE) <= 0)
            break;
    srv->counts.foreign++;
    server_add(srv, &srv->foreign, c->peer, foreign_reason(kind));
}

typedef enum first_bytes { FIRST_UNDECIDED, FIRST_RECORDS, FIRST_HANDED_OVER, FIRST_FOREIGN } first_bytes;

/* Looks at the first bytes. FIRST_RECORDS: what was read is to be fed. A client that asks is handed over. */
static first_bytes look_at_mark(connection *c, size_t got)
{
    char *came = c->server->read_buffer;
    size_t space = sizeof c->mark - c->mark_size, more = got < space ? got : space;
    memcpy(c->mark + c->mark_size, came, more);
    request_guess guess = request_recognise(c->mark, c->mark_size + more);
    foreign_kind foreign =
        c->mark_size > 0 ? foreign_recognise(c->mark, c->mark_size + more) : foreign_recognise(came, got);
    if (foreign == FOREIGN_HTTP || foreign == FOREIGN_TLS) {
        turn_away(c, foreign);
        return FIRST_FOREIGN;
    }
    if (guess == REQUEST_PERHAPS || foreign == FOREIGN_PERHAPS) {
        c->mark_size += (unsigned char)more;
        c->part_ns = c->part_ns == 0 ? nl_monotonic_ns() : c->part_ns;
        return FIRST_UNDECIDED;
    }
    if (guess == REQUEST_YES) {
        event_del(c->readable);
        request_new(c->server, c->channel, c->peer, &c->entry, c->at, came + more, got - more);
        c->channel = (nl_channel){.fd = -1};
        return FIRST_HANDED_OVER;
    }
    c->logs = true;
    if (c->mark_size > 0)
        feed(c, c->mark, c->mark_size);
    return FIRST_RECORDS;
}

/* The client has said all that it has to say: a last line without a newline is complete. */
static void finish_last_record(connection *c)
{
    if (!c->logs && c->mark_size > 0)
        feed(c, c->mark, c->mark_size);
    c->ended = true;
    nl_decoder_finish(c->decoder);
    connection_take_records(c);
}

typedef enum outcome { MORE, NOTHING_NOW, ENDED, BROKEN } outcome;

/* Why a client in TLS is not understood. */
static void report_tls(connection *c)
{
    c->server->counts.refused += !c->ready;
    nl_channel_fail(&c->channel, EPROTO);
    nl_write(c->server->log, NL_WARNING, "Netlogd.Tls", "PEER=%s REASON=%s", c->peer, nl_error_message());
}

/* Whether what clients sent in part, and what others have not read, takes more memory than it may. */
static bool is_too_much(const server *srv)
{
    size_t held = connections_get_held(srv->connections);
    return held > 0 && held + srv->queued > srv->settings->max_memory;
}

static void count_held(connection *c)
{
    size_t held = nl_decoder_held(c->decoder) + nl_channel_held(&c->channel) + used_streams_size(&c->used);
    connections_set_held(c->server->connections, &c->listed, held);
}

/* The blocks before the refused one are taken; it and the rest are not acknowledged, so that the client keeps them. */
static outcome refuse_block(connection *c)
{
    server_add(c->server, &c->server->refused, c->peer, c->refusal);
    return BROKEN;
}

/* How many bytes a read takes: lines that were read are not kept for a later turn. */
static size_t read_size(const connection *c)
{
    size_t size = budget(c) / WORK_PER_BYTE;
    return size < SERVER_READ_SIZE ? size : SERVER_READ_SIZE;
}

static outcome read_some(connection *c)
{
    if (c->rest) {
        begin_turn(c);
        set_budget(c);
        connection_take_records(c);
        return nl_decoder_is_refused(c->decoder) ? refuse_block(c) : MORE;
    }
    ssize_t got = nl_channel_read(&c->channel, c->server->read_buffer, read_size(c));
    if (got < 0 && errno == EPROTO)
        report_tls(c);
    if (got < 0)
        return errno == EINTR ? MORE : errno == EAGAIN ? NOTHING_NOW : BROKEN;
    c->came_ns = nl_time_now_ns();
    c->ready = true;
    if (got == 0)
        return ENDED;
    c->server->counts.bytes += (uint64_t)got;
    first_bytes first = c->logs ? FIRST_RECORDS : look_at_mark(c, (size_t)got);
    if (first != FIRST_RECORDS)
        return first == FIRST_UNDECIDED ? MORE : BROKEN;
    feed(c, c->server->read_buffer, (size_t)got);
    if (nl_decoder_is_refused(c->decoder))
        return refuse_block(c);
    uint64_t in_vain = nl_decoder_get_stats(c->decoder)->bytes - c->good_at;
    if (in_vain > GARBAGE_LIMIT && in_vain - GARBAGE_LIMIT > c->server->settings->max_record_size) {
        nl_write(c->server->log, NL_WARNING, "Netlogd.Garbage", "PEER=%s NOTE=\"cut off: it sends no records\"",
                 c->peer);
        return BROKEN;
    }
    return MORE;
}

static outcome read_once(connection *c)
{
    bool read = !c->rest;
    outcome result = read_some(c);
    charge(c, read);
    count_held(c);
    return result;
}

/* Whether there is something to do that the kernel does not tell of. */
static bool has_more(const connection *c)
{
    return c->rest || nl_channel_has_more(&c->channel);
}

/* The rest waits for its turn. The kernel need not tell of the client meanwhile. */
static void wait_for_turn(connection *c)
{
    event_del(c->readable);
    c->waits_ns = nl_monotonic_ns();
    turns_wait(c->server->turns, &c->turn, c->rest);
}

static void listen_for_data(connection *c);

/* After a read. */
static void go_on(connection *c)
{
    hold_up(c);
    if (c->server->paused || c->held_up)
        return;
    if (has_more(c))
        wait_for_turn(c);
    else if (!event_pending(c->readable, EV_READ, NULL))
        listen_for_data(c);
}

static int64_t part_since_ns(const connection *c)
{
    return c->part_ns;
}

/* Closes connections until what all hold of what came in part is within bounds again. */
static void relieve(server *srv)
{
    /* Some more than is needed, so that not every read makes us look at all of them. */
    size_t bound = srv->settings->max_memory / 8 * 7;
    connection *c;
    while (connections_get_held(srv->connections) + srv->queued > bound &&
           (c = connections_find_worst(srv->connections, part_since_ns)) != NULL) {
        srv->counts.cut_off++;
        nl_write(srv->log, NL_WARNING, "Netlogd.Memory", "PEER=%s HELD=%zu NOTE=%s", c->peer, c->listed.held,
                 "closed: clients took too much memory for records whose rest had not come");
        connection_close(c);
    }
}

/* One read a turn, so that no client keeps the others waiting. */
static void take_turn(connection *c, bool at_once)
{
    server *srv = c->server;
    c->at_once = at_once;
    outcome result = read_once(c);
    if (result == ENDED)
        finish_last_record(c);
    if (result == ENDED || result == BROKEN)
        connection_close(c);
    else
        go_on(c);
    if (is_too_much(srv))
        relieve(srv);
}

static void on_turn(void *user)
{
    connection *c = user;
    if (!c->entry.proven) /* the time during which netlogd does not read the client does not count */
        c->opened_ns += nl_monotonic_ns() - c->waits_ns;
    take_turn(c, !c->rest); /* what has not been read yet may be little */
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
    if (turns_may_begin(c->server->turns, &c->turn))
        take_turn(c, true);
    else
        wait_for_turn(c);
}

static void listen_for_data(connection *c)
{
    if (c->held_up || c->server->paused)
        return;
    if (c->part_ns != 0)
        c->part_ns = nl_monotonic_ns(); /* that it was not read is not its fault */
    unsigned seconds = c->server->settings->idle_timeout_s;
    struct timeval timeout = {.tv_sec = seconds};
    if (has_more(c))
        wait_for_turn(c);
    else
        event_add(c->readable, seconds > 0 ? &timeout : NULL);
}

static void on_resume(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    connection *c = user;
    c->held_up = false;
    listen_for_data(c);
}

static struct event *new_event(connection *c, evutil_socket_t fd, short what, event_callback_fn callback)
{
    struct event *event = event_new(c->server->base, fd, what, callback, c);
    if (event == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return event;
}

/* From now on the client may send so much and no more. */
static void limit_rate(connection *c)
{
    c->limited = true;
    c->allowance = allowance_new((double)c->server->settings->max_rate, nl_monotonic_ns());
}

static void close_entry(client_entry *entry)
{
    connection_close((connection *)((char *)entry - offsetof(connection, entry)));
}

/* Has the kernel find out that a peer is gone within about ten minutes, without any word of it. */
static void keep_alive(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){300}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){60}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){5}, sizeof(int));
}

connection *connection_new(server *srv, evutil_socket_t fd, const listener *at, const struct sockaddr *peer)
{
    nl_tls *tls = at->asked->tls;
    connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    c->server = srv;
    c->turn = (turn){.run = on_turn, .user = c};
    c->channel.fd = fd;
    c->at = at;
    c->ready = tls == NULL;
    c->charged -= tls != NULL ? TLS_WORK : 0; /* modulo 2^64 */
    c->opened_ns = nl_monotonic_ns();
    if (tls != NULL && !nl_channel_secure(&c->channel, tls, NULL))
        program_fail(PROGRAM_PROBLEM, "out of memory");
    listener_address_text(peer, c->peer, sizeof c->peer);
    c->connected_ns = c->rate_since_ns = nl_monotonic_ns();
    c->decoder = nl_decoder_new(&(nl_decoder_options){
        .source = c->peer,
        .fraction = srv->settings->fraction,
        .max_record_size = srv->settings->max_record_size,
        .on_malformed = connection_on_malformed,
        .on_lost = on_lost,
        .streams = srv->streams,
        .user = c,
    });
    nl_decoder_ask(c->decoder, may_take_more, c);
    nl_decoder_on_admission(c->decoder, admit_block, c);
    nl_decoder_on_question(c->decoder, on_question, c);
    keep_alive(fd);
    c->readable = new_event(c, fd, EV_READ | EV_PERSIST, on_readable);
    c->resume = new_event(c, -1, 0, on_resume);
    if (srv->settings->max_rate > 0)
        limit_rate(c);
    c->listed.owner = c;
    connections_add(srv->connections, &c->listed);
    c->entry.fd = fd;
    c->entry.close = close_entry;
    if (!client_table_add(srv->clients, &c->entry, peer, c->opened_ns))
        program_fail(PROGRAM_PROBLEM, "out of memory");
    listen_for_data(c);
    nl_write(srv->log, NL_DEBUG, "Netlogd.Open", "PEER=%s", c->peer);
    return c;
}

void connection_pause(connection *c, bool pause)
{
    if (pause) {
        turns_leave(c->server->turns, &c->turn);
        event_del(c->readable);
        return;
    }
    if (!c->entry.proven)
        c->opened_ns = nl_monotonic_ns(); /* that it was not read is not its fault */
    listen_for_data(c);
}

void connection_settings_changed(connection *c)
{
    if (!accepting_may_stay(c->server, c->at, &c->channel, c->peer)) {
        connection_close(c);
        return;
    }
    turns_leave(c->server->turns, &c->turn);
    event_del(c->readable);
    if (c->held_up) { /* what it owes it owes at the new rate */
        event_del(c->resume);
        c->held_up = false;
        spend(c, 0);
        hold_up(c);
    }
    listen_for_data(c);
}

static void close_late(connection *c, const char *note)
{
    nl_write(c->server->log, NL_WARNING, "Netlogd.Late", "PEER=%s NOTE=%s", c->peer, note);
    connection_close(c);
}

/* Whether seconds, 0 being for ever, have gone by since. */
static bool is_over(int64_t since_ns, unsigned seconds, int64_t now_ns)
{
    return seconds > 0 && now_ns - since_ns >= seconds * NL_NS_PER_SECOND;
}

void connection_check_time(connection *c, int64_t now_ns)
{
    const settings *s = c->server->settings;
    if (now_ns - c->touched_ns >= TOUCH_SECONDS * NL_NS_PER_SECOND) {
        used_streams_touch(&c->used, c->server->outputs);
        c->touched_ns = now_ns;
    }
    c->ready = c->ready || nl_channel_is_ready(&c->channel); /* a client that is silent after that may be */
    /* What the client has sent is not read now. */
    if (c->held_up || turns_is_waiting(&c->turn))
        return;
    if (!c->ready && is_over(c->opened_ns, s->handshake_s, now_ns))
        close_late(c, "closed: TLS has not begun in time");
    else if (!c->entry.proven && is_over(c->opened_ns, s->record_s, now_ns))
        close_late(c, "closed: its first record has not come in time");
    else if (c->part_ns != 0 && is_over(c->part_ns, s->record_s, now_ns))
        close_late(c, "closed: the rest of a record has not come in time");
}

/* Reads once, unless all was read before. Whether there is more. */
static bool take_once(connection *c)
{
    c->at_once = false;
    outcome result = c->over ? NOTHING_NOW : read_once(c);
    if (result == ENDED) {
        finish_last_record(c);
        count_held(c);
    }
    c->over |= result == ENDED || result == BROKEN;
    return result == MORE;
}

bool connection_is_over(const connection *c)
{
    return c->over;
}

void connection_take_what_came(connection *c, int64_t deadline_ns)
{
    int left = 0;
    if (c->over || ioctl(c->channel.fd, FIONREAD, &left) != 0)
        return;
    while ((left > 0 || c->rest) && !outputs_are_blocked(c->server->outputs) && !is_too_much(c->server) &&
           nl_monotonic_ns() < deadline_ns) {
        /* A read takes SERVER_READ_SIZE bytes at most, and that many when there are so many. */
        left -= c->rest ? 0 : SERVER_READ_SIZE;
        if (!take_once(c))
            return;
    }
}

void connection_drain(connection *c, int64_t deadline_ns)
{
    while (!outputs_are_blocked(c->server->outputs) && !is_too_much(c->server) && nl_monotonic_ns() < deadline_ns) {
        if (!take_once(c))
            return;
    }
}

void connection_close(connection *c)
{
    const nl_decoder_stats *stats = nl_decoder_get_stats(c->decoder);
    nl_write(c->server->log, NL_DEBUG, "Netlogd.Close",
             "PEER=%s RECORDS=%llu MALFORMED=%llu LOST=%llu REPEATED=%llu BYTES=%llu", c->peer,
             (unsigned long long)stats->records, (unsigned long long)stats->malformed, (unsigned long long)stats->lost,
             (unsigned long long)stats->repeated, (unsigned long long)stats->bytes);
    connections_remove(c->server->connections, &c->listed);
    client_table_remove(c->server->clients, &c->entry);
    turns_leave(c->server->turns, &c->turn);
    event_free(c->readable);
    event_free(c->resume);
    nl_buffer_free(&c->certified);
    used_streams_free(&c->used);
    nl_channel_close(&c->channel);
    nl_decoder_free(c->decoder);
    free(c);
}
