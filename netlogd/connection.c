#include "config.h"

#include "connection.h"

#include "accepting.h"
#include "activation.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "clocks.h"
#include "counts.h"
#include "flush.h"
#include "foreign.h"
#include "gaps.h"
#include "client_limits.h"
#include "otlp_client.h"
#include "output/outputs.h"
#include "reader/decoder_work.h"
#include "record/format.h"
#include "records.h"
#include "request.h"
#include "server.h"
#include "service/allowance.h"
#include "syslog_input.h"
#include "turns.h"
#include "used_streams.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum {
    READ_SIZE = 256 << 10,
    WORK_PER_BYTE = 3,        /* units of work per byte of ordinary lines */
    FOREIGN_READS = 4,        /* maximum number of times that netlogd reads bytes of a client of another protocol */
    TOUCH_SECONDS = 60,       /* interval at which a client's streams are marked as in use */
    GARBAGE_LIMIT = 20 << 20, /* maximum number of bytes without a record, in addition to max-record-size; it is larger
                                 than any block */
    LOST_WORK = 4 * GAPS_MAX, /* units of work of a search through all gaps */
    CLOCK_WORK = 2000,        /* units of work of a clock record, including the search for its host */
    TLS_WORK = 500000,        /* units of work of a TLS handshake, charged with the first read */
    CLOCK_RECORDS_MAX = 16,   /* maximum number of records of a whole block that is searched for clock records */
};

struct connection {
    connections_entry listed;
    client_entry entry;
    const listener *at;         /* the listener that accepted the connection */
    struct nl_buffer certified; /* the latest HOST value that is a name in the client's certificate */
    nl_channel channel;
    struct event *readable;
    nl_decoder *decoder;
    syslog_input *syslog;  /* replaces the decoder for a client that sends syslog messages; otherwise NULL */
    uint64_t good_at;      /* number of bytes received when the latest record was complete */
    uint64_t acknowledged; /* number of acknowledged blocks, including clock queries */
    uint64_t questions;    /* number of clock queries */
    uint64_t rejected;     /* number of decoded records that were rejected; they count as malformed */
    turn turn;
    uint64_t charged;  /* units of work charged so far */
    uint64_t work_max; /* total units of work at which the current turn ends */
    bool at_once;      /* the client was served without waiting for its turn */
    bool first;        /* no block of the client has been decoded in this turn yet */
    bool rest;         /* the decoder has kept blocks for the client's next turn */
    uint64_t gaps;     /* number of gaps in the client's streams, including gaps that have since been filled */
    int64_t came_ns;   /* time at which the latest bytes were read, on the real-time clock */
    int64_t opened_ns;
    int64_t waits_ns;     /* time at which the client began to wait for its turn */
    int64_t part_ns;      /* time at which a record became incomplete; 0: no record is incomplete */
    allowance allowance;  /* allowance of records; while it is negative, netlogd does not read from the client */
    struct event *resume; /* timer that fires when netlogd may read from the client again */
    bool limited;         /* max-rate applies to the client, so the allowance is in use */
    uint64_t text;        /* number of bytes that an output has encoded for the client, on average over all outputs */
    uint64_t received;    /* bytes that the decoder had received when `text` was last updated */
    bool held_up;
    bool ready;                   /* the TLS handshake is complete, or TLS is not used */
    bool activated;               /* the collector's commands have been sent */
    char mark[REQUEST_MARK_SIZE]; /* the client's first bytes, until they show whether it sends a request */
    unsigned char mark_size;
    bool logs;      /* the client sends records, not a request */
    bool ended;     /* the client has closed its sending half, or reset the connection */
    bool reset;     /* the client has reset the connection, so its last line is incomplete */
    bool over;      /* netlogd has finished reading from the client; the connection stays open until the server ends */
    unsigned owner; /* owner of the client's streams; 0: unknown */
    bool numbered;  /* the latest block belongs to a stream */
    unsigned char stream[16]; /* name of the stream of the latest numbered block */
    used_streams used;        /* the streams of all blocks */
    int64_t touched_ns;       /* time at which the client's streams were last marked as in use */
    int64_t connected_ns;
    int64_t rate_since_ns; /* start of the period in which rate_records are counted */
    uint64_t rate_records; /* records in the current period */
    double rate;           /* records per second in the previous period */
    char prog[64];         /* PROG of the client's first record; empty before this record */
    bool named;
    char peer[80];
};

static char read_buffer[READ_SIZE];

