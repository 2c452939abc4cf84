/*
 * Output to a receiver of OTLP. Records with TRACE.ID and SPAN.ID whose names end in ".start" and ".end" become spans;
 * all other records become log records.
 *
 *   spool -> nl_decoder -> open_spans (starts) -> otlp_encoder -> otlp_link
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
    bool open; /* a source is open */
    nl_buffer host, prog;
    bool has_host, has_prog;
    uint64_t count; /* number of items */
} otlp_batch;

typedef struct otlp_peer {
    otlp_link *link;
    open_spans *starts;
    bool sync;
    otlp_batch spans, logs;
    nl_record *start; /* the record that began the current span */
    nl_buffer packed;
    output_delivered *done; /* result of the current delivery */
} otlp_peer;

/* ---- requests ---- */

static bool is_text(const nl_buffer *text, bool there, nl_string other)
{
    return there == (other.data != NULL) && text->size == other.size &&
           (other.size == 0 || other.data == NULL || memcmp(text->data, other.data, other.size) == 0);
}

static void set_source(nl_buffer *text, bool *there, nl_string from)
{
    *there = from.data != NULL;
    text->size = 0;
    if (from.size > 0)
        nl_buffer_append(text, from.data, from.size);
}

static void close_source(otlp_batch *b)
{
    if (b->open)
        otlp_end_source(&b->encoder);
    b->open = false;
}

/* Begins an item of this record's host and program. */
static void begin_item(otlp_batch *b, const nl_record *record)
{
    b->count++;
    if (b->open && is_text(&b->host, b->has_host, record->host) && is_text(&b->prog, b->has_prog, record->prog))
        return;
    close_source(b);
    set_source(&b->host, &b->has_host, record->host);
    set_source(&b->prog, &b->has_prog, record->prog);
    otlp_begin_source(&b->encoder, b->spans, record->host, record->prog);
    b->open = true;
}

static nl_status send_batch(otlp_peer *p, otlp_batch *b)
{
    otlp_reply reply;
    close_source(b);
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

static nl_status put_packed_log(otlp_peer *p)
{
    return nl_record_unpack(p->start, p->packed.data, p->packed.size) == NL_OK ? put_log(p, p->start) : NL_OK;
}

static bool ends_with(nl_string text, const char *suffix)
{
    size_t size = strlen(suffix);
    return text.size > size && memcmp(text.data + text.size - size, suffix, size) == 0;
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

static nl_status put_span(otlp_peer *p, const nl_record *end, const record_ids *ids)
{
    nl_field message;
    otlp_batch *b = &p->spans;
    if (nl_record_unpack(p->start, p->packed.data, p->packed.size) != NL_OK)
        return put_log(p, end);
    record_ids start_ids;
    find_ids(p->start, &start_ids);
    nl_string parent = start_ids.parent.size > 0 ? start_ids.parent : ids->parent;
    otlp_span span = {.trace = ids->trace,
                      .span = ids->span,
                      .name = {end->event.data, end->event.size - strlen(".end")},
                      .begin_ns = p->start->time_ns,
                      .end_ns = end->time_ns,
                      .failed = request_is_failure(end)};
    if (otlp_is_id(parent, OTLP_SPAN_DIGITS))
        span.parent = parent;
    if (nl_record_find(end, "STATUS.MESSAGE", &message) && message.type == NL_TYPE_STRING)
        span.message = message.string;
    begin_item(b, p->start);
    otlp_begin_span(&b->encoder, &span, p->start, end);
    otlp_end_span(&b->encoder, &span);
    return b->bytes.size < REQUEST_SIZE ? NL_OK : send_batch(p, b);
}

static nl_status put_record(otlp_peer *p, const nl_record *record, int64_t now_ns)
{
    unsigned char id[OPEN_SPAN_ID_SIZE];
    record_ids ids;
    bool begins = ends_with(record->event, ".start"), ends = ends_with(record->event, ".end");
    if ((!begins && !ends) || !find_ids(record, &ids))
        return put_log(p, record);
    put_digits(id, ids.trace);
    put_digits(id + OTLP_TRACE_DIGITS / 2, ids.span);
    p->packed.size = 0;
    if (ends)
        return open_spans_take(p->starts, id, &p->packed) ? put_span(p, record, &ids) : put_log(p, record);
    if (!nl_record_pack(record, &p->packed) ||
        !open_spans_add(p->starts, id, now_ns, (nl_string){p->packed.data, p->packed.size}))
        return put_log(p, record);
    p->packed.size = 0;
    return open_spans_take_excess(p->starts, now_ns, &p->packed) ? put_packed_log(p) : NL_OK;
}

static nl_status put_expired(otlp_peer *p, int64_t now_ns)
{
    for (p->packed.size = 0; open_spans_take_excess(p->starts, now_ns, &p->packed); p->packed.size = 0)
        if (put_packed_log(p) != NL_OK)
            return NL_FAILED;
    return NL_OK;
}

static nl_status put_blocks(otlp_peer *p, const char *data, size_t size)
{
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.format = NL_FORMAT_NLB});
    const nl_record *record;
    int64_t now_ns = nl_time_now_ns();
    nl_status status = put_expired(p, now_ns);
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
    nl_buffer_free(&b->host);
    nl_buffer_free(&b->prog);
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
    nl_buffer_free(&p->packed);
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
