/*
 * Output to a receiver of OTLP. Records with TRACE.ID and SPAN.ID whose names end in ".start" and ".end" become spans.
 * The other records with the IDs of an open span become the span's events and links. All other records become log
 * records.
 *
 *   spool -> nl_decoder -> open_spans (starts, events, links) -> otlp_encoder -> otlp_link
 *
 * A delivery sends all its records before it reports any record as delivered. After a failure or a kill, netlogd sends
 * the whole delivery again. Therefore, the receiver may get log records more than once, and spans more than once with
 * the same IDs.
 */
#include "config.h"

#include "kind.h"

#include "base/error.h"
#include "base/memory.h"
#include "convert/otlp_encode.h"
#include "options.h"
#include "otlp_link.h"
#include "otlp_open_spans.h"
#include "reader/decoder.h"
#include "record/bytes.h"
#include "record/format.h"
#include "requests/request_reader.h"
#include "transport/destination.h"
#include "transport/dial.h"

#include <stdlib.h>
#include <string.h>

/* Receivers based on gRPC accept messages of 4 MiB by default. */
enum { REQUEST_SIZE = 1 << 20 };

typedef struct otlp_batch {
    bool spans;
    nl_buffer bytes;
    otlp_encoder encoder;
    uint64_t count; /* number of items */
} otlp_batch;

typedef struct otlp_peer {
    otlp_link *link;
    open_spans *starts;
    bool sync;
    otlp_batch spans, logs;
    nl_record *start;       /* the record that began the current span */
    nl_record *point;       /* another record of the span */
    nl_buffer packed;       /* the current record */
    nl_buffer records;      /* of the current span */
    output_delivered *done; /* result of the current delivery */
} otlp_peer;

/* ---- requests ---- */

/* Begins an item of this record's source. */
static void begin_item(otlp_batch *b, const nl_record *record)
{
    b->count++;
    if (otlp_is_source(&b->encoder, record))
        return;
    otlp_end_source(&b->encoder);
    otlp_begin_source(&b->encoder, b->spans, record);
}

static nl_status send_batch(otlp_peer *p, otlp_batch *b)
{
    otlp_reply reply;
    otlp_end_source(&b->encoder);
    if (b->count == 0)
        return NL_OK;
    if (otlp_link_send(p->link, b->spans, (nl_string){b->bytes.data, b->bytes.size}, &reply) != NL_OK) {
        p->done->wait_ms = reply.wait_ms;
        return NL_FAILED;
    }
    uint64_t rejected = reply.refused || reply.rejected > b->count ? b->count : reply.rejected;
    if (rejected > 0) {
        p->done->rejected += rejected;
        memcpy(p->done->reason, reply.message, sizeof reply.message);
    }
    b->bytes.size = b->count = 0;
    return NL_OK;
}

/* ---- records ---- */

static nl_status put_log(otlp_peer *p, const nl_record *record)
{
    begin_item(&p->logs, record);
    otlp_encode_log(&p->logs.encoder, record);
    return p->logs.bytes.size < REQUEST_SIZE ? NL_OK : send_batch(p, &p->logs);
}

/* Sends the records of a span without an end as log records. */
static nl_status put_logs(otlp_peer *p, nl_string records)
{
    nl_string packed;
    while (open_spans_next(&records, &packed))
        if (nl_record_unpack(p->start, packed.data, packed.size) == NL_OK && put_log(p, p->start) != NL_OK)
            return NL_FAILED;
    return NL_OK;
}

static nl_status put_excess(otlp_peer *p, int64_t now_ns)
{
    for (p->records.size = 0; open_spans_take_excess(p->starts, now_ns, &p->records); p->records.size = 0)
        if (put_logs(p, (nl_string){p->records.data, p->records.size}) != NL_OK)
            return NL_FAILED;
    return NL_OK;
}

static bool texts_equal(nl_string text, nl_string other)
{
    return text.size == other.size && (text.data != NULL) == (other.data != NULL) &&
           (text.size == 0 || memcmp(text.data, other.data, text.size) == 0);
}

static bool ends_with(nl_string text, const char *suffix)
{
    size_t size = strlen(suffix);
    return text.size >= size && memcmp(text.data + text.size - size, suffix, size) == 0;
}