static const nl_decoder_stats *stats_of(const connection *c)
{
    return c->syslog != NULL ? syslog_input_get_stats(c->syslog) : nl_decoder_get_stats(c->decoder);
}

/* Returns the number of malformed and rejected records. */
static uint64_t count_malformed(const connection *c)
{
    return stats_of(c)->malformed + c->rejected;
}

static void on_malformed(void *user, const nl_malformed *what)
{
    const connection *c = user;
    records_reject(what, c->peer, "", count_malformed(c));
}

/* Rejects a record that the decoder has returned. */
static void reject_decoded(connection *c, const nl_record *record, const char *reason)
{
    c->rejected++;
    on_malformed(c, &(nl_malformed){.source = c->peer,
                                    .line = stats_of(c)->records,
                                    .reason = reason,
                                    .text = record->raw.data != NULL ? record->raw : record->host});
}

/*
 * Adds work that the decoder does not count. Charges the client for this work, and shortens the client's turn. (The
 * subtraction from c->charged is modulo 2^64.)
 */
static void add_work(connection *c, uint64_t work)
{
    c->charged -= work;
    c->work_max -= work < c->work_max ? work : c->work_max;
}

static void on_lost(void *user, const nl_lost *what)
{
    connection *c = user;
    gaps_note(what, c->peer, "", ++c->gaps);
    if (what->count == what->dropped && what->numbers.from < what->numbers.to)
        add_work(c, LOST_WORK);
}

/*
 * Returns whether the client has sent blocks that are not acknowledged yet. If so, adds the connection to the list of
 * connections that wait for an acknowledgement.
 */
static bool want_acknowledgement(connection *c)
{
    if (stats_of(c)->blocks == c->acknowledged)
        return false;
    connections_await_acknowledgement(&c->listed);
    return true;
}

/*
 * Sends a frame without waiting. Returns false if the kernel does not accept the whole frame. If the kernel accepts
 * only a part, shuts the connection down, because the client could not parse later frames.
 */
static bool send_frame(connection *c, nl_string frame)
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
    nl_string frame = activation_frame(c->prog);
    if (frame.size == 0 || !c->named || stats_of(c)->blocks == c->questions)
        return false; /* there are no commands, or the client has sent only text and does not expect frames */
    c->activated = true;
    if (!send_frame(c, frame))
        shutdown(c->channel.fd,
                 SHUT_RDWR); /* the client does not read; it gets the frame after it has connected again */
    return true;
}

/* Counts records, and updates the rate about once a second. */
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
    const nl_decoder_stats *stats = stats_of(c);
    int64_t now_ns = nl_monotonic_ns(), passed_ns = now_ns - c->rate_since_ns;
    /* The rate of the previous second does not describe a client that has been silent since. */
    double rate = passed_ns < 2 * NL_NS_PER_SECOND ? c->rate : (double)c->rate_records * 1e9 / (double)passed_ns;
    request_add_text(record, "PEER", c->peer);
    request_add_text(record, "CLIENT", c->prog);
    request_add_text(record, "FORMAT", c->syslog != NULL ? "syslog" : nl_format_name(nl_decoder_format(c->decoder)));
    int64_t connected_ms = (now_ns - c->connected_ns) / 1000000;
    nl_record_add_double(record, "SECONDS", (double)connected_ms / 1e3);
    nl_record_add_uint(record, "RECORDS", stats->records - c->rejected);
    nl_record_add_uint(record, "BYTES", stats->bytes);
    nl_record_add_uint(record, "RATE", (uint64_t)rate);
    nl_record_add_uint(record, "MALFORMED", count_malformed(c));
    nl_record_add_uint(record, "LOST", stats->lost);
    nl_record_add_uint(record, "REPEATED", stats->repeated);
    nl_record_add_uint(record, "HELD", c->listed.held);
    nl_record_add_uint(record, "WORK", c->turn.work);
    nl_record_add_uint(record, "BLOCKS", stats->blocks);
    nl_record_add_uint(record, "ACKNOWLEDGED", c->acknowledged);
}

void connection_acknowledge(connection *c)
{
    if (!c->activated)
        connection_send_activation(c);
    uint64_t blocks = htole64(stats_of(c)->blocks);
    char frame[16] = "NLA1\x08";
    memcpy(frame + 8, &blocks, sizeof blocks);
    /* If the client does not read, the number in the next acknowledgement also covers these blocks. */
    if (send_frame(c, (nl_string){frame, sizeof frame}))
        c->acknowledged = stats_of(c)->blocks;
}

