#include "config.h"

#include "nats_reader.h"

#include "base/memory.h"
#include "counts.h"
#include "flush.h"
#include "gaps.h"
#include "client_limits.h"
#include "nats/intake.h"
#include "output/outputs.h"
#include "program/program.h"
#include "reader/decoder_work.h"
#include "records.h"
#include "server.h"
#include "turns.h"

#include <stdlib.h>
#include <string.h>

typedef struct nats_reader {
    struct nats_reader *next;
    char *name;
    nats_intake *intake;
    struct event *readable;
    nl_decoder *decoder;
    bool numbered;       /* the latest block belongs to a stream */
    bool to_acknowledge; /* a message was read since the latest acknowledgement */
    uint64_t malformed, gaps, records;
    nl_error_code reported;      /* code of the latest reported problem */
    char source[NATS_NAME_SIZE]; /* name of the message that is being read */
} nats_reader;

static nats_reader *readers;

static void on_malformed(void *user, const nl_malformed *what)
{
    nats_reader *r = user;
    records_reject(what, r->name, r->source, ++r->malformed);
}

static void on_lost(void *user, const nl_lost *what)
{
    nats_reader *r = user;
    gaps_note(what, r->name, r->source, ++r->gaps);
}

static void on_block(void *user, const nl_block_view *block)
{
    nats_reader *r = user;
    if (records_put_block(r->decoder, block, &r->numbered))
        r->records += block->record_count;
}

/* Returns whether a block may be accepted. If a block is rejected, NATS keeps its message. */
static bool admit_block(void *user, const nl_block_header *block)
{
    nats_reader *r = user;
    return records_admit_block(block, stream_limit_owner(r->name), r->source, "message left in NATS");
}

static void new_decoder(nats_reader *r)
{
    nl_decoder_free(r->decoder);
    r->decoder = nl_decoder_new(&(nl_decoder_options){
        .source = r->name,
        .fraction = server_settings()->fraction,
        .max_record_size = server_settings()->max_record_size,
        .on_malformed = on_malformed,
        .on_lost = on_lost,
        .streams = outputs_streams(),
        .user = r,
    });
    nl_decoder_on_admission(r->decoder, admit_block, r);
}

static void take_records(nats_reader *r)
{
    const nl_record *record;
    uint64_t put = 0;
    for (; nl_decoder_next(r->decoder, &record) == NL_OK; put++) {
        uint64_t sequence = nl_decoder_sequence(r->decoder);
        bool numbered =
            r->numbered && record->raw.data == NULL; /* the record is from the latest block; it is not a line */
        records_put(record, numbered ? &sequence : NULL, "NATS");
    }
    counts_add(COUNT_RECORDS, put);
    r->records += put;
}

/* Decodes and stores the records of a message. No record continues in the next message. Returns the units of work. */
static uint64_t take_message(nats_reader *r, nats_message *m)
{
    nl_string data = nats_message_data(m);
    nats_message_name(m, r->source);
    counts_add(COUNT_BYTES, data.size);
    r->numbered = false;
    r->to_acknowledge = true;
    nl_decoder_on_block(r->decoder, records_want_blocks(), on_block, r);
    uint64_t before = nl_decoder_work(r->decoder);
    nl_decoder_feed(r->decoder, data.data, data.size);
    take_records(r);
    uint64_t work = nl_decoder_work(r->decoder) - before;
    counts_add(COUNT_WORK, work);
    if (nl_decoder_is_refused(r->decoder)) {
        nats_message_refuse(m);
        new_decoder(r);
    } else if (nl_decoder_is_midway(r->decoder) || nl_decoder_format(r->decoder) != NL_FORMAT_NLB) {
        nl_decoder_finish(r->decoder);
        take_records(r);
        new_decoder(r);
    }
    flush_request(false);
    return work;
}

