#include "config.h"

#include "nats_reader.h"

#include "base/monotonic.h"
#include "clocks.h"
#include "gaps.h"
#include "nats/intake.h"

#include "base/error.h"
#include "program/program.h"
#include "request.h"
#include "stream_limit.h"
#include "subscription.h"
#include "turns.h"

#include "reader/admission.h"
#include "reader/decoder_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPORTED = 10, /* malformed pieces that are reported one by one */
};

struct nats_reader {
    nats_reader *next;
    server *server;
    char *name;
    nats_intake *intake;
    struct event *readable;
    nl_decoder *decoder;
    bool numbered;       /* the latest block is of a stream */
    bool to_acknowledge; /* something was taken */
    uint64_t malformed, gaps, records;
    char reason[256];            /* as it was told last */
    char source[NATS_NAME_SIZE]; /* the message that is read */
};

static void nats_reader_on_malformed(void *user, const nl_malformed *what)
{
    nats_reader *r = user;
    r->server->counts.malformed++;
    server_reject(r->server, what->text);
    if (++r->malformed <= REPORTED)
        nl_write(r->server->log, NL_WARNING, "Netlogd.Malformed", "PEER=%s MESSAGE=%s REASON=%s TEXT=%.*s%s", r->name,
                 r->source, what->reason, what->text.size < 80 ? (int)what->text.size : 80, what->text.data,
                 r->malformed == REPORTED ? " NOTE=\"further ones from there are only counted\"" : "");
}

static void on_lost(void *user, const nl_lost *what)
{
    nats_reader *r = user;
    gaps_note(r->server->gaps, what, r->name, r->source, ++r->gaps);
}

static void nats_reader_on_block(void *user, const nl_block_view *block)
{
    static const unsigned char none[sizeof block->stream];
    nats_reader *r = user;
    bool whole = outputs_put_block(r->server->outputs, block);
    r->numbered = memcmp(block->stream, none, sizeof none) != 0;
    if (whole) {
        r->server->counts.records += block->record_count;
        r->records += block->record_count;
    } else if (block->taken) {
        nl_decoder_decline_block(r->decoder);
    }
}

/* Whether a block may be taken, as in connection.c. NATS keeps the message of a block that is refused. */
static bool admit_block(void *user, const nl_block_header *block)
{
    nats_reader *r = user;
    server *srv = r->server;
    unsigned owner = stream_limit_owner(r->name);
    bool known = nl_streams_know(srv->streams, block->stream);
    bool admitted = outputs_admit_block(srv->outputs, block, owner);
    if (!known && (!admitted || !stream_limit_admit(srv->stream_limit, owner, nl_monotonic_ns()))) {
        srv->counts.streams_refused++;
        server_add(srv, &srv->refused, r->source, "left in NATS: too many streams begin");
        return false;
    }
    if (!admitted) {
        srv->counts.gaps_refused++;
        server_add(srv, &srv->refused, r->source, "left in NATS: its stream has too many gaps");
    }
    return admitted;
}

static void new_decoder(nats_reader *r)
{
    nl_decoder_free(r->decoder);
    r->decoder = nl_decoder_new(&(nl_decoder_options){
        .source = r->name,
        .fraction = r->server->settings->fraction,
        .max_record_size = r->server->settings->max_record_size,
        .on_malformed = nats_reader_on_malformed,
        .on_lost = on_lost,
        .streams = r->server->streams,
        .user = r,
    });
    nl_decoder_on_admission(r->decoder, admit_block, r);
}

static void nats_reader_take_records(nats_reader *r)
{
    const nl_record *record;
    while (nl_decoder_next(r->decoder, &record) == NL_OK) {
        uint64_t sequence = nl_decoder_sequence(r->decoder);
        bool numbered = r->numbered && record->raw.data == NULL; /* of the latest block, not a line */
        outputs_put(r->server->outputs, record, numbered ? &sequence : NULL);
        clocks_put(r->server->clocks, record, "NATS");
        subscriptions_put(r->server->subscriptions, record);
        r->server->counts.records++;
        r->records++;
    }
}

/* Nothing of a message is part of the next one. Returns the units of work that it cost. */
static uint64_t nats_reader_take(nats_reader *r, nats_message *m)
{
    nl_string data = nats_message_data(m);
    bool whole = outputs_want_blocks(r->server->outputs) && !subscriptions_want_records(r->server->subscriptions);
    nats_message_name(m, r->source);
    r->server->counts.bytes += data.size;
    r->numbered = false;
    r->to_acknowledge = true;
    nl_decoder_on_block(r->decoder, whole, nats_reader_on_block, r);
    uint64_t before = nl_decoder_work(r->decoder);
    nl_decoder_feed(r->decoder, data.data, data.size);
    nats_reader_take_records(r);
    uint64_t work = nl_decoder_work(r->decoder) - before;
    r->server->counts.work += work;
    if (nl_decoder_is_refused(r->decoder)) {
        nats_message_refuse(m);
        new_decoder(r);
    } else if (nl_decoder_is_midway(r->decoder) || nl_decoder_format(r->decoder) != NL_FORMAT_NLB) {
        nl_decoder_finish(r->decoder);
        nats_reader_take_records(r);
        new_decoder(r);
    }
    server_wrote(r->server);
    return work;
}