/* Replies immediately to a client's clock query, because the client would count a delay as network delay. */
static void on_question(void *user, int64_t sent_ns)
{
    enum { HEAD = 8 };
    connection *c = user;
    c->questions++;
    const char *host = server_host();
    char frame[HEAD + NL_TIME_ANSWER_MIN + SERVER_HOST_SIZE] = NL_TIME_ANSWER_MAGIC;
    size_t name = strlen(host);
    const uint64_t parts[] = {htole64((uint64_t)sent_ns), htole64((uint64_t)c->came_ns),
                              htole64((uint64_t)nl_time_now_ns())};
    uint32_t size = htole32((uint32_t)(NL_TIME_ANSWER_MIN + name));
    memcpy(frame + 4, &size, sizeof size);
    memcpy(frame + HEAD, parts, sizeof parts);
    memcpy(frame + HEAD + NL_TIME_ANSWER_MIN, host, name);
    send_frame(c, (nl_string){frame, HEAD + NL_TIME_ANSWER_MIN + name});
}

static void limit_rate(connection *c);

static void spend(connection *c, uint64_t records)
{
    double rate = (double)server_settings()->max_rate;
    if (rate > 0 && !c->limited) /* a reload has set max-rate */
        limit_rate(c);
    if (c->limited)
        allowance_spend(&c->allowance, rate, nl_monotonic_ns(), records);
}

/* Adds to c->text the number of bytes that the outputs have encoded since outputs_encoded returned `before`. */
static void count_text(connection *c, uint64_t before)
{
    uint64_t text = outputs_encoded() - before;
    add_work(c, text * NL_WORK_EXPANDED);
    uint64_t received = stats_of(c)->bytes;
    text_limit_add(c->peer, text_limit_excess(text, received - c->received), nl_monotonic_ns());
    c->text += text;
    c->received = received;
}

/* Returns the number of seconds that the client must wait because its records are too large as text. */
static double wait_for_text_s(const connection *c)
{
    if (text_limit_excess(c->text, c->received) <= 0)
        return 0;
    double seconds = text_limit_wait_s(c->peer, nl_monotonic_ns());
    if (seconds > 0)
        counts_report(COUNT_EXPANDING, c->peer,
                      "delayed: the client's records take too much space as text (doc/wire-protocol.md, Limits)");
    return seconds;
}

/* Stops reading from a client that has exceeded a limit, until the client may send again. */
static void pause_over_limit(connection *c)
{
    double rate = (double)server_settings()->max_rate, seconds = wait_for_text_s(c);
    if (c->limited && c->allowance.left < 0 && rate > 0 && -c->allowance.left / rate > seconds)
        seconds = -c->allowance.left / rate;
    if (seconds <= 0 || server_is_stopping())
        return;
    struct timeval interval = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)((seconds - (time_t)seconds) * 1e6)};
    c->held_up = true;
    turns_leave(&c->turn);
    event_del(c->readable);
    event_add(c->resume, &interval);
}

/* Sets the client's name to the program (PROG) of its first record. */
static void name_by(connection *c, const nl_record *record)
{
    snprintf(c->prog, sizeof c->prog, "%.*s", (int)record->prog.size, record->prog.data);
    c->named = true;
}

/*
 * Searches a block that netlogd does not decode. Finds the client's name and clock records. Searches only small blocks
 * without a stream for clock records, because clock records arrive in such blocks.
 */
static void look_into_block(connection *c, const nl_block_view *block)
{
    const nl_record *record;
    bool clocks = !c->numbered && block->record_count <= CLOCK_RECORDS_MAX;
    while ((clocks || !c->named) && nl_decoder_next_of_taken(c->decoder, &record) == NL_OK) {
        if (!c->named)
            name_by(c, record);
        if (clocks)
            clocks_put(record, c->peer);
    }
}

/* Returns the owner of the client's streams: the holder of its certificate, or its address. */
static unsigned find_owner(const connection *c)
{
    char name[NL_CERTIFICATE_NAME_SIZE];
    return stream_limit_owner(nl_channel_name_certificate(&c->channel, name) ? name : c->peer);
}

static bool admit_block(void *user, const nl_block_header *block)
{
    connection *c = user;
    if (c->owner == 0)
        c->owner = find_owner(c);
    return records_admit_block(block, c->owner, c->peer, "closed");
}

