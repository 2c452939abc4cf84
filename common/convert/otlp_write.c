/*
 * Writes OpenTelemetry logs (OTLP) as JSON or protobuf. A request is an ExportLogsServiceRequest. In JSON, a request is
 * one line. In protobuf, a request follows its size in four bytes.
 *
 * Consecutive records from the same host (resource attribute host.name) and program (service.name) share a request.
 */
#include "config.h"

#include "convert/otlp_encode.h"

#include <endian.h>
#include <string.h>

enum { REQUEST_RECORDS = 100, SIZE_SIZE = 4 };

typedef struct otlp_writer {
    exporter base;
    otlp_encoder encoder;
    nl_buffer source; /* host and program of the open request */
    nl_buffer next;
    size_t start;   /* protobuf: offset in the sink's bytes of the open request's size */
    unsigned count; /* number of records in the open request; 0 if no request is open */
} otlp_writer;

static void otlp_write_open_json(exporter *base)
{
    ((otlp_writer *)base)->encoder.json = true;
}

static void otlp_write_close_writer(exporter *base)
{
    otlp_writer *w = (otlp_writer *)base;
    otlp_encoder_free(&w->encoder);
    nl_buffer_free(&w->source);
    nl_buffer_free(&w->next);
}

static void end_request(otlp_writer *w, nl_buffer *out)
{
    if (w->count == 0)
        return;
    w->count = 0;
    otlp_end_source(&w->encoder);
    if (w->encoder.json) {
        JSON_PUT(out, "\n");
    } else {
        uint32_t size = htobe32((uint32_t)(out->size - w->start - SIZE_SIZE));
        memcpy(out->data + w->start, &size, SIZE_SIZE);
    }
}

static void note_source(nl_buffer *source, const nl_record *record)
{
    const nl_string parts[] = {record->host, record->prog};
    source->size = 0;
    for (size_t i = 0; i < 2; i++) {
        size_t size = parts[i].data != NULL ? parts[i].size : SIZE_MAX;
        nl_buffer_append(source, &size, sizeof size);
        nl_buffer_append(source, parts[i].data, parts[i].size);
    }
}

/*
 * Opens a request for the record's host and program, unless the open request has the same host and program and is not
 * full.
 */
static void begin_request(otlp_writer *w, const nl_record *record, nl_buffer *out)
{
    note_source(&w->next, record);
    bool same = w->next.size == w->source.size && memcmp(w->next.data, w->source.data, w->next.size) == 0;
    if (w->count > 0 && same && w->count < REQUEST_RECORDS) {
        w->count++;
        return;
    }
    end_request(w, out);
    nl_buffer before = w->source;
    w->source = w->next;
    w->next = before;
    w->count = 1;
    w->start = out->size;
    if (!w->encoder.json)
        nl_buffer_append(out, "\0\0\0\0", SIZE_SIZE);
    otlp_begin_source(&w->encoder, false, record->host, record->prog);
}

static void otlp_write_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    otlp_writer *w = (otlp_writer *)base;
    w->encoder.out = &s->bytes;
    w->encoder.s = s;
    w->encoder.typed = typed;
    begin_request(w, record, &s->bytes);
    otlp_encode_log(&w->encoder, record);
}

static void otlp_write_flush(exporter *base, sink *s)
{
    end_request((otlp_writer *)base, &s->bytes);
}

const exporter_kind otlp_exporter = {
    .name = "otlp",
    .what = "OpenTelemetry logs (OTLP) as JSON lines",
    .size = sizeof(otlp_writer),
    .open = otlp_write_open_json,
    .close = otlp_write_close_writer,
    .put = otlp_write_put,
    .flush = otlp_write_flush,
};

const exporter_kind otlp_proto_exporter = {
    .name = "otlp-proto",
    .what = "OpenTelemetry logs (OTLP) as protobuf; each request begins with its size (4 bytes)",
    .size = sizeof(otlp_writer),
    .close = otlp_write_close_writer,
    .put = otlp_write_put,
    .flush = otlp_write_flush,
};