static void report_state(nats_reader *r)
{
    nats_intake_state state;
    nats_intake_describe(r->intake, &state);
    if (state.problem.code == r->reported)
        return;
    r->reported = state.problem.code;
    if (r->reported != NL_ERROR_NONE) {
        program_error("%s (retrying)", state.problem.message);
        nl_write(server_log(), NL_WARNING, "Netlogd.NatsWaits", "PEER=%s REASON=%s", r->name, state.problem.message);
    } else {
        program_error("netlogd can read %s again", r->name);
        nl_write(server_log(), NL_USAGE, "Netlogd.NatsReads", "PEER=%s", r->name);
    }
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    nats_reader *r = user;
    report_state(r);
    for (uint64_t work = 0; work < TURNS_BUDGET && !flush_is_paused();) {
        nats_message *m = nats_intake_next(r->intake);
        if (m == NULL)
            return;
        work += take_message(r, m);
    }
}

char *nats_reader_check(const nl_url *url)
{
    nats_place *place = nats_place_read(url, false);
    if (place == NULL)
        return NULL;
    char *name =
        program_format("%s?durable=%s&share=%u/%u", place->name, place->durable, place->share, place->of_shares);
    nats_place_free(place);
    return name;
}

static void start_reader(const char *text, const char *name)
{
    nats_reader *r = nl_memory_check(calloc(1, sizeof *r));
    nl_url *url = nl_url_parse(text);
    nats_place *place = url != NULL ? nats_place_read(url, false) : NULL;
    if (place == NULL) /* the password file has changed since nats_reader_check, and is now invalid */
        program_fail(PROGRAM_PROBLEM, "%s: %s", name, nl_error_message());
    nl_url_free(url);
    r->name = program_copy(name);
    r->intake = nats_intake_open(place);
    new_decoder(r);
    r->readable = server_new_event(nats_intake_descriptor(r->intake), EV_READ | EV_PERSIST, on_readable, r);
    event_priority_set(r->readable, SERVER_PRIORITY_TURN);
    event_add(r->readable, NULL);
    r->next = readers;
    readers = r;
    nl_write(server_log(), NL_USAGE, "Netlogd.Listen", "URL=%s", name);
}

void nats_readers_start(void)
{
    const settings *s = server_settings();
    for (size_t i = 0; i < s->listen_count; i++)
        if (s->listen[i].nats != NULL)
            start_reader(s->listen[i].nats, s->listen[i].url);
}

void nats_readers_pause(bool pause)
{
    for (nats_reader *r = readers; r != NULL; r = r->next)
        if (pause)
            event_del(r->readable);
        else
            event_add(r->readable, NULL);
}

void nats_readers_acknowledge(void)
{
    for (nats_reader *r = readers; r != NULL; r = r->next) {
        if (r->to_acknowledge)
            nats_intake_acknowledge(r->intake);
        r->to_acknowledge = false;
    }
}

void nats_readers_describe(request *request)
{
    for (const nats_reader *r = readers; r != NULL; r = r->next) {
        nats_intake_state state;
        nl_record *record = request_record(request, NL_USAGE, "Netlogd.Nats");
        nats_intake_describe(r->intake, &state);
        request_add_text(record, "PEER", r->name);
        nl_record_add_uint(record, "RECORDS", r->records);
        nl_record_add_uint(record, "MESSAGES", state.messages);
        nl_record_add_uint(record, "AGAIN", state.again);
        nl_record_add_uint(record, "WAITING", state.waiting);
        nl_record_add_uint(record, "MALFORMED", r->malformed);
        request_add_text(record, "REASON", state.problem.code != NL_ERROR_NONE ? state.problem.message : NULL);
        request_put(request, record);
    }
}

nats_counts nats_readers_count(void)
{
    nats_counts counts = {0};
    for (const nats_reader *r = readers; r != NULL; r = r->next) {
        nats_intake_state state;
        nats_intake_describe(r->intake, &state);
        counts.places++;
        counts.away += state.problem.code != NL_ERROR_NONE;
        counts.records += r->records;
        counts.messages += state.messages;
        counts.again += state.again;
        counts.waiting += state.waiting;
    }
    return counts;
}

void nats_readers_free(void)
{
    for (nats_reader *r = readers, *next; r != NULL; r = next) {
        next = r->next;
        event_free(r->readable);
        nats_intake_close(r->intake);
        nl_decoder_free(r->decoder);
        free(r->name);
        free(r);
    }
}