/* Called when the decoder has found a block. The block's records follow, unless the block is passed on whole. */
static void on_block(void *user, const nl_block_view *block)
{
    connection *c = user;
    bool whole = records_put_block(c->decoder, block, &c->numbered);
    if (c->numbered && memcmp(c->stream, block->stream, sizeof c->stream) != 0) {
        used_streams_note(&c->used, block->stream);
        memcpy(c->stream, block->stream, sizeof c->stream);
    }
    if (whole)
        look_into_block(c, block);
}

/*
 * Returns whether a last line without a newline is incomplete, because the connection ended while the client was
 * sending the line. If earlier lines ended with newlines, a complete last line would also end with a newline. A single
 * line without a newline, such as the output of echo -n, is complete. A client that sends clock queries uses the
 * library, which ends each line with a newline, and sends an incomplete line again.
 */
static bool was_cut(const connection *c, const nl_record *record)
{
    return c->ended && (record->flags & NL_RECORD_UNTERMINATED) != 0 &&
           (c->reset || c->questions > 0 || stats_of(c)->records > 1);
}

/*
 * Returns whether the decoder may process another block in this turn. If the client has waited for this turn, the
 * decoder may process at least one block.
 */
static bool may_take_more(void *user)
{
    connection *c = user;
    if (c->ended)
        return true;
    if (outputs_are_blocked() || outputs_are_due())
        return false;
    bool first = c->first && !c->at_once;
    c->first = false;
    return first || nl_decoder_work(c->decoder) + nl_decoder_next_work(c->decoder) <= c->work_max;
}

/*
 * Returns whether the client may send records of the record's HOST. If the listener certifies hosts, HOST must be a
 * name in the client's certificate. A record that is not allowed counts as malformed.
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
        reject_decoded(c, record, "HOST is not a name in the client's certificate");
        return false;
    }
    c->certified.size = 0;
    nl_buffer_append(&c->certified, host.data, host.size);
    return true;
}

/*
 * Stores a record of netlogd instead of a rejected record, because the missing number of the rejected record would look
 * like a loss.
 */
static void put_rejected(connection *c, int64_t time_ns, uint64_t sequence)
{
    const char *host = server_host();
    nl_record *record = nl_record_new();
    nl_record_set_time(record, time_ns);
    nl_record_set_level(record, NL_WARNING);
    nl_record_set_host(record, host, strlen(host));
    nl_record_set_prog(record, "netlogd", strlen("netlogd"));
    nl_record_set_event(record, "Netlogd.Rejected", strlen("Netlogd.Rejected"));
    request_add_text(record, "PEER", c->peer);
    request_add_text(record, "REASON", "HOST is not a name in the client's certificate");
    records_put(record, &sequence, c->peer);
    nl_record_free(record);
}

/*
 * Passes on a record, unless the client may not send it. Returns whether the client may send the record.
 * `sequence` is the record's number in its stream, or NULL.
 */
static bool put_record(connection *c, const nl_record *record, const uint64_t *sequence)
{
    if (!may_send_host(c, record)) {
        if (sequence != NULL)
            put_rejected(c, record->time_ns, *sequence);
        return false;
    }
    if (!c->named)
        name_by(c, record);
    if (records_put(record, sequence, c->peer))
        add_work(c, CLOCK_WORK);
    return true;
}

/*
 * Gets the next record. First passes on the lines before it that need not be decoded, and adds their number to *put.
 * Returns false if there is no complete record.
 */
static bool find_next(connection *c, const nl_record **record, uint64_t *put)
{
    size_t clocks = 0, lines;
    if (c->named && !c->at->asked->hosts_certified)
        while ((lines = records_put_lines(c->decoder, c->peer, &clocks)) > 0)
            *put += lines;
    if (clocks > 0)
        add_work(c, clocks * CLOCK_WORK);
    return nl_decoder_next(c->decoder, record) == NL_OK;
}

/* Passes on the decoder's records, except records in blocks that wait for the next turn. */
static void put_decoded(connection *c)
{
    const nl_record *record;
    uint64_t put = 0;
    while (find_next(c, &record, &put)) {
        if (was_cut(c, record)) {
            reject_decoded(c, record, "incomplete line: the connection ended before the newline");
            continue;
        }
        uint64_t sequence = nl_decoder_sequence(c->decoder);
        bool numbered =
            c->numbered && record->raw.data == NULL; /* the record is from the latest block; it is not a line */
        put += put_record(c, record, numbered ? &sequence : NULL);
    }
    counts_add(COUNT_RECORDS, put);
    c->rest = nl_decoder_is_paused(c->decoder);
}

