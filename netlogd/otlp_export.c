#include "config.h"

#include "otlp_export.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "client_limits.h"
#include "convert/json_text.h"
#include "counts.h"
#include "otlp_spans.h"
#include "output/outputs.h"
#include "records.h"
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { STEP_SIZE = 64 << 10, GZIP_WINDOW = 15 + 16 /* for zlib: the largest window, with a gzip header */ };

static otlp_records *reader;
static const otlp_sender *sender; /* sender of the current request */
static uint64_t put, not_certified;
static char certified[256]; /* the latest HOST that is a name in the certificate of certified_channel */
static const nl_channel *certified_channel;

/* ---- decompression ---- */

/* Reserves space for the next step. Returns false if the body exceeds its maximum size. */
static bool grow(nl_buffer *out)
{
    if (out->size > OTLP_BODY_MAX)
        return false;
    nl_memory_check(nl_buffer_reserve(out, STEP_SIZE) ? out : NULL);
    return true;
}

static otlp_code decompress_gzip(nl_string body, nl_buffer *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)body.data, .avail_in = (uInt)body.size};
    int status = inflateInit2(&z, GZIP_WINDOW);
    if (status != Z_OK)
        nl_memory_failed();
    while (status == Z_OK && grow(out)) { /* the body may have several members (RFC 1952, section 2.2) */
        z.next_out = (Bytef *)out->data + out->size;
        z.avail_out = (uInt)(out->capacity - out->size);
        status = inflate(&z, Z_NO_FLUSH);
        out->size = out->capacity - z.avail_out;
        if (status == Z_STREAM_END && z.avail_in > 0)
            status = inflateReset(&z);
    }
    inflateEnd(&z);
    return status == Z_STREAM_END && out->size <= OTLP_BODY_MAX ? OTLP_OK
           : out->size > OTLP_BODY_MAX                          ? OTLP_TOO_LARGE
                                                                : OTLP_INVALID;
}

static otlp_code decompress_zstd(nl_string body, nl_buffer *out)
{
    ZSTD_DCtx *z = nl_memory_check(ZSTD_createDCtx());
    ZSTD_inBuffer in = {body.data, body.size, 0};
    size_t left = 1, before = SIZE_MAX;
    ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, 24);
    while ((left != 0 || in.pos < in.size) && !ZSTD_isError(left) && (in.pos < in.size || out->size != before) &&
           grow(out)) {
        ZSTD_outBuffer to = {out->data, out->capacity, out->size};
        before = out->size;
        left = ZSTD_decompressStream(z, &to, &in);
        out->size = to.pos;
    }
    ZSTD_freeDCtx(z);
    return left == 0 && out->size <= OTLP_BODY_MAX ? OTLP_OK
           : out->size > OTLP_BODY_MAX             ? OTLP_TOO_LARGE
                                                   : OTLP_INVALID;
}

/* ---- records ---- */

static bool is_certified(nl_string host)
{
    if (certified_channel == sender->channel && strlen(certified) == host.size &&
        memcmp(certified, host.data, host.size) == 0)
        return true;
    if (!nl_channel_peer_is_named(sender->channel, host.data, host.size))
        return false;
    snprintf(certified, sizeof certified, "%.*s", (int)host.size, host.data);
    certified_channel = sender->channel;
    return true;
}

static void export_put(exporter *e, const nl_record *record, bool typed, sink *s)
{
    (void)e, (void)typed, (void)s;
    if (sender->hosts_certified && !is_certified(record->host)) {
        not_certified++;
        return;
    }
    records_put(record, NULL, sender->peer);
    put++;
}

static const exporter_kind export_kind = {.name = "otlp", .size = sizeof(exporter), .put = export_put};

static void report_rejected(const otlp_result *result)
{
    if (result->rejected == 0 && result->code == OTLP_OK)
        return;
    records_reject(&(nl_malformed){.reason = result->message}, sender->peer, "", 1);
    if (result->rejected > 1)
        counts_add(COUNT_MALFORMED, result->rejected - 1);
}

static void add_stored_span(nl_string trace, nl_string span)
{
    if (not_certified == 0)
        otlp_spans_add(trace, span);
}

static const otlp_known_spans known_spans = {otlp_spans_expect, otlp_spans_has, add_stored_span};

static otlp_result convert(const otlp_request *request, nl_string body)
{
    exporter to = {.kind = &export_kind};
    import_about about = {.host = sender->host};
    sink s = {.out = &to, .about = &about};
    if (reader == NULL)
        reader = otlp_records_new(&known_spans);
    put = not_certified = 0;
    certified_channel = NULL;
    otlp_limits limits = {
        .now_ns = nl_time_now_ns(), .item_max = server_settings()->max_record_size, .text_max = OTLP_TEXT_MAX};
    otlp_outcome outcome = otlp_records_read(reader, request->signal, request->json, body, &limits, &s);
    otlp_result result = {.accepted = outcome.accepted, .rejected = outcome.rejected, .message = outcome.error};
    if (not_certified > 0) {
        result.message = "HOST is not a name in the client's certificate";
        result.rejected = put == 0 ? outcome.accepted + outcome.rejected : outcome.rejected + 1;
        result.accepted = put == 0 ? 0 : outcome.accepted;
    }
    result.records = put;
    if (result.accepted == 0 && result.rejected > 0)
        result.code = OTLP_INVALID;
    return result;
}