/* Returns the name of the span that a record begins or ends, without the suffix. */
static nl_string span_name(const nl_record *record, const char *suffix)
{
    return (nl_string){record->event.data, record->event.size - strlen(suffix)};
}

static void put_digits(unsigned char *bytes, nl_string digits)
{
    for (size_t i = 0; i < digits.size / 2; i++)
        bytes[i] = (unsigned char)(16 * nl_hex_digit(digits.data[2 * i]) + nl_hex_digit(digits.data[2 * i + 1]));
}

/* The IDs of a record, as hexadecimal digits. */
typedef struct record_ids {
    char trace_text[NL_FIELD_TEXT_SIZE], span_text[NL_FIELD_TEXT_SIZE], parent_text[NL_FIELD_TEXT_SIZE];
    nl_string trace, span, parent;
} record_ids;

/* Returns whether the record has the IDs of a span. */
static bool find_ids(const nl_record *record, record_ids *ids)
{
    ids->trace = otlp_record_id(record, OTLP_ID_TRACE, ids->trace_text);
    ids->span = otlp_record_id(record, OTLP_ID_SPAN, ids->span_text);
    ids->parent = otlp_record_id(record, OTLP_ID_PARENT, ids->parent_text);
    return otlp_is_id(ids->trace, OTLP_TRACE_DIGITS) && otlp_is_id(ids->span, OTLP_SPAN_DIGITS);
}

/*
 * Encodes the records between a span's start and its end. An event of a span cannot name a host or program. Therefore,
 * a record from another host or program becomes a log record.
 */
static nl_status put_points(otlp_peer *p, nl_string name, nl_string records)
{
    nl_string packed;
    otlp_encoder *e = &p->spans.encoder;
    while (open_spans_next(&records, &packed)) {
        const nl_record *point = p->point;
        if (nl_record_unpack(p->point, packed.data, packed.size) != NL_OK)
            continue;
        if (!texts_equal(point->host, p->start->host) || !texts_equal(point->prog, p->start->prog)) {
            if (put_log(p, point) != NL_OK)
                return NL_FAILED;
        } else if (otlp_is_link(point, name)) {
            otlp_encode_link(e, point);
        } else {
            otlp_encode_point(e, point);
        }
    }
    return NL_OK;
}

/* Puts the open span that `end` ends, or only `end` if the span's start cannot be read. */
static nl_status put_span(otlp_peer *p, const nl_record *end, const record_ids *ids, const unsigned char *id)
{
    otlp_batch *b = &p->spans;
    nl_string start;
    p->records.size = 0;
    uint32_t dropped = open_spans_take(p->starts, id, &p->records);
    nl_string records = {p->records.data, p->records.size};
    if (!open_spans_next(&records, &start) || nl_record_unpack(p->start, start.data, start.size) != NL_OK)
        return put_log(p, end);
    record_ids start_ids;
    find_ids(p->start, &start_ids);
    nl_string parent = start_ids.parent.size > 0 ? start_ids.parent : ids->parent;
    otlp_span span = {.trace = ids->trace,
                      .span = ids->span,
                      .name = span_name(end, ".end"),
                      .begin_ns = p->start->time_ns,
                      .end_ns = end->time_ns,
                      .failed = request_is_failure(end),
                      .dropped_events = dropped};
    if (otlp_is_id(parent, OTLP_SPAN_DIGITS))
        span.parent = parent;
    otlp_span_set_status(&span, end);
    begin_item(b, p->start);
    otlp_begin_span(&b->encoder, &span, p->start, end);
    nl_status status = put_points(p, span.name, records);
    otlp_end_span(&b->encoder);
    return status == NL_OK && b->bytes.size >= REQUEST_SIZE ? send_batch(p, b) : status;
}

/* Reads the start of an open span into p->start. Returns false if the span is not open. */
static bool find_start(otlp_peer *p, const unsigned char *id)
{
    nl_string packed;
    return open_spans_find(p->starts, id, &packed) && nl_record_unpack(p->start, packed.data, packed.size) == NL_OK;
}