static void put_message(void *user, const nl_record *record)
{
    counts_add(COUNT_RECORDS, put_record(user, record, NULL));
}

static bool is_midway(const connection *c)
{
    return c->syslog != NULL ? syslog_input_is_midway(c->syslog) : nl_decoder_is_midway(c->decoder);
}

/* Puts the complete records of this turn into the outputs. `more` are bytes for the syslog input. */
static void take_records(connection *c, nl_string more)
{
    uint64_t before = counts_get(COUNT_RECORDS), text_before = outputs_encoded();
    if (c->syslog == NULL)
        put_decoded(c);
    else if (c->ended)
        syslog_input_finish(c->syslog);
    else
        syslog_input_feed(c->syslog, more.data, more.size);
    uint64_t any = counts_get(COUNT_RECORDS) - before;
    count_rate(c, any);
    bool blocks = want_acknowledgement(c);
    if (any > 0 || blocks) {
        c->good_at = stats_of(c)->bytes;
        client_table_heard(accepting_get_clients(), &c->entry, nl_monotonic_ns());
        flush_request(c->at_once);
    }
    spend(c, any);
    count_text(c, text_before);
    if (!is_midway(c))
        c->part_ns = 0;
    else if (c->part_ns == 0 || any > 0 || blocks)
        c->part_ns = nl_monotonic_ns();
}

static void begin_turn(connection *c)
{
    nl_decoder_on_block(c->decoder, !c->at->asked->hosts_certified && records_want_blocks(), on_block, c);
    c->first = true;
}

static uint64_t budget(const connection *c)
{
    return c->at_once ? turns_budget_at_once() : TURNS_BUDGET;
}

/*
 * Sets the amount of work at which the turn ends. Reading bytes counts as work of the client, but does not shorten the
 * turn.
 */
static void set_budget(connection *c)
{
    c->work_max = nl_decoder_work(c->decoder) + budget(c);
}

/* Charges the client for its turn: for the decoder's work and, if `read` is true, for the read. */
static void charge(connection *c, bool read)
{
    uint64_t decoded = nl_decoder_work(c->decoder), work = decoded - c->charged + (read ? TURNS_READ_WORK : 0);
    counts_add(COUNT_WORK, work);
    turns_charge(&c->turn, work);
    c->charged = decoded;
}

static void feed(connection *c, const char *data, size_t size)
{
    begin_turn(c);
    if (c->syslog == NULL)
        nl_decoder_feed(c->decoder, data, size);
    set_budget(c);
    if (c->syslog != NULL)
        add_work(c, SYSLOG_WORK_PER_BYTE * (uint64_t)size);
    take_records(c, (nl_string){data, size});
}

/*
 * Replies to a client of another protocol. Then reads some of the client's bytes, because the kernel may drop the reply
 * if bytes are unread at the close.
 */
static void reject_other_protocol(connection *c, foreign_kind kind)
{
    size_t size;
    const char *answer = foreign_answer(kind, &size);
    send_frame(c, (nl_string){answer, size});
    nl_channel_end(&c->channel);
    for (int reads = 0; reads < FOREIGN_READS; reads++)
        if (nl_channel_read(&c->channel, read_buffer, READ_SIZE) <= 0)
            break;
    counts_report(COUNT_FOREIGN, c->peer, foreign_reason(kind));
}

typedef enum first_bytes { FIRST_UNDECIDED, FIRST_RECORDS, FIRST_HANDED_OVER, FIRST_FOREIGN } first_bytes;

/*
 * Examines the client's first bytes. If they begin a request, passes the connection to request.c. If the result is
 * FIRST_RECORDS, the caller passes the bytes to the decoder.
 */
static first_bytes look_at_mark(connection *c, size_t got)
{
    char *came = read_buffer;
    size_t space = sizeof c->mark - c->mark_size, more = got < space ? got : space;
    memcpy(c->mark + c->mark_size, came, more);
    request_guess guess = c->syslog != NULL ? REQUEST_NO : request_recognise(c->mark, c->mark_size + more);
    foreign_kind foreign =
        c->mark_size > 0 ? foreign_recognise(c->mark, c->mark_size + more) : foreign_recognise(came, got);
    if (foreign == FOREIGN_HTTP || foreign == FOREIGN_TLS) {
        reject_other_protocol(c, foreign);
        return FIRST_FOREIGN;
    }
    if (guess == REQUEST_PERHAPS || foreign == FOREIGN_PERHAPS) {
        c->mark_size += (unsigned char)more;
        c->part_ns = c->part_ns == 0 ? nl_monotonic_ns() : c->part_ns;
        return FIRST_UNDECIDED;
    }
    if (guess == REQUEST_YES) {
        event_del(c->readable);
        request_new(c->channel, c->peer, &c->entry, c->at, came + more, got - more);
        c->channel = (nl_channel){.fd = -1};
        return FIRST_HANDED_OVER;
    }
    c->logs = true;
    if (c->mark_size > 0)
        feed(c, c->mark, c->mark_size);
    return FIRST_RECORDS;
}