/* Applies the limit of text (client_limits.h) to the records of a request. */
static void count_text(uint64_t text_before, size_t received)
{
    uint64_t text = outputs_encoded() - text_before;
    text_limit_add(sender->peer, text_limit_excess(text, received), nl_monotonic_ns());
}

otlp_result otlp_export(const otlp_request *request, nl_string body, const otlp_sender *from)
{
    nl_buffer plain = {0};
    otlp_code code = OTLP_OK;
    otlp_result result;
    sender = from;
    double wait_s = text_limit_wait_s(sender->peer, nl_monotonic_ns());
    if (wait_s > 0)
        return (otlp_result){.code = OTLP_UNAVAILABLE,
                             .throttled = true,
                             .wait_s = 1 + (unsigned)wait_s,
                             .message = "the client's records take too much space as text; retry later"};
    if (request->coding == OTLP_GZIP)
        code = decompress_gzip(body, &plain);
    else if (request->coding == OTLP_ZSTD)
        code = decompress_zstd(body, &plain);
    if (code != OTLP_OK) {
        result = (otlp_result){.code = code,
                               .message = code == OTLP_TOO_LARGE ? "the decompressed request is larger than 16 MiB"
                                                                 : "the compressed request is damaged"};
    } else {
        uint64_t text = outputs_encoded();
        result = convert(request, request->coding == OTLP_IDENTITY ? body : (nl_string){plain.data, plain.size});
        counts_add(COUNT_RECORDS, result.records);
        count_text(text, body.size);
    }
    report_rejected(&result);
    nl_buffer_free(&plain);
    return result;
}

void otlp_export_free(void)
{
    if (reader != NULL)
        otlp_records_free(reader);
    reader = NULL;
    otlp_spans_free();
}

/* ---- responses ---- */

static void put_varint(nl_buffer *out, uint64_t value)
{
    for (; value > 127; value >>= 7)
        nl_buffer_append(out, &(char){(char)(value | 128)}, 1);
    nl_buffer_append(out, &(char){(char)value}, 1);
}

/* Appends a field that contains text or a message. */
static void put_text(nl_buffer *out, unsigned field, nl_string text)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, text.size);
    nl_buffer_append(out, text.data, text.size);
}

/* Appends {number = 1, text = 2}, which is the form of Status and of the partial success. */
static void put_pair(nl_buffer *out, uint64_t number, nl_string text)
{
    nl_buffer_append(out, "\x08", 1);
    put_varint(out, number);
    put_text(out, 2, text);
}

/* Appends the member `details` of a Status: a google.rpc.RetryInfo in a google.protobuf.Any. */
static void put_retry(nl_buffer *out, unsigned wait_s)
{
    static const char type[] = "type.googleapis.com/google.rpc.RetryInfo";
    nl_buffer delay = {0}, info = {0}, any = {0};
    nl_buffer_append(&delay, "\x08", 1); /* Duration.seconds */
    put_varint(&delay, wait_s);
    put_text(&info, 1, (nl_string){delay.data, delay.size});
    put_text(&any, 1, (nl_string){type, sizeof type - 1});
    put_text(&any, 2, (nl_string){info.data, info.size});
    put_text(out, 3, (nl_string){any.data, any.size});
    nl_buffer_free(&delay);
    nl_buffer_free(&info);
    nl_buffer_free(&any);
}

static void put_json_response(const otlp_request *request, const otlp_result *result, nl_string message, nl_buffer *out)
{
    static const char *const rejected[] = {
        [OTLP_TRACES] = "rejectedSpans", [OTLP_LOGS] = "rejectedLogRecords", [OTLP_METRICS] = "rejectedDataPoints"};
    char head[100] = "{}";
    const char *end = "";
    if (result->code != OTLP_OK) {
        snprintf(head, sizeof head, "{\"code\":%d,\"message\":", result->code);
        end = "}";
    } else if (result->rejected > 0) {
        snprintf(head, sizeof head,
                 "{\"partialSuccess\":{\"%s\":\"%" PRIu64 "\",\"errorMessage\":", rejected[request->signal],
                 result->rejected);
        end = "}}";
    }
    nl_buffer_append(out, head, strlen(head));
    if (*end != '\0')
        json_put_name(out, message);
    nl_buffer_append(out, end, strlen(end));
}

void otlp_put_response(const otlp_request *request, const otlp_result *result, nl_buffer *out)
{
    nl_string message = {"", 0};
    if (result->message != NULL)
        message = (nl_string){result->message, strlen(result->message)};
    if (request->json) {
        put_json_response(request, result, message, out);
    } else if (result->code != OTLP_OK) {
        put_pair(out, result->code, message);
        if (result->wait_s > 0)
            put_retry(out, result->wait_s);
    } else if (result->rejected > 0) {
        nl_buffer partial = {0};
        put_pair(&partial, result->rejected, message);
        put_text(out, 1, (nl_string){partial.data, partial.size});
        nl_buffer_free(&partial);
    }
}