static void tell_state(nats_reader *r)
{
    nats_intake_state state;
    nats_intake_describe(r->intake, &state);
    if (strcmp(state.reason, r->reason) == 0)
        return;
    memcpy(r->reason, state.reason, sizeof r->reason);
    if (r->reason[0] != '\0') {
        program_error("%s; trying again", r->reason);
        nl_write(r->server->log, NL_WARNING, "Netlogd.NatsWaits", "PEER=%s REASON=%s", r->name, r->reason);
    } else {
        program_error("%s can be read", r->name);
        nl_write(r->server->log, NL_USAGE, "Netlogd.NatsReads", "PEER=%s", r->name);
    }
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    nats_reader *r = user;
    tell_state(r);
    for (uint64_t work = 0; work < TURNS_BUDGET && !r->server->paused;) {
        nats_message *m = nats_intake_next(r->intake);
        if (m == NULL)
            return;
        work += nats_reader_take(r, m);
    }
}

static char *nats_reader_name_of(const nats_place *place)
{
    char *name;
    if (asprintf(&name, "%s?durable=%s&share=%u/%u", place->name, place->durable, place->share, place->of_shares) < 0)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return name;
}

const char *nats_reader_check(const nl_url *url, char **name)
{
    nats_place *place = nats_place_read(url, false);
    if (place == NULL)
        return nl_error_message();
    *name = nats_reader_name_of(place);
    nats_place_free(place);
    return NULL;
}

void nats_reader_new(server *srv, const char *text, const char *name)
{
    nats_reader *r = calloc(1, sizeof *r);
    nl_url *url = nl_url_parse(text);
    nats_place *place = url != NULL ? nats_place_read(url, false) : NULL;
    if (place == NULL) /* a password's file was there a moment before */
        program_fail(PROGRAM_PROBLEM, "%s: %s", name, nl_error_message());
    nl_url_free(url);
    if (r == NULL || (r->name = strdup(name)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    r->server = srv;
    r->intake = nats_intake_open(place);
    new_decoder(r);
    r->readable = event_new(srv->base, nats_intake_descriptor(r->intake), EV_READ | EV_PERSIST, on_readable, r);
    if (r->readable == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    event_priority_set(r->readable, SERVER_TURN_PRIORITY);
    nats_reader_pause(r, false);
    r->next = srv->nats_readers;
    srv->nats_readers = r;
    nl_write(srv->log, NL_USAGE, "Netlogd.Listen", "URL=%s", name);
}

void nats_reader_pause(nats_reader *r, bool pause)
{
    if (pause)
        event_del(r->readable);
    else
        event_add(r->readable, NULL);
}

void nats_reader_acknowledge(nats_reader *r)
{
    if (r->to_acknowledge)
        nats_intake_acknowledge(r->intake);
    r->to_acknowledge = false;
}

void nats_reader_describe(const nats_reader *r, nl_record *record)
{
    nats_intake_state state;
    nats_intake_describe(r->intake, &state);
    request_add_text(record, "PEER", r->name);
    nl_record_add_uint(record, "RECORDS", r->records);
    nl_record_add_uint(record, "MESSAGES", state.messages);
    nl_record_add_uint(record, "AGAIN", state.again);
    nl_record_add_uint(record, "WAITING", state.waiting);
    nl_record_add_uint(record, "MALFORMED", r->malformed);
    if (state.reason[0] != '\0')
        request_add_text(record, "REASON", state.reason);
}

nats_counts nats_readers_count(const server *srv)
{
    nats_counts counts = {0};
    for (const nats_reader *r = srv->nats_readers; r != NULL; r = r->next) {
        nats_intake_state state;
        nats_intake_describe(r->intake, &state);
        counts.places++;
        counts.away += state.reason[0] != '\0';
        counts.records += r->records;
        counts.messages += state.messages;
        counts.again += state.again;
        counts.waiting += state.waiting;
    }
    return counts;
}

void nats_reader_free(nats_reader *r)
{
    event_free(r->readable);
    nats_intake_close(r->intake);
    nl_decoder_free(r->decoder);
    free(r->name);
    free(r);
}

nats_reader *nats_reader_next(const nats_reader *r)
{
    return r->next;
}