/* Called after the client has closed its sending half. A last line without a newline is then complete. */
static void finish_last_record(connection *c)
{
    if (!c->logs && c->mark_size > 0)
        feed(c, c->mark, c->mark_size);
    c->ended = true;
    nl_decoder_finish(c->decoder);
    take_records(c, (nl_string){0});
}

typedef enum outcome { MORE, NOTHING_NOW, ENDED, BROKEN } outcome;

/* Logs that TLS with the client failed, and ends the use of the channel. */
static void report_tls(connection *c)
{
    counts_add(COUNT_REFUSED, !c->ready);
    nl_channel_fail(&c->channel, EPROTO);
    nl_write(server_log(), NL_WARNING, "Netlogd.Tls", "PEER=%s REASON=%s", c->peer, nl_error_message());
}

/* Returns whether incomplete input and unsent replies together use too much memory. */
static bool is_too_much(void)
{
    size_t held = connections_get_held();
    return held > 0 && held + otlp_clients_held() + requests_get_queued() > server_settings()->max_memory;
}

static void count_held(connection *c)
{
    size_t held = nl_decoder_held(c->decoder) + (c->syslog != NULL ? syslog_input_held(c->syslog) : 0) +
                  nl_channel_held(&c->channel) + used_streams_size(&c->used);
    connections_set_held(&c->listed, held);
}

/*
 * Returns the number of bytes to read. This number limits the work of the turn, because the lines in these bytes cannot
 * wait for a later turn.
 */
static size_t read_size(const connection *c)
{
    size_t size = budget(c) / WORK_PER_BYTE;
    return size < READ_SIZE ? size : READ_SIZE;
}