static nl_status put_record(otlp_peer *p, const nl_record *record, int64_t now_ns)
{
    unsigned char id[OPEN_SPAN_ID_SIZE];
    record_ids ids;
    if (!find_ids(record, &ids))
        return put_log(p, record);
    put_digits(id, ids.trace);
    put_digits(id + OTLP_TRACE_DIGITS / 2, ids.span);
    bool open = find_start(p, id);
    if (!open && !ends_with(record->event, ".start"))
        return put_log(p, record);
    if (open && ends_with(record->event, ".end") &&
        texts_equal(span_name(record, ".end"), span_name(p->start, ".start")))
        return put_span(p, record, &ids, id);
    p->packed.size = 0;
    if (!nl_record_pack(record, &p->packed))
        return put_log(p, record);
    nl_string packed = {p->packed.data, p->packed.size};
    if (!(open ? open_spans_append(p->starts, id, packed) : open_spans_add(p->starts, id, now_ns, packed)))
        return put_log(p, record);
    return put_excess(p, now_ns);
}

static nl_status put_blocks(otlp_peer *p, const char *data, size_t size)
{
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.format = NL_FORMAT_NLB});
    const nl_record *record;
    int64_t now_ns = nl_time_now_ns();
    nl_status status = put_excess(p, now_ns);
    nl_decoder_feed(decoder, data, size);
    while (status == NL_OK && nl_decoder_next(decoder, &record) == NL_OK)
        status = put_record(p, record, now_ns);
    nl_decoder_free(decoder);
    return status;
}

static nl_status deliver(void *peer, const char *data, size_t size, output_place place, output_delivered *done)
{
    otlp_peer *p = peer;
    output_place saved = open_spans_place(p->starts);
    if (saved.number == place.number && saved.offset > place.offset) {
        done->taken = saved.offset - place.offset < size ? saved.offset - place.offset : size;
        return NL_OK;
    }
    size_t whole = nl_records_whole(NL_FORMAT_NLB, data, size);
    if (whole == 0)
        return NL_OK;
    p->done = done;
    place.offset += whole;
    if (put_blocks(p, data, whole) == NL_OK && send_batch(p, &p->spans) == NL_OK && send_batch(p, &p->logs) == NL_OK &&
        open_spans_save(p->starts, place, p->sync) == NL_OK) {
        done->taken = whole;
        return NL_OK;
    }
    done->rejected = 0; /* the records are sent again */
    return NL_FAILED;
}

/* ---- the peer ---- */

static void otlp_free_batch(otlp_batch *b)
{
    nl_buffer_free(&b->bytes);
    otlp_encoder_free(&b->encoder);
}

static void close_peer(void *peer)
{
    otlp_peer *p = peer;
    otlp_link_free(p->link);
    open_spans_free(p->starts);
    otlp_free_batch(&p->spans);
    otlp_free_batch(&p->logs);
    nl_record_free(p->start);
    nl_record_free(p->point);
    nl_buffer_free(&p->packed);
    nl_buffer_free(&p->records);
    free(p);
}

static void prepare_batch(otlp_batch *b, bool spans)
{
    b->spans = spans;
    b->encoder = (otlp_encoder){.out = &b->bytes, .typed = true, .contexts = true};
}

static void *open_peer(const output_options *options)
{
    otlp_peer *p = nl_memory_check(calloc(1, sizeof *p));
    p->sync = options->sync_ns != OUTPUT_SYNC_NEVER;
    p->start = nl_memory_check(nl_record_new());
    p->point = nl_memory_check(nl_record_new());
    prepare_batch(&p->spans, true);
    prepare_batch(&p->logs, false);
    if ((p->starts = open_spans_new(options->spool)) != NULL && (p->link = otlp_link_new(options->url)) != NULL)
        return p;
    close_peer(p);
    return NULL;
}

static nl_status check(const nl_url *url, const output_options *options)
{
    if (options->format != NL_FORMAT_NLB)
        return nl_error_set(NL_ERROR_INVALID, "this destination requires format=nlb");
    otlp_link *link = otlp_link_new(url);
    otlp_link_free(link);
    return link != NULL ? NL_OK : NL_FAILED;
}

static const nl_url_rows own_tables[] = {{nl_dialer_rows, NULL}, {0}};

const output_kind output_kind_otlp = {
    .name = "otlp",
    .format = NL_FORMAT_NLB,
    .tables = own_tables,
    .check = check,
    .open = open_peer,
    .deliver = deliver,
    .close = close_peer,
};