static outcome read_some(connection *c)
{
    if (c->rest) {
        begin_turn(c);
        set_budget(c);
        take_records(c, (nl_string){0});
        return nl_decoder_is_refused(c->decoder) ? BROKEN : MORE;
    }
    ssize_t got = nl_channel_read(&c->channel, read_buffer, read_size(c));
    if (got < 0 && errno == EPROTO)
        report_tls(c);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return errno == EINTR ? MORE : NOTHING_NOW;
    if (got < 0) {
        /* A client sends an incomplete block again, but not an incomplete line, so the loss of the line is reported. */
        c->reset = c->syslog == NULL && c->logs && nl_format_is_text(nl_decoder_format(c->decoder));
        return c->reset ? ENDED : BROKEN;
    }
    c->came_ns = nl_time_now_ns();
    c->ready = true;
    if (got == 0)
        return ENDED;
    counts_add(COUNT_BYTES, (uint64_t)got);
    first_bytes first = c->logs ? FIRST_RECORDS : look_at_mark(c, (size_t)got);
    if (first != FIRST_RECORDS)
        return first == FIRST_UNDECIDED ? MORE : BROKEN;
    feed(c, read_buffer, (size_t)got);
    /* Earlier blocks are stored. netlogd does not acknowledge the rejected block, so the client keeps it. */
    if (nl_decoder_is_refused(c->decoder))
        return BROKEN;
    uint64_t in_vain = stats_of(c)->bytes - c->good_at;
    if (in_vain > GARBAGE_LIMIT && in_vain - GARBAGE_LIMIT > server_settings()->max_record_size) {
        nl_write(server_log(), NL_WARNING, "Netlogd.Garbage", "PEER=%s NOTE=\"closed: the client sent no records\"",
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

/* Returns whether the decoder or the channel has buffered bytes that netlogd can process. The kernel does not report
 * these bytes. */
static bool has_more(const connection *c)
{
    return c->rest || nl_channel_has_more(&c->channel);
}

static void wait_for_turn(connection *c)
{
    event_del(c->readable);
    c->waits_ns = nl_monotonic_ns();
    turns_wait(&c->turn, c->rest);
}

static void listen_for_data(connection *c);

static void continue_reading(connection *c)
{
    pause_over_limit(c);
    if (flush_is_paused() || c->held_up)
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

/*
 * Closes connections until incomplete input and unsent replies use at most 7/8 of the memory limit, or no connection
 * has incomplete input. Because of this margin, netlogd does not have to search for such connections after every read.
 */
static void free_memory(void)
{
    size_t bound = server_settings()->max_memory / 8 * 7;
    connection *c;
    while (connections_get_held() + otlp_clients_held() + requests_get_queued() > bound &&
           (c = connections_find_worst(part_since_ns)) != NULL) {
        counts_add(COUNT_CUT_OFF, 1);
        nl_write(server_log(), NL_WARNING, "Netlogd.Memory", "PEER=%s HELD=%zu NOTE=%s", c->peer, c->listed.held,
                 "closed: clients used too much memory for incomplete records");
        connection_close(c);
    }
}

/* Reads only once, so that one client does not delay other clients. */
static void take_turn(connection *c, bool at_once)
{
    c->at_once = at_once;
    outcome result = read_once(c);
    if (result == ENDED)
        finish_last_record(c);
    if (result == ENDED || result == BROKEN)
        connection_close(c);
    else
        continue_reading(c);
    if (is_too_much())
        free_memory();
}

static void on_turn(void *user)
{
    connection *c = user;
    if (!c->entry.proven) /* do not count the time during which netlogd did not read from the client */
        c->opened_ns += nl_monotonic_ns() - c->waits_ns;
    take_turn(c, !c->rest); /* serve the client at once if the decoder has kept no blocks for this turn, because then
                               few bytes are unread */
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    connection *c = user;
    if (what & EV_TIMEOUT) {
        nl_write(server_log(), NL_USAGE, "Netlogd.Idle", "PEER=%s NOTE=\"closed: the client was silent for too long\"",
                 c->peer);
        connection_close(c);
        return;
    }
    if (turns_may_begin(&c->turn))
        take_turn(c, true);
    else
        wait_for_turn(c);
}

static void listen_for_data(connection *c)
{
    if (c->held_up || flush_is_paused())
        return;
    if (c->part_ns != 0)
        c->part_ns = nl_monotonic_ns(); /* do not count the time during which netlogd did not read from the client */
    unsigned seconds = server_settings()->idle_timeout_s;
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

static void limit_rate(connection *c)
{
    c->limited = true;
    c->allowance = allowance_new((double)server_settings()->max_rate, nl_monotonic_ns());
}

static void close_entry(client_entry *entry)
{
    connection_close((connection *)((char *)entry - offsetof(connection, entry)));
}

/* Makes the kernel detect within about ten minutes that a client has disappeared. */
static void keep_alive(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){300}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){60}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){5}, sizeof(int));
}

connection *connection_new(evutil_socket_t fd, const listener *at, const struct sockaddr *peer)
{
    nl_tls *tls = at->asked->tls;
    connection *c = nl_memory_check(calloc(1, sizeof *c));
    c->turn = (turn){.run = on_turn, .user = c};
    c->channel.fd = fd;
    c->at = at;
    c->ready = tls == NULL;
    c->charged -= tls != NULL ? TLS_WORK : 0; /* modulo 2^64; the first charge includes it */
    c->opened_ns = nl_monotonic_ns();
    if (tls != NULL && !nl_channel_secure(&c->channel, tls, NULL))
        nl_memory_failed();
    listener_address_text(peer, c->peer, sizeof c->peer);
    c->connected_ns = c->rate_since_ns = nl_monotonic_ns();
    c->decoder = nl_decoder_new(&(nl_decoder_options){
        .source = c->peer,
        .fraction = server_settings()->fraction,
        .max_record_size = server_settings()->max_record_size,
        .on_malformed = on_malformed,
        .on_lost = on_lost,
        .streams = outputs_streams(),
        .user = c,
    });
    nl_decoder_ask(c->decoder, may_take_more, c);
    nl_decoder_on_admission(c->decoder, admit_block, c);
    nl_decoder_on_question(c->decoder, on_question, c);
    if (at->asked->syslog) {
        c->syslog = syslog_input_new(&(syslog_input_options){.put = put_message, .reject = on_malformed, .user = c});
        syslog_input_set_sender(c->syslog, peer);
    }
    keep_alive(fd);
    c->readable = server_new_event(fd, EV_READ | EV_PERSIST, on_readable, c);
    c->resume = server_new_event(-1, 0, on_resume, c);
    if (server_settings()->max_rate > 0)
        limit_rate(c);
    c->listed.owner = c;
    connections_add(&c->listed);
    c->entry.fd = fd;
    c->entry.close = close_entry;
    if (!client_table_add(accepting_get_clients(), &c->entry, peer, c->opened_ns))
        nl_memory_failed();
    listen_for_data(c);
    nl_write(server_log(), NL_DEBUG, "Netlogd.Open", "PEER=%s", c->peer);
    return c;
}

void connection_pause(connection *c, bool pause)
{
    if (pause) {
        turns_leave(&c->turn);
        event_del(c->readable);
        return;
    }
    if (!c->entry.proven)
        c->opened_ns = nl_monotonic_ns(); /* do not count the time during which netlogd did not read from the client */
    listen_for_data(c);
}

void connection_settings_changed(connection *c)
{
    if (!accepting_may_stay(c->at, &c->channel, c->peer)) {
        connection_close(c);
        return;
    }
    turns_leave(&c->turn);
    event_del(c->readable);
    if (c->held_up) { /* compute the waiting time again, because the allowance grows at the new rate */
        event_del(c->resume);
        c->held_up = false;
        spend(c, 0);
        pause_over_limit(c);
    }
    listen_for_data(c);
}

static void close_late(connection *c, const char *note)
{
    nl_write(server_log(), NL_WARNING, "Netlogd.Late", "PEER=%s NOTE=%s", c->peer, note);
    connection_close(c);
}

/* Returns whether `seconds` seconds have passed since since_ns. If `seconds` is 0 (no limit), returns false. */
static bool is_over(int64_t since_ns, unsigned seconds, int64_t now_ns)
{
    return seconds > 0 && now_ns - since_ns >= seconds * NL_NS_PER_SECOND;
}

void connection_check_time(connection *c, int64_t now_ns)
{
    const settings *s = server_settings();
    if (now_ns - c->touched_ns >= TOUCH_SECONDS * NL_NS_PER_SECOND) {
        used_streams_touch(&c->used);
        c->touched_ns = now_ns;
    }
    c->ready = c->ready || nl_channel_is_ready(&c->channel); /* after the handshake, the client may be silent */
    /* The limits below do not apply while netlogd does not read from the client. */
    if (c->held_up || turns_is_waiting(&c->turn))
        return;
    if (!c->ready && is_over(c->opened_ns, s->handshake_s, now_ns))
        close_late(c, "closed: the TLS handshake took too long");
    else if (!c->entry.proven && is_over(c->opened_ns, s->record_s, now_ns))
        close_late(c, "closed: the first record took too long to arrive");
    else if (c->part_ns != 0 && is_over(c->part_ns, s->record_s, now_ns))
        close_late(c, "closed: a record took too long to arrive");
}

/* Reads once, unless the client's input has ended. Returns whether more bytes may be waiting. */
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

void connection_take_arrived(connection *c, int64_t deadline_ns)
{
    int left = 0;
    if (c->over || ioctl(c->channel.fd, FIONREAD, &left) != 0)
        return;
    while ((left > 0 || c->rest) && !outputs_are_blocked() && !is_too_much() && nl_monotonic_ns() < deadline_ns) {
        /* A read returns READ_SIZE bytes if they are available. */
        left -= c->rest ? 0 : READ_SIZE;
        if (!take_once(c))
            return;
    }
}

void connection_drain(connection *c, int64_t deadline_ns)
{
    while (!outputs_are_blocked() && !is_too_much() && nl_monotonic_ns() < deadline_ns) {
        if (!take_once(c))
            return;
    }
}

void connection_close(connection *c)
{
    const nl_decoder_stats *stats = stats_of(c);
    nl_write(server_log(), NL_DEBUG, "Netlogd.Close",
             "PEER=%s RECORDS=%llu MALFORMED=%llu LOST=%llu REPEATED=%llu BYTES=%llu", c->peer,
             (unsigned long long)(stats->records - c->rejected), (unsigned long long)count_malformed(c),
             (unsigned long long)stats->lost, (unsigned long long)stats->repeated, (unsigned long long)stats->bytes);
    connections_remove(&c->listed);
    client_table_remove(accepting_get_clients(), &c->entry);
    turns_leave(&c->turn);
    event_free(c->readable);
    event_free(c->resume);
    nl_buffer_free(&c->certified);
    used_streams_free(&c->used);
    nl_channel_close(&c->channel);
    nl_decoder_free(c->decoder);
    syslog_input_free(c->syslog);
    free(c);
}
